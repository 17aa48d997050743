"""One iteration of a dataset, as its nodes see it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol
from weakref import WeakKeyDictionary

__all__ = ["Graph", "Run", "carried", "graph_nodes"]


class Graph(Protocol):
    """A node, or a plan of distribution: what has inputs that are nodes."""

    @property
    def inputs(self) -> tuple[Any, ...]:
        """The nodes that this one reads from."""
        ...


def carried(graph: Graph) -> Graph:
    """Give what the state of a graph tells the place in.

    That is the graph itself, but for a plan of distribution whose every step is one whole element of a dataset, and
    which says so by its property `carried`: the place in that dataset is the same for any number of replicas.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> node = Dataset.range(3).node
    >>> carried(node) is node
    True
    """
    dataset: Graph = getattr(graph, "carried", graph)
    return dataset


def graph_nodes(root: Graph) -> Iterator[Any]:
    """Go through a graph, each node once, inputs first and in their order.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> [type(node).__name__ for node in graph_nodes(Dataset.range(3).take(2).batch(2).node)]
    ['TableSource', 'Take', 'Batch']
    """
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


class Run:
    """One iteration: what its nodes left to chance and chose for it, and which round of a repeat this is.

    What is random in a node follows from its choice and from the rounds, and not from what was opened when: a thread
    that reads ahead opens rounds that nobody may ever see.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> node, run = Dataset.range(3).node, Run()
    >>> run.choice(node, lambda: 5), run.in_round(1).choice(node, lambda: 7)
    (5, 5)
    >>> run.in_round(1).in_round(0).rounds
    (1, 0)
    """

    __slots__ = ("_choices", "rounds")

    def __init__(self) -> None:
        # Weak, since functions of the user may make datasets, and nodes, for every element.
        self._choices: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
        self.rounds: tuple[int, ...] = ()

    def choice(self, node: Any, choose: Callable[[], Any]) -> Any:
        """Give what a node chose for this iteration: ``choose()`` at the first call, the same ever after.

        It must be fit for a state (see `ringlet.data.graph.node.State`), since it is saved with the iteration.
        """
        if node not in self._choices:
            self._choices[node] = choose()
        return self._choices[node]

    def chosen(self, node: Any) -> Any:
        """Give what a node has chosen for this iteration, None where it has not.

        Examples
        --------
        >>> from ringlet.data import Dataset
        >>> run, node = Run(), Dataset.range(3).node
        >>> run.choose(node, 5)
        >>> run.chosen(node)
        5
        """
        return self._choices.get(node)

    def choose(self, node: Any, choice: Any) -> None:
        """Have a node choose something else from now on."""
        self._choices[node] = choice

    def in_round(self, number: int) -> Run:
        """Give the same iteration in one round of a repeat, or for one element of several that open something."""
        return self.at(*self.rounds, number)

    def at(self, *rounds: int) -> Run:
        """Give the same iteration in other rounds."""
        run = Run()
        run._choices = self._choices
        run.rounds = rounds
        return run

    def begin(self, root: Graph) -> None:
        """Have all nodes of a graph choose."""
        for node in graph_nodes(root):
            choose = getattr(node, "choose", None)  # a plan of distribution has nothing to choose
            if choose is not None:
                choose(self)

    def get_state(self, root: Graph) -> list[Any]:
        """Give the choices of all nodes of a graph, None where there is none."""
        return [self._choices.get(node) for node in graph_nodes(root)]

    def set_state(self, root: Graph, state: list[Any]) -> None:
        """Take over the choices of another iteration, for an equal graph and all rounds."""
        for node, choice in zip(graph_nodes(root), state, strict=True):
            if choice is not None:
                self._choices[node] = choice
