"""Elements that are rows of arrays, so that a chain of operations is arithmetic on row numbers.

A *table* has columns of one length; element ``i`` of the dataset that it stands for is row ``i`` of every column, put
into the table's structure. Operations that only choose and order elements (shuffle, repeat, take) then choose and order
row numbers, and a batch is one slice, or one gather, of each column: no loop over elements anywhere.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

from ringlet.data.graph.element_structure import Array, Nest, read_only
from ringlet.data.tensor_spec import TensorSpec
from ringlet.nest import PyTreeSpec, unflatten

__all__ = ["ArrayColumn", "Column", "RangeColumn", "Rows", "Table", "row_count", "row_numbers"]

Rows = slice | np.ndarray[Any, np.dtype[np.int64]]
"""Row numbers: ``slice(start, stop)`` where they follow each other, an int64 array otherwise."""


def row_count(rows: Rows) -> int:
    """Give how many rows these are.

    Examples
    --------
    >>> row_count(slice(2, 5)), row_count(np.array([7, 7]))
    (3, 2)
    """
    return rows.stop - rows.start if isinstance(rows, slice) else len(rows)


def row_numbers(rows: Rows) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Give the numbers of these rows as an array.

    Examples
    --------
    >>> row_numbers(slice(2, 5))
    array([2, 3, 4])
    """
    return np.arange(rows.start, rows.stop, dtype=np.int64) if isinstance(rows, slice) else rows


class Column(Protocol):
    """One array, or what can stand for one."""

    @property
    def spec(self) -> TensorSpec:
        """What one row looks like."""
        ...

    @property
    def row_bytes(self) -> int:
        """Size of one row in bytes."""
        ...

    @property
    def is_memory(self) -> bool:
        """Whether rows exist in memory, so that a slice of them is a view and not made anew."""
        ...

    def row(self, number: int) -> Any:
        """Give one row."""
        ...

    def rows(self, rows: Rows) -> Array:
        """Give many rows as one read-only array."""
        ...


class ArrayColumn:
    """The rows of an array along its first dimension; shares its memory.

    Examples
    --------
    >>> column = ArrayColumn(np.array([10, 11, 12, 13]))
    >>> column.rows(slice(1, 3)), column.rows(np.array([3, 0]))
    (array([11, 12]), array([13, 10]))
    """

    __slots__ = ("_array", "is_memory", "row_bytes", "spec")

    def __init__(self, array: Array) -> None:
        self._array = read_only(array)
        self.spec = TensorSpec(array.shape[1:], array.dtype)
        self.row_bytes = array.dtype.itemsize * math.prod(array.shape[1:])
        self.is_memory = True

    def __len__(self) -> int:
        return len(self._array)

    def row(self, number: int) -> Any:
        """Give one row: a read-only view, or the immutable scalar of a vector."""
        return self._array[number]

    def rows(self, rows: Rows) -> Array:
        """Give many rows as one read-only array: a view of a slice, a gathered copy of anything else."""
        if isinstance(rows, slice):
            return self._array[rows]
        gathered = self._array.take(rows, axis=0)
        gathered.setflags(write=False)
        return gathered


class RangeColumn:
    """The numbers ``start, start + step, ...``, made when they are asked for.

    Examples
    --------
    >>> RangeColumn(10, -2, np.dtype(np.int64)).rows(slice(1, 4))
    array([8, 6, 4])
    """

    __slots__ = ("_start", "_step", "is_memory", "row_bytes", "spec")

    def __init__(self, start: int, step: int, dtype: np.dtype[Any]) -> None:
        self._start = start
        self._step = step
        self.spec = TensorSpec((), dtype)
        self.row_bytes = dtype.itemsize
        self.is_memory = False

    def row(self, number: int) -> Any:
        """Give one number."""
        return self.spec.dtype.type(self._start + self._step * number)

    def rows(self, rows: Rows) -> Array:
        """Give many numbers as one read-only array."""
        numbers: Array = row_numbers(rows)
        if (self._start, self._step) != (0, 1):
            # Modulo 2**64, where any start and step are right for numbers that fit into int64 or uint64 in the end.
            step, start = np.uint64(self._step % 2**64), np.uint64(self._start % 2**64)
            numbers = (numbers.view(np.uint64) * step + start).view(np.int64)
        if self.spec.dtype != numbers.dtype:
            numbers = numbers.astype(self.spec.dtype)
        numbers.setflags(write=False)
        return numbers


class Table:
    """Columns of one length, and the structure that a row of them makes.

    Examples
    --------
    >>> from ringlet.nest import flatten
    >>> shape = flatten({"x": 0, "y": 0})[1]
    >>> table = Table((ArrayColumn(np.arange(5)), RangeColumn(0, 10, np.dtype(np.int64))), shape, 5)
    >>> table.batch(np.array([4, 0]))
    {'x': array([4, 0]), 'y': array([40,  0])}
    """

    __slots__ = ("_bare", "_row", "columns", "length", "shape")

    def __init__(self, columns: tuple[Column, ...], shape: PyTreeSpec, length: int) -> None:
        self.columns = columns
        self.shape = shape
        self.length = length
        # Nearly all elements are an array or a plain tuple of arrays, around which a structure is put without a walk.
        self._bare = columns[0] if shape.is_leaf() else None
        is_row = shape.type is tuple and all(child.is_leaf() for child in shape.children())
        self._row = columns if is_row else None

    @property
    def element_spec(self) -> Nest:
        """The nest of specs of one row."""
        return unflatten(self.shape, [column.spec for column in self.columns])

    @property
    def row_bytes(self) -> int:
        """Size of one row over all columns."""
        return sum(column.row_bytes for column in self.columns)

    @property
    def is_memory(self) -> bool:
        """Whether a batch of consecutive rows is made of views alone."""
        return all(column.is_memory for column in self.columns)

    def element(self, number: int) -> Nest:
        """Give one row as an element."""
        if self._bare is not None:
            return self._bare.row(number)
        if self._row is not None:
            return tuple([column.row(number) for column in self._row])
        return unflatten(self.shape, [column.row(number) for column in self.columns])

    def batch(self, rows: Rows) -> Nest:
        """Give many rows as one element whose arrays have one more dimension in front."""
        if self._bare is not None:
            return self._bare.rows(rows)
        if self._row is not None:
            return tuple([column.rows(rows) for column in self._row])
        return unflatten(self.shape, [column.rows(rows) for column in self.columns])
