"""Base classes of the streams of `skip` and `take`, which count down elements."""

from __future__ import annotations

from ringlet.data.graph.node import RowStream, State, Stream, UnaryStream

__all__ = ["CountedElements", "CountedRows"]


class CountedRows(RowStream):
    """Base class of streams that count down `_left` row numbers of `_rows`."""

    __slots__ = ("_left", "_rows")

    def __init__(self, rows: RowStream, count: int) -> None:
        self._rows = rows
        self._left = count

    def get_state(self) -> State:
        return {"input": self._rows.get_state(), "left": self._left}

    def set_state(self, state: State) -> None:
        self._rows.set_state(state["input"])
        self._left = state["left"]


class CountedElements(UnaryStream):
    """Base class of streams that count down `_left` elements of the input."""

    __slots__ = ("_left",)

    def __init__(self, source: Stream, count: int) -> None:
        super().__init__(source)
        self._left = count

    def get_state(self) -> State:
        return {**super().get_state(), "left": self._left}

    def set_state(self, state: State) -> None:
        super().set_state(state)
        self._left = state["left"]
