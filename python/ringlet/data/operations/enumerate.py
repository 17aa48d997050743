"""Dataset.enumerate: elements with their numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ringlet.data.dataset_type import Dataset
from ringlet.data.graph.count_arguments import whole
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import InputStream, IterationContext, RowStream, Stream, Transformation
from ringlet.data.graph.sources import TableRows
from ringlet.data.graph.table import RangeColumn, Table
from ringlet.data.operations.zip import zip_tables
from ringlet.data.tensor_spec import TensorSpec
from ringlet.errors import InvalidArgumentError
from ringlet.nest import flatten

_INT64 = np.dtype(np.int64)


def enumerate(self: Dataset, start: int = 0, name: str | None = None) -> Dataset:
    """Pair every element with its number, as Python's ``enumerate`` does.

    Parameters
    ----------
    start : int, default 0
        The first number.
    name : str, unused

    Returns
    -------
    Dataset
        The numbers are int64. If the elements are consecutive slices of arrays, later operations process slices of
        these arrays.

    Raises
    ------
    InvalidArgumentError
        If `start` does not fit into int64.
    TypeError
        If `start` is not an integer.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> list(Dataset.from_tensor_slices(["a", "b"]).enumerate(start=5))
    [(np.int64(5), np.str_('a')), (np.int64(6), np.str_('b'))]
    """
    first = whole(start, "start")
    if not -(2**63) <= first < 2**63:
        raise InvalidArgumentError(f"start must fit into int64, got {first}")
    return type(self)(Enumerate(self.node, first))


@dataclass(frozen=True, eq=False)
class Enumerate(Transformation):
    """Node that pairs every element with its number."""

    start: int

    @property
    def element_spec(self) -> Nest:
        return TensorSpec((), _INT64), self.input.element_spec

    @property
    def example(self) -> Nest:
        return np.int64(self.start), self.input.example

    @property
    def examples(self) -> tuple[Nest, ...]:
        return tuple((np.int64(self.start), example) for example in self.input.examples)

    @cached_property
    def table(self) -> Table | None:
        """A column of numbers and the columns of the input, if the input yields its table from row 0; else None."""
        table = self.input.table
        if table is None or not self.input.from_row_zero:
            return None
        numbers = Table((RangeColumn(self.start, 1, _INT64),), flatten(0)[1], table.length)
        return zip_tables(flatten((0, 0))[1], [numbers, table], self.input.cardinality)

    @property
    def in_order(self) -> bool:
        return self.table is not None

    @property
    def from_row_zero(self) -> bool:
        return self.table is not None

    def open_rows(self, context: IterationContext) -> RowStream:
        return TableRows(0 if self.table is None else self.table.length)

    def open_elements(self, context: IterationContext) -> Stream:
        return EnumerateElements(self, context)


class EnumerateElements(InputStream):
    """Stream of pairs of a number and an element. A failed element consumes its number."""

    SAVED = ("next",)

    def __init__(self, node: Enumerate, context: IterationContext) -> None:
        super().__init__(node, context)
        self._next = node.start

    def __next__(self) -> Nest:
        number = self._next
        self._next += 1
        return np.int64(number), next(self._input)
