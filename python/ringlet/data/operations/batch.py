"""Consecutive elements put together into one."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from ringlet.data.node import RowStream, Run, Stream, Transformation
from ringlet.data.operations.counts import check_parallel_calls, positive
from ringlet.data.stacking import stack
from ringlet.data.structure import Array, Nest
from ringlet.data.table import Table, row_count
from ringlet.nest import flatten, map_structure

if TYPE_CHECKING:
    from ringlet.data.dataset import Dataset

__all__ = ["Batch", "batch"]


def batch(
    self: Dataset,
    batch_size: int,
    drop_remainder: bool = False,
    num_parallel_calls: int | None = None,
    deterministic: bool | None = None,
    *,
    name: str | None = None,
) -> Dataset:
    """Put `batch_size` consecutive elements together along a new first dimension.

    Parameters
    ----------
    batch_size : int
    drop_remainder : bool, default False
        Whether to leave out the last batch where it is short. Only then is the size known to `element_spec`.
    num_parallel_calls : int, optional
        A positive number or AUTOTUNE. Checked, and has no effect yet: batches are made one after another.
    deterministic : bool, optional
        Has no effect: results keep their order, which is right for True and for False.
    name : str, optional
        Accepted as TensorFlow's `name` is, and not used.

    Returns
    -------
    Dataset
        Batches of slices of arrays in their order are views of those arrays; others are copies. All are read-only.

    Raises
    ------
    InvalidArgumentError
        If `batch_size` is zero or negative, or `num_parallel_calls` neither positive nor AUTOTUNE; during iteration, if
        elements differ in structure, shape or dtype.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> [x.tolist() for x in Dataset.range(5).batch(2)]
    [[0, 1], [2, 3], [4]]
    >>> Dataset.range(5).batch(2, drop_remainder=True).element_spec
    TensorSpec(shape=(2,), dtype=int64)
    """
    check_parallel_calls(num_parallel_calls)
    return type(self)(Batch(self.node, positive(batch_size, "batch_size"), bool(drop_remainder)))


@dataclass(frozen=True, eq=False)
class Batch(Transformation):
    """`batch_size` consecutive elements as one."""

    batch_size: int
    drop_remainder: bool

    @property
    def cardinality(self) -> int:
        """Number of batches."""
        size = self.input.cardinality
        if size < 0:
            return size
        return size // self.batch_size if self.drop_remainder else -(-size // self.batch_size)

    @property
    def element_spec(self) -> Nest:
        """The specs of the input with one more dimension, known if every batch is full."""
        size = self.batch_size if self.drop_remainder else None
        return map_structure(lambda spec: spec.with_batch(size), self.input.element_spec)

    @property
    def example(self) -> Nest:
        """The example of the input, `batch_size` times without copying it."""
        return map_structure(self._repeated, self.input.example)

    def _repeated(self, leaf: Any) -> Array:
        array = np.asarray(leaf, dtype=None if hasattr(leaf, "dtype") else object)
        return np.broadcast_to(array, (self.batch_size, *array.shape))

    @property
    def table(self) -> None:
        """None: a batch is no row."""
        return

    @property
    def in_order(self) -> bool:
        """Means nothing without a table."""
        return False

    @property
    def bytes_copied(self) -> int:
        """Nothing for views; else the size of a batch."""
        table = self.input.table
        if table is None:
            return sum(leaf.nbytes for leaf in flatten(self.example)[0])
        return 0 if self.input.in_order and table.is_memory else self.batch_size * table.row_bytes

    def open_elements(self, run: Run) -> Stream:
        """Start a run."""
        table = self.input.table
        if table is None:
            return BatchElements(self.input.open(run), self.batch_size, self.drop_remainder)
        return BatchRows(table, self.input.open_rows(run), self.batch_size, self.drop_remainder)


class BatchRows(Stream):
    """Batches of rows of a table: one slice or one gather of each column."""

    __slots__ = ("_batch_size", "_least", "_make", "_rows")

    def __init__(self, table: Table, rows: RowStream, batch_size: int, drop_remainder: bool) -> None:
        self._make = table.batch
        self._rows: RowStream | None = rows
        self._batch_size = batch_size
        self._least = batch_size if drop_remainder else 1

    def __next__(self) -> Nest:
        if self._rows is None:
            raise StopIteration
        rows = self._rows.next_rows(self._batch_size)
        if row_count(rows) < self._least:
            self._rows = None
            raise StopIteration
        return self._make(rows)

    def close(self) -> None:
        """Forget the rows."""
        self._rows = None


class BatchElements(Stream):
    """Batches of any elements, stacked."""

    __slots__ = ("_batch_size", "_input", "_least")

    def __init__(self, source: Stream, batch_size: int, drop_remainder: bool) -> None:
        self._input = source
        self._batch_size = batch_size
        self._least = batch_size if drop_remainder else 1

    def __next__(self) -> Nest:
        elements = list(islice(self._input, self._batch_size))
        if len(elements) < self._least:
            raise StopIteration
        return stack(elements)

    def close(self) -> None:
        """Close the input."""
        self._input.close()
