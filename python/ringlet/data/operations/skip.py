"""All but the first elements of a dataset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ringlet.data.graph.cardinality import INFINITE_CARDINALITY
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import RowStream, Run, Stream, Transformation
from ringlet.data.graph.table import Rows, row_count
from ringlet.data.operations.countdown import CountedElements, CountedRows
from ringlet.data.operations.counts import ALL, count_or_all

if TYPE_CHECKING:
    from ringlet.data.dataset import Dataset

__all__ = ["Skip", "skip"]

# Row numbers to leave out in one call: a shuffle makes arrays of them.
_AT_ONCE = 2**20


def skip(self: Dataset, count: int, name: str | None = None) -> Dataset:
    """Leave out the first `count` elements.

    Parameters
    ----------
    count : int
        -1 leaves out all of them, and so does a number that is larger than the dataset.
    name : str, optional
        Accepted as TensorFlow's `name` is, and not used.

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
    >>> [int(x) for x in Dataset.range(5).skip(3)]
    [3, 4]
    """
    count = count_or_all(count, "count")
    return type(self)(Skip(self.node, count))


@dataclass(frozen=True, eq=False)
class Skip(Transformation):
    """All elements behind the first `count`; none at all for -1."""

    count: int

    @property
    def cardinality(self) -> int:
        """What is left, where it is known."""
        size = self.input.cardinality
        if size < 0:
            # As TensorFlow answers, also where -1 leaves out a whole dataset without end.
            return 0 if self.count == ALL and size == INFINITE_CARDINALITY else size
        return 0 if self.count == ALL else max(0, size - self.count)

    def open_rows(self, run: Run) -> RowStream:
        """Start a run that gives row numbers."""
        return SkipRows(self.input.open_rows(run), self.count)

    def open_elements(self, run: Run) -> Stream:
        """Start a run that gives elements."""
        return SkipElements(self.input.open(run), self.count)


class SkipRows(CountedRows):
    """The row numbers of another stream behind the first of them."""

    __slots__ = ()

    def next_rows(self, count: int) -> Rows:
        """Give the next `count` row numbers, fewer only at the end."""
        if self._left == ALL:
            return slice(0, 0)
        while self._left:
            asked = min(self._left, _AT_ONCE)
            found = row_count(self._rows.next_rows(asked))
            self._left = self._left - asked if found == asked else 0
        return self._rows.next_rows(count)


class SkipElements(CountedElements):
    """The elements of another stream behind the first of them."""

    __slots__ = ()

    def __next__(self) -> Nest:
        if self._left == ALL:
            self.close()
            raise StopIteration
        while self._left:
            # Counted first: an element at fault is one of those that are left out.
            self._left -= 1
            next(self._input)
        return next(self._input)
