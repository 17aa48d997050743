"""PipelineHandle: the open stream of a graph with its iteration context, saved and restored together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.iteration_context import Graph, IterationContext, position_graph

if TYPE_CHECKING:
    from ringlet.data.graph.node import State, Stream


class Openable(Graph, Protocol):
    """Protocol of nodes and distribution plans, which can be opened."""

    def open(self, context: IterationContext) -> Stream:
        """Open a stream of the elements."""
        ...


class PipelineHandle:
    """The open stream of a graph, and its iteration context.

    Used by iterators, and by operations that open a dataset returned by a user function. Such an operation passes
    ``context.in_round(number)`` of the outer stream as `context`, with a different number for each inner dataset.
    """

    def __init__(self, graph: Openable, context: IterationContext | None = None) -> None:
        self.graph = graph
        self.context = IterationContext() if context is None else context
        self.context.begin(graph)
        self.stream = graph.open(self.context)

    def __iter__(self) -> Iterator[Nest]:
        return self.stream

    def close(self) -> None:
        self.stream.close()

    def get_state(self) -> State:
        """Return a snapshot of the stream and the context."""
        # Save the stream first, so that the context has every choice that the saved position depends on.
        stream = self.stream.get_state()
        return {"run": self.context.get_state(position_graph(self.graph)), "stream": stream}

    def set_state(self, state: State) -> None:
        """Restore a snapshot; must be called before anything is read."""
        self.context.set_state(position_graph(self.graph), state["run"])
        # The stream is already open with other choices; setting its state makes it use the restored choices.
        self.stream.set_state(state["stream"])
