"""IterationContext: the random choices and the rounds of one iteration of a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol
from weakref import WeakKeyDictionary


class Graph(Protocol):
    """Protocol of nodes and distribution plans: objects with input nodes."""

    @property
    def inputs(self) -> tuple[Any, ...]: ...


def position_graph(graph: Graph) -> Graph:
    """Return the graph whose position the state of `graph` records.

    It is `graph` itself, unless `graph` is a distribution plan whose steps are elements of one dataset. Then it is this
    dataset (property `position_graph`): the position in it does not depend on the number of replicas.
    """
    dataset: Graph = getattr(graph, "position_graph", graph)
    return dataset


def graph_nodes(root: Graph) -> Iterator[Any]:
    """Yield the nodes of a graph, each once and after its inputs."""
    seen: set[int] = set()
    stack: list[tuple[Any, bool]] = [(root, False)]
    while stack:
        node, is_done = stack.pop()
        if is_done:
            yield node
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((child, False) for child in reversed(node.inputs))


class IterationContext:
    """One iteration: the random choices of its nodes, and the current round of each repeat.

    The random numbers of a node depend only on its choice and the rounds, not on the order in which streams are opened:
    a prefetch thread may open rounds that are never consumed.
    """

    __slots__ = ("_choices", "rounds")

    def __init__(self) -> None:
        # Weak references: user functions may create nodes for every element.
        self._choices: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
        self.rounds: tuple[int, ...] = ()

    def choice(self, node: Any, choose: Callable[[], Any]) -> Any:
        """Return the choice of a node for this iteration: ``choose()`` at the first call, then the same value.

        The choice is saved with the iteration, so it must be a value that a `State` can hold.
        """
        if node not in self._choices:
            self._choices.setdefault(node, choose())  # keeps a choice that another thread has made
        return self._choices[node]

    def chosen(self, node: Any) -> Any:
        """Return the choice of a node for this iteration; None if the node has not chosen."""
        return self._choices.get(node)

    def choose(self, node: Any, choice: Any) -> None:
        """Replace the choice of a node."""
        self._choices[node] = choice

    def in_round(self, number: int) -> IterationContext:
        """Return the context of one round of a repeat in this iteration, or of one of several inner datasets."""
        return self.at(*self.rounds, number)

    def at(self, *rounds: int) -> IterationContext:
        """Return the context of the given rounds of this iteration."""
        context = IterationContext()
        context._choices = self._choices
        context.rounds = rounds
        return context

    def begin(self, root: Graph) -> None:
        """Make the random choices of all nodes of a graph."""
        for node in graph_nodes(root):
            choose = getattr(node, "choose", None)  # a distribution plan makes no choices
            if choose is not None:
                choose(self)

    def get_state(self, root: Graph) -> list[Any]:
        """Return the choices of all nodes of a graph, None for nodes without a choice."""
        return [self._choices.get(node) for node in graph_nodes(root)]

    def set_state(self, root: Graph, state: list[Any]) -> None:
        """Restore the choices of an iteration of an equivalent graph, for all rounds."""
        for node, choice in zip(graph_nodes(root), state, strict=True):
            if choice is not None:
                self._choices[node] = choice
