"""Variables that are read by the row, because reading all of one would cost more: indexing and look-ups."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringlet.collectives.buffers import as_ndarray
from ringlet.errors import InvalidArgumentError
from ringlet.values.indexed_slices import checked_indices
from ringlet.values.ndarray_protocol import Operand
from ringlet.values.value_conversion import is_floating

__all__ = ["RowReader", "SparseReader", "copy_rows", "embedding_lookup", "gather_rows"]

Array = NDArray[Any]


class SparseReader(Operand):
    """Base of variables, of which some rows can be read.

    Examples
    --------
    >>> import ringlet
    >>> ringlet.Variable([1.0, 2.0, 3.0]).sparse_read([2, 0])
    array([3., 1.])
    """

    shape: Any

    def sparse_read(self, indices: Any, name: str | None = None) -> Any:
        """Read some rows.

        Parameters
        ----------
        indices : array-like of int
            Which; one may occur more than once.
        name : str, optional
            Accepted as TensorFlow accepts it.

        Returns
        -------
        ndarray, shape ``indices.shape + shape[1:]``

        Raises
        ------
        InvalidArgumentError
            If there is no such row.
        TypeError
            If the indices are no integers.
        """
        return gather_rows(self, checked_indices(indices, self.shape))


class RowReader(SparseReader):
    """Base of variables whose rows are read one by one.

    Examples
    --------
    >>> class Numbers(RowReader):
    ...     shape = (10,)
    ...     def _read_rows(self, begin, end):
    ...         return np.arange(begin, end)
    >>> Numbers()[3:4], Numbers()[-2:], Numbers()[8:2:-3]
    (array([3]), array([8, 9]), array([8, 5]))
    """

    dtype: Any

    def _read_rows(self, begin: int, end: int) -> Any:
        """Give the rows from `begin` up to `end`, all of which there are."""
        raise NotImplementedError(f"{type(self).__name__} does not read rows")

    def _copy_rows(self, begin: int, end: int, out: Array) -> None:
        """Read the rows from `begin` up to `end` into contiguous memory."""
        out[...] = self._read_rows(begin, end)

    def _gather(self, indices: Array) -> Any:
        """Give a row for each index, all of which are in range."""
        raise NotImplementedError(f"{type(self).__name__} does not look up rows")

    def numpy(self) -> Any:
        """Give a copy of the value that may be written to; a NumPy scalar if it has no dimension."""
        if not self.shape:
            return as_ndarray(self._as_operand())[()]
        out = np.empty(self.shape, self.dtype)
        self._copy_rows(0, self.shape[0], out)
        return out

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a variable without dimensions")
        return int(self.shape[0])

    def __getitem__(self, key: Any) -> Any:
        first, *rest = key if isinstance(key, tuple) and key else (key,)
        if not self.shape or isinstance(first, (bool, np.bool_)):
            return self._as_operand()[key]
        if not rest and isinstance(first, (list, np.ndarray)):
            return self._looked_up(key)
        if isinstance(first, slice):
            rows = self._rows_of(first)
            low, high = (min(rows[0], rows[-1]), max(rows[0], rows[-1])) if rows else (0, -1)
            local: tuple[Any, ...] = (slice(None, None, rows.step), *rest)
            return self._read_rows(low, high + 1)[local]
        try:
            number = operator.index(first)
        except TypeError:
            return self._as_operand()[key]
        row = self._row(number)
        local = (0, *rest)
        return self._read_rows(row, row + 1)[local]

    def _looked_up(self, key: Any) -> Any:
        """What an array in brackets gives: rows, if it consists of whole numbers."""
        numbers = np.asarray(key)
        if numbers.dtype.kind not in "iu" or not numbers.ndim:
            return self._as_operand()[key]
        count = self.shape[0]
        rows = np.where(numbers < 0, numbers + count, numbers)
        outside = (rows < 0) | (rows >= count)
        if outside.any():
            self._row(int(numbers[outside][0]))  # raises
        return self._gather(rows)

    def _rows_of(self, key: slice) -> range:
        """Which rows a slice names, as NumPy reads it."""
        return range(*key.indices(self.shape[0]))

    def _row(self, number: int) -> int:
        count: int = self.shape[0]
        row = number + count if number < 0 else number
        if not 0 <= row < count:
            self._refuse_row(number)
        return row

    def _refuse_row(self, number: int) -> None:
        """Raise what the arrays raise that are read."""
        self._as_operand()[number]


def copy_rows(variable: Any, begin: int, end: int, out: Array) -> None:
    """Copy rows of a variable of any kind into contiguous memory.

    Examples
    --------
    >>> import ringlet
    >>> out = np.empty(2)
    >>> copy_rows(ringlet.Variable([1.0, 2.0, 3.0]), 1, 3, out)
    >>> out
    array([2., 3.])
    """
    if isinstance(variable, RowReader):
        variable._copy_rows(begin, end, out)
    else:
        out[...] = as_ndarray(variable)[begin:end]


def gather_rows(table: Any, indices: Array) -> Any:
    """Give a row of a table for each index, all of which are in range.

    Examples
    --------
    >>> gather_rows([1.0, 2.0, 3.0], np.array([2, 0]))
    array([3., 1.])
    """
    if isinstance(table, RowReader):
        return table._gather(indices)
    return (table._as_operand() if isinstance(table, Operand) else as_ndarray(table))[indices]


def embedding_lookup(params: Any, ids: Any, max_norm: float | None = None) -> Any:
    """Give the rows of a table, as ``tf.nn.embedding_lookup`` does.

    Parameters
    ----------
    params : Variable, ShardedVariable or array-like, shape (n, ...)
        The table. Of one on parameter servers only the rows that are asked for are read.
    ids : array-like of int
        Of any shape.
    max_norm : float, optional
        Longer rows are cut to this length (their Euclidean norm).

    Returns
    -------
    ndarray, shape ``ids.shape + params.shape[1:]``

    Raises
    ------
    InvalidArgumentError
        If there is no such row, the table has no dimension, or `max_norm` is given and the table is not of
        floating-point numbers.
    TypeError
        If the ids are no integers.

    Examples
    --------
    >>> import ringlet
    >>> embedding_lookup(ringlet.Variable([[1.0, 0.0], [3.0, 4.0]]), [[1, 0]], max_norm=1.0)
    array([[[0.6, 0.8],
            [1. , 0. ]]])
    """
    table: Any = params if isinstance(params, Operand) else as_ndarray(params)
    indices = checked_indices(ids, table.shape)
    rows = gather_rows(table, indices)
    if max_norm is None:
        return rows
    if not max_norm > 0:
        raise InvalidArgumentError(f"max_norm is the length that rows may have, more than 0, got {max_norm!r}")
    if not is_floating(rows.dtype):
        raise InvalidArgumentError(f"max_norm cuts rows of floating-point numbers, and the table holds {rows.dtype}")
    axes = tuple(range(indices.ndim, rows.ndim))
    lengths = np.sqrt(np.sum(np.square(rows), axis=axes, keepdims=True))
    return rows * (max_norm / np.maximum(lengths, max_norm)).astype(rows.dtype)
