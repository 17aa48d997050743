"""The node that `from_tensor_slices` and `range` share: the rows of a table, in order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ringlet.collectives.adapters.array_adapters import kind_of, own_copy
from ringlet.data.graph.batch_rows import zeros_like_spec
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import Node, RowStream, Run, State, Stream
from ringlet.data.graph.table import Rows, Table
from ringlet.nest import map_structure

__all__ = ["TableRows", "TableSource"]


@dataclass(frozen=True, eq=False)
class TableSource(Node):
    """The rows of a table, first to last."""

    rows: Table = field(repr=False)

    @property
    def settings(self) -> dict[str, Any]:
        """How many rows there are, and what they look like."""
        return {"rows": self.rows.length, "spec": str(self.element_spec)}

    @property
    def cardinality(self) -> int:
        """Number of rows."""
        return self.rows.length

    @property
    def element_spec(self) -> Nest:
        """The nest of specs of one row."""
        return self.rows.element_spec

    @property
    def example(self) -> Nest:
        """The first row; zeros where there is none."""
        return self._row(0) if self.rows.length else map_structure(zeros_like_spec, self.element_spec)

    def _row(self, number: int) -> Nest:
        # Functions of users are tried on it, and may write to arrays of other libraries.
        return map_structure(_apart, self.rows.element(number))

    @property
    def examples(self) -> tuple[Nest, ...]:
        """The first, the middle and the last row."""
        size = self.rows.length
        return tuple(map(self._row, sorted({0, size // 2, size - 1}))) if size else (self.example,)

    @property
    def table(self) -> Table:
        """The table."""
        return self.rows

    @property
    def in_order(self) -> bool:
        """Always."""
        return True

    @property
    def from_row_zero(self) -> bool:
        """Always."""
        return True

    def open_rows(self, run: Run) -> RowStream:
        """Start at the first row."""
        return TableRows(self.rows.length)

    def open_elements(self, run: Run) -> Stream:
        """Never called: there is a table."""
        raise NotImplementedError


class TableRows(RowStream):
    """All row numbers below `length`, in order."""

    __slots__ = ("_length", "_next")

    def __init__(self, length: int) -> None:
        self._next = 0
        self._length = length

    def next_rows(self, count: int) -> Rows:
        """Give the next `count` row numbers, fewer only at the end."""
        start = self._next
        self._next = stop = min(start + count, self._length)
        return slice(start, stop)

    def get_state(self) -> State:
        """Give the next number."""
        return {"next": self._next}

    def set_state(self, state: State) -> None:
        """Go on where a snapshot was taken."""
        self._next = state["next"]


def _apart(leaf: Any) -> Any:
    return leaf if kind_of(leaf) is None else own_copy(leaf)
