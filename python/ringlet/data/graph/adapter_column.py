"""Columns of other libraries' arrays, so that a dataset of tensors yields tensors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ringlet.collectives.adapters.array_adapters import in_kind_of, in_memory, kind_of, result_memory
from ringlet.collectives.buffers import as_ndarray
from ringlet.data.graph.table import ArrayColumn, NoneColumn, Rows
from ringlet.data.tensor_spec import TensorSpec


class AdapterColumn:
    """Column of the rows of another library's array; shares the array's memory where possible."""

    def __init__(self, value: Any) -> None:
        kind = kind_of(value)
        assert kind is not None
        self._value = value
        self._array = array = kind.as_ndarray(value)
        self.spec = TensorSpec(array.shape[1:], array.dtype)
        self.row_bytes = array.dtype.itemsize * math.prod(array.shape[1:])
        self.is_memory = True

    def __len__(self) -> int:
        return len(self._array)

    def row(self, number: int) -> Any:
        return in_kind_of(self._value, self._array[number, ...], is_own=True)

    def rows(self, rows: Rows) -> Any:
        """Return rows as one array, which shares memory for a slice where possible, and is otherwise a copy."""
        if isinstance(rows, slice):
            return in_kind_of(self._value, self._array[rows], is_own=True)
        memory = result_memory((len(rows), *self._array.shape[1:]), self._array.dtype)
        # Row numbers are in range; the checking mode ("raise") would buffer the output.
        self._array.take(rows, axis=0, out=memory[0], mode="clip")
        return in_memory(self._value, memory)


def array_column(array: Any) -> ArrayColumn | AdapterColumn | NoneColumn:
    """Return the column of an array of any library, or of None."""
    if array is None:
        return NoneColumn()
    return ArrayColumn(np.asarray(array)) if kind_of(array) is None else AdapterColumn(array)


def repeat_adapted(leaf: Any, count: int) -> Any:
    """Return a copy of an array of another library, repeated `count` times along a new first dimension."""
    array = as_ndarray(leaf)
    memory = result_memory((count, *array.shape), array.dtype)
    memory[0][...] = array
    return in_memory(leaf, memory)


def stack_adapted(leaves: Any) -> Any:
    """Return arrays of another library stacked along a new first dimension."""
    kind = kind_of(leaves[0])
    assert kind is not None
    arrays = [kind.as_ndarray(leaf) for leaf in leaves]
    memory = result_memory((len(arrays), *arrays[0].shape), arrays[0].dtype)
    np.stack(arrays, out=memory[0])
    return in_memory(leaves[0], memory)
