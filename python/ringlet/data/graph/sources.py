"""Source nodes: the rows of a table in order, and the elements of a tuple."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ringlet.collectives.adapters.array_adapters import kind_of, own_copy
from ringlet.data.graph.batch_rows import zeros_like_spec
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import IterationContext, Node, RowStream, State, Stream
from ringlet.data.graph.spec_inference import common_spec, spec_of
from ringlet.data.graph.table import Rows, Table
from ringlet.nest import map_structure


@dataclass(frozen=True, eq=False)
class TableSource(Node):
    """Node that yields the rows of a table in order."""

    rows: Table = field(repr=False)

    @property
    def settings(self) -> dict[str, Any]:
        return {"rows": self.rows.length, "spec": str(self.element_spec)}

    @property
    def cardinality(self) -> int:
        return self.rows.length

    @property
    def element_spec(self) -> Nest:
        return self.rows.element_spec

    @property
    def example(self) -> Nest:
        """The first row; zeros or empty text if the table has no rows."""
        return self._row(0) if self.rows.length else map_structure(zeros_like_spec, self.element_spec)

    def _row(self, number: int) -> Nest:
        # Copied: user functions may write to arrays of other libraries.
        return map_structure(lambda leaf: leaf if kind_of(leaf) is None else own_copy(leaf), self.rows.element(number))

    @property
    def examples(self) -> tuple[Nest, ...]:
        size = self.rows.length
        return tuple(map(self._row, sorted({0, size // 2, size - 1}))) if size else (self.example,)

    @property
    def table(self) -> Table:
        return self.rows

    in_order = True
    from_row_zero = True

    def open_rows(self, context: IterationContext) -> RowStream:
        return TableRows(self.rows.length)

    def open_elements(self, context: IterationContext) -> Stream:
        raise NotImplementedError


class TableRows(RowStream):
    """Stream of all row numbers below `length`, in order."""

    def __init__(self, length: int) -> None:
        self._next = 0
        self._length = length

    def next_rows(self, count: int) -> Rows:
        start = self._next
        self._next = stop = min(start + count, self._length)
        return slice(start, stop)

    def get_state(self) -> State:
        return {"next": self._next}

    def set_state(self, state: State) -> None:
        self._next = state["next"]


@dataclass(frozen=True, eq=False)
class Elements(Node):
    """Node that yields the elements of a tuple, such as those of a window."""

    elements: tuple[Nest, ...] = field(repr=False)
    # The specs of the elements; if None, the most specific specs that all elements conform to.
    spec: Nest = field(default=None, repr=False)

    @property
    def cardinality(self) -> int:
        return len(self.elements)

    @property
    def element_spec(self) -> Nest:
        if self.spec is not None:
            return self.spec
        return common_spec([map_structure(spec_of, element) for element in self.elements])

    @property
    def settings(self) -> dict[str, Any]:
        return {"elements": len(self.elements)}

    @property
    def example(self) -> Nest:
        return self.elements[0]

    def open_elements(self, context: IterationContext) -> Stream:
        return ElementsStream(self.elements)


class ElementsStream(Stream):
    """Stream of the elements of a tuple."""

    def __init__(self, elements: tuple[Nest, ...]) -> None:
        self._elements = elements
        self._next = 0

    def __next__(self) -> Nest:
        if self._next == len(self._elements):
            raise StopIteration
        element = self._elements[self._next]
        self._next += 1
        return element

    def close(self) -> None:
        self._next = len(self._elements)

    def get_state(self) -> State:
        return {"next": self._next}

    def set_state(self, state: State) -> None:
        self._next = state["next"]
