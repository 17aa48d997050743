"""What `skip` and `take` share: streams that count elements down, and save how many are left."""

from __future__ import annotations

from ringlet.data.graph.node import Downstream, RowStream, State, Stream

__all__ = ["CountedElements", "CountedRows"]


class CountedRows(RowStream):
    """Row numbers of another stream, `_rows`, of which `_left` are still to be counted."""

    __slots__ = ("_left", "_rows")

    def __init__(self, rows: RowStream, count: int) -> None:
        self._rows = rows
        self._left = count

    def get_state(self) -> State:
        """Give how many are left."""
        return {"input": self._rows.get_state(), "left": self._left}

    def set_state(self, state: State) -> None:
        """Go on where a snapshot was taken."""
        self._rows.set_state(state["input"])
        self._left = state["left"]


class CountedElements(Downstream):
    """Elements of another stream, of which `_left` are still to be counted."""

    __slots__ = ("_left",)

    def __init__(self, source: Stream, count: int) -> None:
        super().__init__(source)
        self._left = count

    def get_state(self) -> State:
        """Give how many are left."""
        return {**super().get_state(), "left": self._left}

    def set_state(self, state: State) -> None:
        """Go on where a snapshot was taken."""
        super().set_state(state)
        self._left = state["left"]
