"""The memory of a variable that several processes share: a table of the core, beside which :class:`Storage` is private.

Reads give arrays of their own, which never change. Writes go to all processes that have mapped the table, row by row or
a few short rows at a time; each of these is as some writer left it.
"""

from __future__ import annotations

import itertools
import math
import secrets
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringlet import _core
from ringlet.collectives.collective_dtypes import is_known
from ringlet.errors import InvalidArgumentError
from ringlet.values.indexed_slices import SCATTERS, IndexedSlices, checked_rows
from ringlet.values.variables.storage import Change, replace
from ringlet.values.variables.update_opcodes import NAMES, assign_add, assign_sub

__all__ = ["TableForm", "TableStorage", "new_table_key"]

Array = NDArray[Any]
Shape = tuple[int, ...]

# What the core calls each change.
_OPS: dict[Change, int] = {replace: 0, assign_add: 1, assign_sub: 2} | {
    SCATTERS[f"scatter_{name}"]: code for code, name in enumerate(("update", "add", "sub", "mul", "div", "min", "max"))
}

_keys = itertools.count(secrets.randbits(62))


def new_table_key() -> int:
    """Give a number that no other table has, in this process or in another.

    Examples
    --------
    >>> new_table_key() != new_table_key()
    True
    """
    return next(_keys)


class TableForm:
    """How the values of a variable lie in a table: as they are, or as bytes where the core does not compute with them.

    Parameters
    ----------
    shape : tuple of int
    dtype : dtype
        Text and points in time are bytes there, one row for each of theirs.

    Examples
    --------
    >>> TableForm((3, 2), np.dtype("float32")).stored
    ((3, 2), dtype('float32'))
    >>> TableForm((), np.dtype("<U4")).stored
    ((1, 16), dtype('uint8'))
    """

    __slots__ = ("_is_numeric", "dtype", "shape", "stored")

    def __init__(self, shape: Shape, dtype: np.dtype[Any]) -> None:
        self.shape, self.dtype = shape, dtype
        self._is_numeric = is_known(dtype)
        row_bytes = math.prod(shape[1:]) * dtype.itemsize
        bytes_form = ((shape[0] if shape else 1), row_bytes), np.dtype(np.uint8)
        self.stored: tuple[Shape, np.dtype[Any]] = (shape, dtype) if self._is_numeric else bytes_form

    def stored_as_text(self) -> tuple[Shape, str]:
        """Give the shape and the name of the dtype of the table, for a message."""
        return self.stored[0], self.stored[1].name

    def to_table(self, rows: Array) -> Array:
        """Give rows of values, or a whole value, as the table has them."""
        if self._is_numeric:
            return rows
        ahead = rows.shape[: rows.ndim - len(self.shape) + 1] if self.shape else (1,)
        return np.ascontiguousarray(rows).reshape(-1).view(np.uint8).reshape(ahead + self.stored[0][1:])

    def from_table(self, stored: Array, shape: Shape) -> Array:
        """Give what :meth:`to_table` was given, without a copy."""
        return stored if self._is_numeric else np.ndarray(shape, self.dtype, stored)

    def check(self, change: Change) -> None:
        """Refuse what would compute with bytes.

        Raises
        ------
        InvalidArgumentError
        """
        if not self._is_numeric and _OPS[change]:
            raise InvalidArgumentError(
                f"{NAMES[change]} takes numbers, and the variable holds {self.dtype}: compute the new value yourself, "
                "and assign it"
            )


class TableStorage:
    """The one component of a variable, in a table.

    Parameters
    ----------
    key : int
        Which of all tables this is.
    table : _core.Table
    form : TableForm
    array_type : type, optional
        A subclass of ndarray that reads are of.

    Examples
    --------
    >>> import os
    >>> form = TableForm((2,), np.dtype(np.float64))
    >>> descriptor = _core.Table.create(*form.stored)
    >>> storage = TableStorage(new_table_key(), _core.Table(descriptor), form)
    >>> os.close(descriptor)
    >>> storage.write(replace, np.array([1.0, 2.0]))
    >>> storage.write(SCATTERS["scatter_add"], IndexedSlices(np.array([10.0]), [1]))
    >>> storage.read(0)
    array([ 1., 12.])
    """

    __slots__ = ("__weakref__", "_array_type", "_form", "_table", "key")

    def __init__(self, key: int, table: _core.Table, form: TableForm, array_type: type[Array] = np.ndarray) -> None:
        self.key = key
        self._table, self._form, self._array_type = table, form, array_type

    @property
    def array_type(self) -> type[Array]:
        """What reads are of."""
        return self._array_type

    def fileno(self) -> int:
        """Give an open file of the table, for other processes; it belongs to this object."""
        return self._table.fileno()

    def shape(self, component: int) -> Shape:
        """Give the shape of the value, which never changes."""
        return self._form.shape

    def read(self, component: int) -> Array:
        """Give a new read-only array of the value."""
        return self._given(self._form.from_table(self._table.read(), self._form.shape))

    def copy_rows(self, begin: int, end: int, out: Array) -> None:
        """Read the rows from `begin` up to `end`, which are rows that there are, into a contiguous array."""
        self._table.read(begin, end, self._form.to_table(out))

    def read_rows(self, begin: int, end: int) -> Array:
        """Give a new read-only array of the rows from `begin` up to `end`, which are rows that there are."""
        rows = self._table.read(begin, end)
        return self._given(self._form.from_table(rows, (end - begin, *self._form.shape[1:])))

    def gather(self, indices: Array) -> Array:
        """Give a new array with a row for each index.

        Parameters
        ----------
        indices : ndarray of int

        Raises
        ------
        InvalidArgumentError
            If there is no such row.
        """
        rows = self._table.gather(indices.astype(np.int64, copy=False))
        return self._given(self._form.from_table(rows, indices.shape + self._form.shape[1:]))

    def write(self, change: Change, value: Any) -> None:
        """Change the value, or rows of it.

        Parameters
        ----------
        change : callable
            One that assignments and scatters of variables make.
        value : ndarray, number or IndexedSlices
            Of the dtype of the variable.

        Raises
        ------
        InvalidArgumentError
            If it has another shape, there is no such row, or the change is none that values of this dtype know.
        """
        form = self._form
        form.check(change)
        if type(value) is IndexedSlices:
            indices, rows = checked_rows(value, form.shape, form.dtype, change is SCATTERS["scatter_div"])
            if rows.size:
                self._table.scatter(_OPS[change], indices.astype(np.int64, copy=False), form.to_table(rows))
            return
        array = np.asarray(value, form.dtype)
        if array.size:
            self._table.update(_OPS[change], form.to_table(array))

    def _given(self, array: Array) -> Array:
        return array if self._array_type is np.ndarray else array.view(self._array_type)
