"""Dataset.concatenate: one dataset after another."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ringlet.collectives.adapters.array_adapters import common_kind, in_kind_of
from ringlet.collectives.buffers import as_ndarray
from ringlet.data.dataset_type import Dataset
from ringlet.data.graph.batch_rows import join_rows
from ringlet.data.graph.cardinality import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import IterationContext, Node, RowStream, State, Stream
from ringlet.data.graph.spec_inference import check_compatible, common_spec
from ringlet.data.graph.table import Column, Rows, Table, row_count, row_numbers
from ringlet.data.operations.common.user_function import node_of

# The round in which the second input is opened, so that a shuffle that both inputs share has a different order in each.
_SECOND = 2**32


def concatenate(self: Dataset, dataset: Dataset, name: str | None = None) -> Dataset:
    """Append the elements of another dataset.

    Parameters
    ----------
    dataset : Dataset
        A dataset with elements of the same structure and dtypes.
    name : str, unused

    Returns
    -------
    Dataset
        If the elements of both datasets are slices of arrays, later operations process slices of these arrays. Sizes
        that differ are unknown in `element_spec`.

    Raises
    ------
    TypeError
        If `dataset` is not a Dataset, or has elements of a different structure or dtype. If user functions compute the
        elements, `element_spec` raises this error.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> [int(x) for x in Dataset.range(2).concatenate(Dataset.range(8, 10))]
    [0, 1, 8, 9]
    """
    other = node_of(dataset)
    if other is None:
        raise TypeError(f"concatenate requires a Dataset, got {dataset!r}. Use Dataset.from_tensor_slices for arrays.")
    check_compatible([self.node, other])
    return type(self)(Concatenate(self.node, other))


@dataclass(frozen=True, eq=False)
class Concatenate(Node):
    """Node that yields the elements of `first`, then those of `second`."""

    first: Node
    second: Node

    @property
    def cardinality(self) -> int:
        sizes = (self.first.cardinality, self.second.cardinality)
        for unbounded in (INFINITE_CARDINALITY, UNKNOWN_CARDINALITY):
            if unbounded in sizes:
                return unbounded
        return sum(sizes)

    @cached_property
    def element_spec(self) -> Nest:
        return common_spec([self.first.element_spec, self.second.element_spec])

    @property
    def example(self) -> Nest:
        return self.first.example

    @cached_property
    def table(self) -> Table | None:
        first, second = self.first.table, self.second.table
        if first is None or second is None or first.element_spec != second.element_spec:
            return None
        columns = zip(first.columns, second.columns, strict=True)
        joined = tuple(JoinedColumn(one, other, first.length) for one, other in columns)
        return Table(joined, first.shape, first.length + second.length)

    @property
    def in_order(self) -> bool:
        return self.first.in_order and self.second.in_order

    @property
    def from_row_zero(self) -> bool:
        first = self.first.table
        is_whole = first is not None and self.first.cardinality == first.length
        return is_whole and self.first.from_row_zero and self.second.from_row_zero

    @property
    def bytes_copied(self) -> int:
        return max(self.first.bytes_copied, self.second.bytes_copied)

    def open_rows(self, context: IterationContext) -> RowStream:
        return ConcatenateRows(self.first, self.second, context)

    def open_elements(self, context: IterationContext) -> Stream:
        return ConcatenateElements(self.first.open(context), self.second, context)


class JoinedColumn:
    """Column of the rows of one column, followed by the rows of another column."""

    def __init__(self, first: Column, second: Column, border: int) -> None:
        self._first = first
        self._second = second
        self._border = border
        self.spec = first.spec
        self.row_bytes = max(first.row_bytes, second.row_bytes)
        self.is_memory = first.is_memory and second.is_memory

    def row(self, number: int) -> Any:
        return self._first.row(number) if number < self._border else self._second.row(number - self._border)

    def rows(self, rows: Rows) -> Any:
        """Return rows as one array: from one column if possible, otherwise a copy."""
        border = self._border
        if isinstance(rows, slice):
            if rows.stop <= border:
                return self._first.rows(rows)
            if rows.start >= border:
                return self._second.rows(slice(rows.start - border, rows.stop - border))
            parts = self._first.rows(slice(rows.start, border)), self._second.rows(slice(0, rows.stop - border))
            return join_rows(parts)
        is_first = rows < border
        if is_first.all():
            return self._first.rows(rows)
        if not is_first.any():
            return self._second.rows(rows - border)
        one, other = self._first.rows(rows[is_first]), self._second.rows(rows[~is_first] - border)
        kind = common_kind((one, other), "dataset")
        first, second = as_ndarray(one), as_ndarray(other)
        mixed = np.empty((len(rows), *first.shape[1:]), np.promote_types(first.dtype, second.dtype))
        mixed[is_first], mixed[~is_first] = first, second
        if kind is None:
            mixed.setflags(write=False)
        return in_kind_of(one, mixed, is_own=True)


class ConcatenateRows(RowStream):
    """Stream of the row numbers of `first`, then of `second` plus an offset; `second` is opened when `first` ends."""

    def __init__(self, first: Node, second: Node, context: IterationContext) -> None:
        self._input = first.open_rows(context)
        self._is_second = False
        self._second = second
        self._second_from = 0 if first.table is None else first.table.length
        self._context = context

    def next_rows(self, count: int) -> Rows:
        rows = self._input.next_rows(count)
        found = row_count(rows)
        if self._is_second:
            return self._shifted(rows)
        if found == count:
            return rows
        self._open_second()
        more = self._shifted(self._input.next_rows(count - found))
        if found == 0:
            return more
        if isinstance(rows, slice) and isinstance(more, slice) and rows.stop == more.start:
            return slice(rows.start, more.stop)
        return np.concatenate([row_numbers(rows), row_numbers(more)])

    def _open_second(self) -> None:
        self._is_second = True
        self._input = self._second.open_rows(self._context.in_round(_SECOND))

    def _shifted(self, rows: Rows) -> Rows:
        by = self._second_from
        return slice(rows.start + by, rows.stop + by) if isinstance(rows, slice) else rows + by

    def get_state(self) -> State:
        return {"is_second": self._is_second, "input": self._input.get_state()}

    def set_state(self, state: State) -> None:
        if state["is_second"]:
            self._open_second()
        self._input.set_state(state["input"])


class ConcatenateElements(Stream):
    """Stream of the elements of `first`, then of `second`, which is opened when `first` ends."""

    def __init__(self, first: Stream, second: Node, context: IterationContext) -> None:
        self._input: Stream | None = first  # None if this stream is closed
        self._is_second = False
        self._second = second
        self._context = context

    def __next__(self) -> Nest:
        if self._input is None:
            raise StopIteration
        try:
            return next(self._input)
        except StopIteration:
            if self._is_second:
                raise
        self._input.close()
        return next(self._open_second())

    def _open_second(self) -> Stream:
        self._is_second = True
        self._input = self._second.open(self._context.in_round(_SECOND))
        return self._input

    def close(self) -> None:
        if self._input is not None:
            self._input.close()
            self._input = None

    def get_state(self) -> State:
        return {"is_second": self._is_second, "input": None if self._input is None else self._input.get_state()}

    def set_state(self, state: State) -> None:
        if state["input"] is None or self._input is None:
            self.close()
            return
        if state["is_second"]:
            self._input.close()
            self._open_second()
        self._input.set_state(state["input"])
