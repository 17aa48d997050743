"""Dataset.skip: all but the first elements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ringlet.data.dataset_type import Dataset
from ringlet.data.graph.cardinality import INFINITE_CARDINALITY
from ringlet.data.graph.count_arguments import ALL, count_or_all
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import InputRows, InputStream, IterationContext, RowStream, Stream, Transformation
from ringlet.data.graph.table import Rows, row_count

# Maximum number of rows to skip per call, because a shuffle allocates arrays of this size.
_AT_ONCE = 2**20


def skip(self: Dataset, count: int, name: str | None = None) -> Dataset:
    """Skip the first `count` elements.

    Parameters
    ----------
    count : int
        Number of elements to skip; a negative number, or one larger than the dataset, skips all elements.
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
    >>> [int(x) for x in Dataset.range(5).skip(3)]
    [3, 4]
    """
    count = count_or_all(count, "count")
    return type(self)(Skip(self.node, count))


class CountedRows(InputRows):
    """Base class of streams over `_rows`; `_left` is the number of rows that are still to be taken or skipped."""

    SAVED = ("left",)

    def __init__(self, rows: RowStream, count: int) -> None:
        super().__init__(rows)
        self._left = count


class CountedElements(InputStream):
    """Base class of streams over the input; `_left` is the number of elements that are still to be taken or skipped."""

    SAVED = ("left",)

    def __init__(self, node: Any, context: IterationContext) -> None:
        super().__init__(node, context)
        self._left = node.count


@dataclass(frozen=True, eq=False)
class Skip(Transformation):
    """Node that skips the first `count` elements, or all elements if `count` is -1."""

    count: int

    @property
    def cardinality(self) -> int:
        """The number of elements after the first `count`, if known."""
        size = self.input.cardinality
        if size < 0:
            # As in TensorFlow, skip(-1) of an infinite dataset has cardinality 0.
            return 0 if self.count == ALL and size == INFINITE_CARDINALITY else size
        return 0 if self.count == ALL else max(0, size - self.count)

    def open_rows(self, context: IterationContext) -> RowStream:
        return SkipRows(self.input.open_rows(context), self.count)

    def open_elements(self, context: IterationContext) -> Stream:
        return SkipElements(self, context)


class SkipRows(CountedRows):
    """Stream that skips the first row numbers of its input."""

    def next_rows(self, count: int) -> Rows:
        if self._left == ALL:
            return slice(0, 0)
        while self._left:
            asked = min(self._left, _AT_ONCE)
            found = row_count(self._rows.next_rows(asked))
            self._left = self._left - asked if found == asked else 0
        return self._rows.next_rows(count)


class SkipElements(CountedElements):
    """Stream that skips the first elements of its input."""

    def __next__(self) -> Nest:
        if self._left == ALL:
            self.close()
            raise StopIteration
        while self._left:
            # Count before reading, so that an element whose computation fails is skipped, too.
            self._left -= 1
            next(self._input)
        return next(self._input)
