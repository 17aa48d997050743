"""A graph that was opened, saved and restored as one: the stream, and the run that it belongs to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.iteration_context import Graph, IterationContext, position_graph
from ringlet.data.graph.node import State, Stream

__all__ = ["PipelineHandle"]


class Openable(Graph, Protocol):
    """A node, or a plan of distribution."""

    def open(self, context: IterationContext) -> Stream:
        """Open a stream of the elements."""
        ...


class PipelineHandle:
    """The stream of a graph, and the run that it was opened in.

    Iterators are made of one, and so is an operation that opens a dataset which the user's function made.

    Parameters
    ----------
    graph : Node
        Or a plan of distribution.
    context : IterationContext, optional
        That of the stream which opens this one, ``context.in_round(number)`` with a number of its own for each that is
        opened. Without, it is an iteration of its own.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> node = Dataset.range(4).shuffle(4).node
    >>> first, second = PipelineHandle(node), PipelineHandle(node)
    >>> next(first.stream) in range(4)
    True
    >>> second.set_state(first.get_state())
    >>> list(first.stream) == list(second.stream)
    True
    """

    __slots__ = ("context", "graph", "stream")

    def __init__(self, graph: Openable, context: IterationContext | None = None) -> None:
        self.graph = graph
        self.context = IterationContext() if context is None else context
        self.context.begin(graph)
        self.stream = graph.open(self.context)

    def __iter__(self) -> Iterator[Nest]:
        return self.stream

    def close(self) -> None:
        """Close the stream."""
        self.stream.close()

    def get_state(self) -> State:
        """Give a snapshot of both."""
        # In this order: what a thread chooses in between is right for the stream as it was, too.
        stream = self.stream.get_state()
        return {"run": self.context.get_state(position_graph(self.graph)), "stream": stream}

    def set_state(self, state: State) -> None:
        """Go on where a snapshot was taken; only before anything was read."""
        self.context.set_state(position_graph(self.graph), state["run"])
        # What was opened already carries what it was opened with, and takes it from the state.
        self.stream.set_state(state["stream"])
