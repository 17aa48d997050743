"""A graph that was opened, saved and restored as one: the stream, and the run that it belongs to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.iteration_context import Graph, Run, carried
from ringlet.data.graph.node import State, Stream

__all__ = ["Opened"]


class Openable(Graph, Protocol):
    """A node, or a plan of distribution."""

    def open(self, run: Run) -> Stream:
        """Start a run."""
        ...


class Opened:
    """The stream of a graph, and the run that it was opened in.

    Iterators are made of one, and so is an operation that opens a dataset which the user's function made.

    Parameters
    ----------
    graph : Node
        Or a plan of distribution.
    run : Run, optional
        That of the stream which opens this one, ``run.in_round(number)`` with a number of its own for each that is
        opened. Without, it is an iteration of its own.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> node = Dataset.range(4).shuffle(4).node
    >>> first, second = Opened(node), Opened(node)
    >>> next(first.stream) in range(4)
    True
    >>> second.set_state(first.get_state())
    >>> list(first.stream) == list(second.stream)
    True
    """

    __slots__ = ("graph", "run", "stream")

    def __init__(self, graph: Openable, run: Run | None = None) -> None:
        self.graph = graph
        self.run = Run() if run is None else run
        self.run.begin(graph)
        self.stream = graph.open(self.run)

    def __iter__(self) -> Iterator[Nest]:
        return self.stream

    def close(self) -> None:
        """Close the stream."""
        self.stream.close()

    def get_state(self) -> State:
        """Give a snapshot of both."""
        # In this order: what a thread chooses in between is right for the stream as it was, too.
        stream = self.stream.get_state()
        return {"run": self.run.get_state(carried(self.graph)), "stream": stream}

    def set_state(self, state: State) -> None:
        """Go on where a snapshot was taken; only before anything was read."""
        self.run.set_state(carried(self.graph), state["run"])
        # What was opened already carries what it was opened with, and takes it from the state.
        self.stream.set_state(state["stream"])
