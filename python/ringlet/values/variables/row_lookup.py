"""Row reads of variables: indexing, sparse reads and embedding lookups."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringlet.collectives.buffers import as_ndarray
from ringlet.errors import InvalidArgumentError
from ringlet.values.indexed_slices import checked_indices
from ringlet.values.ndarray_protocol import NDArrayProtocol
from ringlet.values.value_conversion import is_floating

Array = NDArray[Any]


class SparseReader(NDArrayProtocol):
    """Base class of variables that support sparse reads.

    Examples
    --------
    >>> import ringlet
    >>> ringlet.Variable([1.0, 2.0, 3.0]).sparse_read([2, 0])
    array([3., 1.])
    """

    shape: Any

    def sparse_read(self, indices: Any, name: str | None = None) -> Any:
        """Return selected rows.

        Parameters
        ----------
        indices : array-like of int
            Row numbers; a row may occur more than once.
        name : str, unused

        Returns
        -------
        ndarray, shape ``indices.shape + shape[1:]``

        Raises
        ------
        InvalidArgumentError
            If an index is out of range.
        TypeError
            If the indices are not integers.
        """
        return gather_rows(self, checked_indices(indices, self.shape))


class RowReader(SparseReader):
    """Base class of variables whose rows can be read without the rest of the value."""

    dtype: Any

    def _read_rows(self, begin: int, end: int) -> Any:
        """Return the rows in [begin, end), which must be in range."""
        raise NotImplementedError(f"{type(self).__name__} does not define _read_rows()")

    def _copy_rows(self, begin: int, end: int, out: Array) -> None:
        out[...] = self._read_rows(begin, end)

    def _gather(self, indices: Array) -> Any:
        """Return a row for each index; all indices must be in range."""
        raise NotImplementedError(f"{type(self).__name__} does not define _gather()")

    def numpy(self) -> Any:
        """Return a writeable copy of the value; a NumPy scalar if it is 0-d."""
        if not self.shape:
            return as_ndarray(self._as_operand())[()]
        out = np.empty(self.shape, self.dtype)
        self._copy_rows(0, self.shape[0], out)
        return out

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a 0-d variable has no len()")
        return int(self.shape[0])

    def __getitem__(self, key: Any) -> Any:
        first, *rest = key if isinstance(key, tuple) and key else (key,)
        if not self.shape or isinstance(first, (bool, np.bool_)):
            return self._as_operand()[key]
        if not rest and isinstance(first, (list, np.ndarray)):
            return self._index_with_array(key)
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

    def _index_with_array(self, key: Any) -> Any:
        """Index with an array or list; integers select rows."""
        numbers = np.asarray(key)
        if numbers.dtype.kind not in "iu" or not numbers.ndim:
            return self._as_operand()[key]
        count = self.shape[0]
        rows = np.where(numbers < 0, numbers + count, numbers)
        outside = (rows < 0) | (rows >= count)
        if outside.any():
            self._row(int(numbers[outside][0]))  # raises IndexError
        return self._gather(rows)

    def _rows_of(self, key: slice) -> range:
        """Return the rows that a slice selects, with NumPy's semantics."""
        return range(*key.indices(self.shape[0]))

    def _row(self, number: int) -> int:
        count: int = self.shape[0]
        row = number + count if number < 0 else number
        if not 0 <= row < count:
            self._refuse_row(number)
        return row

    def _refuse_row(self, number: int) -> None:
        self._as_operand()[number]


def copy_rows(variable: Any, begin: int, end: int, out: Array) -> None:
    """Copy rows of any variable to contiguous memory."""
    if isinstance(variable, RowReader):
        variable._copy_rows(begin, end, out)
    else:
        out[...] = as_ndarray(variable)[begin:end]


def gather_rows(table: Any, indices: Array) -> Any:
    """Return a row of a table for each index; all indices must be in range."""
    if isinstance(table, RowReader):
        return table._gather(indices)
    return (table._as_operand() if isinstance(table, NDArrayProtocol) else as_ndarray(table))[indices]


def embedding_lookup(params: Any, ids: Any, max_norm: float | None = None) -> Any:
    """Return rows of a table (``tf.nn.embedding_lookup``).

    Parameters
    ----------
    params : Variable, ShardedVariable or array-like, shape (n, ...)
        The table. On parameter servers only the requested rows are read.
    ids : array-like of int
        Row numbers, in an array of any shape.
    max_norm : float, optional
        Maximum Euclidean norm; longer rows are scaled to it.

    Returns
    -------
    ndarray, shape ``ids.shape + params.shape[1:]``

    Raises
    ------
    InvalidArgumentError
        If an id is out of range, the table is 0-d, `max_norm` is not positive, or `max_norm` is given and
        the table is not floating-point.
    TypeError
        If the ids are not integers.

    Examples
    --------
    >>> import ringlet
    >>> embedding_lookup(ringlet.Variable([[1.0, 0.0], [3.0, 4.0]]), [[1, 0]], max_norm=1.0)
    array([[[0.6, 0.8],
            [1. , 0. ]]])
    """
    table: Any = params if isinstance(params, NDArrayProtocol) else as_ndarray(params)
    indices = checked_indices(ids, table.shape)
    rows = gather_rows(table, indices)
    if max_norm is None or max_norm == math.inf:
        return rows
    if not max_norm > 0:
        raise InvalidArgumentError(f"max_norm is {max_norm!r}: expected a norm greater than 0")
    if not is_floating(rows.dtype):
        raise InvalidArgumentError(
            f"max_norm requires a floating-point table, but the table holds {rows.dtype}: omit max_norm"
        )
    axes = tuple(range(indices.ndim, rows.ndim))
    lengths = np.sqrt(np.sum(np.square(rows), axis=axes, keepdims=True))
    return rows * (max_norm / np.maximum(lengths, max_norm)).astype(rows.dtype)
