"""Rows of arrays of other libraries: a dataset of tensors gives tensors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ringlet.collectives.adapters.array_adapters import in_kind_of, in_memory, kind_of, result_memory
from ringlet.collectives.buffers import as_ndarray
from ringlet.data.graph.table import ArrayColumn, Rows
from ringlet.data.tensor_spec import TensorSpec

__all__ = ["KindColumn", "array_column", "repeated_in_kind", "stacked_in_kind"]


class KindColumn:
    """The rows of an array of another library along its first dimension; shares its memory where that can be.

    Parameters
    ----------
    value : array of another library
        Rows that follow each other are views of it, as the library's own slices are.
    """

    __slots__ = ("_array", "_value", "is_memory", "row_bytes", "spec")

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
        """Give one row."""
        return in_kind_of(self._value, self._array[number, ...], is_own=True)

    def rows(self, rows: Rows) -> Any:
        """Give many rows as one array: a view of a slice, a gathered copy of anything else."""
        if isinstance(rows, slice):
            return in_kind_of(self._value, self._array[rows], is_own=True)
        memory = result_memory((len(rows), *self._array.shape[1:]), self._array.dtype)
        # The numbers are right, and with the mode that checks them NumPy writes elsewhere first.
        self._array.take(rows, axis=0, out=memory[0], mode="clip")
        return in_memory(self._value, memory)


def array_column(array: Any) -> ArrayColumn | KindColumn:
    """Give the rows of an array of any library.

    Examples
    --------
    >>> array_column(np.arange(3)).row(1)
    np.int64(1)
    """
    return ArrayColumn(np.asarray(array)) if kind_of(array) is None else KindColumn(array)


def repeated_in_kind(leaf: Any, count: int) -> Any:
    """Give an array of another library `count` times, along a new first dimension.

    Returns
    -------
    array of that kind
        In memory of its own: functions of users, which may write to it, are tried out on such.
    """
    array = as_ndarray(leaf)
    memory = result_memory((count, *array.shape), array.dtype)
    memory[0][...] = array
    return in_memory(leaf, memory)


def stacked_in_kind(leaves: Any) -> Any:
    """Give arrays of another library along a new first dimension.

    Parameters
    ----------
    leaves : sequence
        Arrays of one kind, shape and dtype.

    Returns
    -------
    array of that kind
    """
    kind = kind_of(leaves[0])
    assert kind is not None
    arrays = [kind.as_ndarray(leaf) for leaf in leaves]
    memory = result_memory((len(arrays), *arrays[0].shape), arrays[0].dtype)
    np.stack(arrays, out=memory[0])
    return in_memory(leaves[0], memory)
