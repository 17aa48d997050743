"""Tables: columns whose rows are elements, so that chains of operations become arithmetic on row numbers.

A *table* has columns of equal length; element ``i`` of its dataset is row ``i`` of every column, arranged
in the table's structure. Operations that only select and order elements (shuffle, repeat, take) then select and order
row numbers, and a batch is one slice or one gather of each column, without a loop over elements.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

from ringlet.data.graph.element_structure import Array, Nest, read_only
from ringlet.data.graph.spec_inference import row_spec, spec_of
from ringlet.data.tensor_spec import NoneTensorSpec, TensorSpec
from ringlet.nest import PyTreeSpec, unflatten

Rows = slice | np.ndarray[Any, np.dtype[np.int64]]
"""Row numbers: ``slice(start, stop)`` if they are consecutive, else an int64 array."""


def row_count(rows: Rows) -> int:
    """Return the number of rows."""
    return rows.stop - rows.start if isinstance(rows, slice) else len(rows)


def row_numbers(rows: Rows) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Convert row numbers to an array."""
    return np.arange(rows.start, rows.stop, dtype=np.int64) if isinstance(rows, slice) else rows


class Column(Protocol):
    """Protocol of columns: the rows of an array, or of values computed on request."""

    @property
    def spec(self) -> Any:
        """The spec of one row."""
        ...

    @property
    def row_bytes(self) -> int:
        """Size of one row in bytes."""
        ...

    @property
    def is_memory(self) -> bool:
        """Whether rows exist in memory, so that a slice of them is usually a view."""
        ...

    def row(self, number: int) -> Any:
        """Return one row."""
        ...

    def rows(self, rows: Rows) -> Any:
        """Return rows as one array, which is read-only if it is a NumPy array."""
        ...


class ArrayColumn:
    """Column of the rows of an array along its first dimension; shares the memory of the array."""

    def __init__(self, array: Array) -> None:
        self._array = read_only(array)
        self.row_bytes = array.dtype.itemsize * math.prod(array.shape[1:])
        self.is_memory = True

    def __len__(self) -> int:
        return len(self._array)

    @property
    def spec(self) -> Any:
        """The spec of one row; for datasets, inferring the spec may call user functions."""
        return row_spec(spec_of(self._array))

    def row(self, number: int) -> Any:
        """Return one row: a read-only view, or a scalar if the array is a vector."""
        return self._array[number]

    def rows(self, rows: Rows) -> Array:
        """Return rows as one read-only array: a view for a slice, otherwise a gathered copy."""
        if isinstance(rows, slice):
            return self._array[rows]
        gathered = self._array.take(rows, axis=0)
        gathered.setflags(write=False)
        return gathered


class NoneColumn:
    """A column that is None in every row and in every batch of rows."""

    spec = NoneTensorSpec()
    row_bytes = 0
    is_memory = True

    def row(self, number: int) -> None:
        """Return None."""

    def rows(self, rows: Rows) -> None:
        """Return None."""


class RangeColumn:
    """Column of the numbers ``start, start + step, ...``, computed on request."""

    def __init__(self, start: int, step: int, dtype: np.dtype[Any]) -> None:
        self._start = start
        self._step = step
        self.spec = TensorSpec((), dtype)
        self.row_bytes = dtype.itemsize
        self.is_memory = False

    def row(self, number: int) -> Any:
        return self.spec.dtype.type(self._start + self._step * number)

    def rows(self, rows: Rows) -> Array:
        numbers: Array = row_numbers(rows)
        if (self._start, self._step) != (0, 1):
            # Computed modulo 2**64, which is exact if the results fit into int64 or uint64.
            step, start = np.uint64(self._step % 2**64), np.uint64(self._start % 2**64)
            numbers = (numbers.view(np.uint64) * step + start).view(np.int64)
        if self.spec.dtype != numbers.dtype:
            numbers = numbers.astype(self.spec.dtype)
        numbers.setflags(write=False)
        return numbers


class Table:
    """Columns of equal length, and the structure of a row."""

    def __init__(self, columns: tuple[Column, ...], shape: PyTreeSpec, length: int) -> None:
        self.columns = columns
        self.shape = shape
        self.length = length
        # Fast path for an array or a plain tuple of arrays, without traversing the structure.
        self._bare = columns[0] if shape.is_leaf() else None
        is_row = shape.type is tuple and all(child.is_leaf() for child in shape.children())
        self._row = columns if is_row else None

    @property
    def element_spec(self) -> Nest:
        """The nest of specs of one row."""
        return unflatten(self.shape, [column.spec for column in self.columns])

    @property
    def row_bytes(self) -> int:
        """Size of one row in bytes, over all columns."""
        return sum(column.row_bytes for column in self.columns)

    @property
    def is_memory(self) -> bool:
        """Whether all rows exist in memory, so that a batch of consecutive rows usually consists of views."""
        return all(column.is_memory for column in self.columns)

    def element(self, number: int) -> Nest:
        if self._bare is not None:
            return self._bare.row(number)
        if self._row is not None:
            return tuple([column.row(number) for column in self._row])
        return unflatten(self.shape, [column.row(number) for column in self.columns])

    def batch(self, rows: Rows) -> Nest:
        """Return rows as one element whose arrays have an additional first dimension."""
        if self._bare is not None:
            return self._bare.rows(rows)
        if self._row is not None:
            return tuple([column.rows(rows) for column in self._row])
        return unflatten(self.shape, [column.rows(rows) for column in self.columns])
