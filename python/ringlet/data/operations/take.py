"""Dataset.take: the first elements."""

from __future__ import annotations

from dataclasses import dataclass

from ringlet.data.dataset_type import Dataset
from ringlet.data.graph.cardinality import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from ringlet.data.graph.count_arguments import ALL, count_or_all
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import IterationContext, RowStream, Stream, Transformation
from ringlet.data.graph.table import Rows
from ringlet.data.operations.skip import CountedElements, CountedRows


def take(self: Dataset, count: int, name: str | None = None) -> Dataset:
    """Keep the first `count` elements.

    Parameters
    ----------
    count : int
        Number of elements to keep; a negative number, or one larger than the dataset, keeps all elements.
    name : str, unused

    Returns
    -------
    Dataset

    Raises
    ------
    TypeError
        If `count` is not an integer.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> [int(x) for x in Dataset.range(10).take(3)]
    [0, 1, 2]
    """
    count = count_or_all(count, "count")
    return self if count == ALL else type(self)(Take(self.node, count))


@dataclass(frozen=True, eq=False)
class Take(Transformation):
    """Node that keeps the first `count` elements."""

    count: int

    @property
    def cardinality(self) -> int:
        """The smaller of `count` and the cardinality of the input, if known."""
        size = self.input.cardinality
        if size == UNKNOWN_CARDINALITY:
            return UNKNOWN_CARDINALITY
        return self.count if size == INFINITE_CARDINALITY else min(size, self.count)

    @property
    def from_row_zero(self) -> bool:
        return self.input.from_row_zero

    def open_rows(self, context: IterationContext) -> RowStream:
        return TakeRows(self.input.open_rows(context), self.count)

    def open_elements(self, context: IterationContext) -> Stream:
        return TakeElements(self, context)


class TakeRows(CountedRows):
    """Stream of the first row numbers of its input."""

    def next_rows(self, count: int) -> Rows:
        count = min(count, self._left)
        self._left -= count
        return self._rows.next_rows(count)


class TakeElements(CountedElements):
    """Stream of the first elements of its input; closes the input after them."""

    def __next__(self) -> Nest:
        if self._left == 0:
            self.close()
            raise StopIteration
        element = next(self._input)
        self._left -= 1
        return element

    def close(self) -> None:
        self._left = 0
        super().close()
