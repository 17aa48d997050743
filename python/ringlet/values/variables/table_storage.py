"""TableStorage: storage of a variable in a table that several processes map, or access through a parameter server.

Reads return private copies. Writes are visible to all processes that map the table; each row, or group of short rows,
is written atomically.
"""

from __future__ import annotations

import itertools
import math
import secrets
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringlet.collectives.collective_dtypes import is_known
from ringlet.errors import InvalidArgumentError
from ringlet.values.indexed_slices import SCATTERS, IndexedSlices, checked_rows
from ringlet.values.variables.scatter_nd import rows_of
from ringlet.values.variables.storage import Change, replace
from ringlet.values.variables.update_opcodes import NAMES, assign_add, assign_sub

Array = NDArray[Any]
Shape = tuple[int, ...]

# The core's opcode of each update.
_OPS: dict[Change, int] = {replace: 0, assign_add: 1, assign_sub: 2} | {
    SCATTERS[f"scatter_{name}"]: code for code, name in enumerate(("update", "add", "sub", "mul", "div", "min", "max"))
}

_keys = itertools.count(secrets.randbits(62))


def new_table_key() -> int:
    """Return a key that is unique across processes."""
    return next(_keys)


class TableForm:
    """Layout of a variable's values in a table: unchanged, or as rows of bytes for dtypes the core does not support."""

    __slots__ = ("_is_numeric", "dtype", "shape", "stored")

    def __init__(self, shape: Shape, dtype: np.dtype[Any]) -> None:
        self.shape, self.dtype = shape, dtype
        self._is_numeric = is_known(dtype)
        row_bytes = math.prod(shape[1:]) * dtype.itemsize
        bytes_form = ((shape[0] if shape else 1), row_bytes), np.dtype(np.uint8)
        self.stored: tuple[Shape, np.dtype[Any]] = (shape, dtype) if self._is_numeric else bytes_form

    def stored_as_text(self) -> tuple[Shape, str]:
        """Return the shape and dtype name of the table, for requests."""
        return self.stored[0], self.stored[1].name

    def to_table(self, rows: Array) -> Array:
        """Convert rows, or a whole value, to the layout of the table."""
        if self._is_numeric:
            return rows
        ahead = rows.shape[: rows.ndim - len(self.shape) + 1] if self.shape else (1,)
        return np.ascontiguousarray(rows).reshape(-1).view(np.uint8).reshape(ahead + self.stored[0][1:])

    def from_table(self, stored: Array, shape: Shape) -> Array:
        """Undo :meth:`to_table`, without a copy."""
        return stored if self._is_numeric else np.ndarray(shape, self.dtype, stored)

    def check(self, change: Change) -> None:
        """Raise an error for arithmetic updates of values that the table holds as bytes."""
        if not self._is_numeric and _OPS[change]:
            raise InvalidArgumentError(
                f"{NAMES[change]} requires numbers, but the variable holds {self.dtype}: compute the new value "
                "and assign it"
            )


class TableStorage:
    """The single component of a variable, stored in a table."""

    __slots__ = ("__weakref__", "_array_type", "_form", "_table", "key")

    def __init__(self, key: int, table: Any, form: TableForm, array_type: type[Array] = np.ndarray) -> None:
        """Store values in a `_core.Table`, or in an object with the same methods and a parameter server's `index`."""
        self.key = key
        self._table, self._form, self._array_type = table, form, array_type

    @property
    def array_type(self) -> type[Array]:
        """The type of arrays returned by reads."""
        return self._array_type

    @property
    def server_index(self) -> int | None:
        """Index of the parameter server whose process accesses the table; None if this process has mapped it."""
        index: int | None = getattr(self._table, "index", None)
        return index

    def fileno(self) -> int:
        """Return the file descriptor of a mapped table, to pass to other processes; owned by this object."""
        descriptor: int = self._table.fileno()
        return descriptor

    def shape(self, component: int) -> Shape:
        """Return the shape of the value, which is fixed."""
        return self._form.shape

    def read(self, component: int) -> Array:
        """Return the value as a new read-only array."""
        return self._as_array_type(self._form.from_table(self._table.read(), self._form.shape))

    def copy_rows(self, begin: int, end: int, out: Array) -> None:
        """Copy the rows in [begin, end), which must be in range, to a contiguous array."""
        self._table.read(begin, end, self._form.to_table(out))

    def read_rows(self, begin: int, end: int) -> Array:
        """Return the rows in [begin, end), which must be in range, as a new read-only array."""
        rows = self._table.read(begin, end)
        return self._as_array_type(self._form.from_table(rows, (end - begin, *self._form.shape[1:])))

    def gather(self, indices: Array) -> Array:
        """Return a new array with a row for each index."""
        rows = self._table.gather(indices.astype(np.int64, copy=False))
        return self._as_array_type(self._form.from_table(rows, indices.shape + self._form.shape[1:]))

    def write(self, change: Change, value: Any) -> None:
        """Update the value, or some of its rows, with an operand of the variable's dtype."""
        form = self._form
        if type(value) is IndexedSlices:
            change, value = rows_of(change, value, form.shape)
        form.check(change)
        if type(value) is IndexedSlices:
            indices, rows = checked_rows(value, form.shape, form.dtype, change is SCATTERS["scatter_div"])
            if rows.size:
                self._table.scatter(_OPS[change], indices.astype(np.int64, copy=False), form.to_table(rows))
            return
        array = np.asarray(value, form.dtype)
        if array.size:
            self._table.update(_OPS[change], form.to_table(array))

    def _as_array_type(self, array: Array) -> Array:
        return array if self._array_type is np.ndarray else array.view(self._array_type)
