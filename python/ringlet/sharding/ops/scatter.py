"""Writes to selected elements: assignment to an index of arrays, put, place, fill_diagonal and similar functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ringlet.sharding.execution.array_function_table import first_given, implements
from ringlet.sharding.execution.shape_inference import shape_probe
from ringlet.sharding.layout.layout import Array
from ringlet.sharding.ops.ufunc_methods import at
from ringlet.sharding.products.contraction import operand
from ringlet.sharding.resharding.pencils import all_gathered, rows_of
from ringlet.sharding.sharded_array import ShardedArray

F = TypeVar("F", bound=Callable[..., Any])


class _Assignment:
    """Assignment with the interface of ``ufunc.at``; if an index is repeated, its last value is stored."""

    __name__ = "assign"

    @staticmethod
    def at(target: Array, key: Any, value: Any) -> None:
        target[key] = value


def _plain(key: Any) -> Any:
    return tuple(map(all_gathered, key)) if isinstance(key, tuple) else all_gathered(key)


def assign_at(x: ShardedArray, key: Any, value: Any) -> None:
    """Implement ``x[key] = value`` for an index of arrays: each device writes to its own tile.

    If the mask and the values are sharded, each value is sent to the device that needs it. Other indices and values are
    sent to all devices.
    """
    try:
        shape_probe(())[_plain(key)] if not x.ndim else None
        value = operand(value) if hasattr(value, "shape") else np.asarray(value, x.dtype)
    except (TypeError, ValueError):
        np.empty(x.shape, x.dtype)[_plain(key)] = value  # raises NumPy's error
        raise
    is_mask = isinstance(key, ShardedArray) and key.dtype == bool and key.shape == x.shape[: key.ndim] != ()
    if is_mask and isinstance(value, ShardedArray) and value.ndim == x.ndim - key.ndim + 1 and x.size:
        rows = rows_of(key, key.ndim)
        places = np.cumsum(rows) - 1
        count = int(np.count_nonzero(rows))
        if value.shape[0] in (1, count):
            if count:
                values = np.broadcast_to(value, (count, *value.shape[1:]))
                taken = np.take(values, np.maximum(places, 0), axis=0)
                taken = np.reshape(taken, (*key.shape, *taken.shape[1:]))
                mask = key.reshape(key.shape + (1,) * (x.ndim - key.ndim))
                np.copyto(x, taken, casting="unsafe", where=mask)  # type: ignore[arg-type]  # dispatched
            return
    if 0 in x.shape:
        shape_probe(x.shape).copy()[_plain(key)] = all_gathered(value)
        return
    index = key[0] if isinstance(key, tuple) and len(key) == 1 else key
    index = np.asarray(index) if isinstance(index, list) else index
    if not isinstance(index, (np.ndarray, ShardedArray)) or index.dtype != bool or index.ndim < x.ndim:
        while value.ndim > 1 and value.shape[0] == 1:
            value = value[0]
    at(_Assignment, (x, key, value), {})  # type: ignore[arg-type]


def _written(function: Callable[..., Any]) -> Callable[[F], F]:
    def register(implementation: F) -> F:
        def called(array: Any, *args: Any, **kwargs: Any) -> Any:
            return implementation(array, *args, **kwargs) if isinstance(array, ShardedArray) else NotImplemented

        implements(function)(first_given(function, called))
        return implementation

    return register


@_written(np.put)
def _put(a: ShardedArray, ind: Any, v: Any, mode: Any = "raise") -> None:
    try:
        values = np.ravel(all_gathered(v).astype(a.dtype) if hasattr(v, "dtype") else np.asarray(v, a.dtype))
        places = np.ravel(all_gathered(ind) if hasattr(ind, "dtype") else np.asarray(ind, np.intp))
        flat = np.take(np.arange(a.size), places, mode=mode)
    except (IndexError, TypeError, ValueError):
        np.put(np.empty(a.shape, a.dtype), all_gathered(ind), all_gathered(v), mode)  # raises NumPy's error
        raise
    if flat.size and values.size:
        values = np.resize(values, flat.size)
        assign_at(a, np.unravel_index(flat, a.shape) if a.ndim else (), values if a.ndim else values[-1])


@_written(np.putmask)
def _putmask(a: ShardedArray, mask: Any, values: Any) -> None:
    values, mask = operand(values), operand(mask)
    if np.shape(mask) != a.shape:
        np.putmask(shape_probe(a.shape).copy(), shape_probe(np.shape(mask)), True)  # may raise NumPy's error
        mask = np.reshape(mask, a.shape)
    if values.size:
        values = values if values.shape == a.shape else np.resize(values, a.shape)
        np.copyto(a, values, where=mask.astype(bool), casting="unsafe")  # type: ignore[arg-type]  # dispatched


@_written(np.place)
def _place(arr: ShardedArray, mask: Any, vals: Any) -> None:
    mask, vals = operand(mask), operand(vals)
    if mask.size != arr.size:
        np.place(shape_probe(arr.shape).copy(), shape_probe(mask.shape), [True])  # raises NumPy's error
    mask = np.reshape(mask, arr.shape).astype(bool)
    number = int(np.count_nonzero(mask))
    if number and not vals.size:
        raise ValueError("Cannot insert from an empty array!")
    if number:
        arr[mask] = np.resize(vals.astype(arr.dtype), number)


@_written(np.put_along_axis)
def _put_along_axis(arr: ShardedArray, indices: Any, values: Any, axis: Any) -> None:
    indices, values = operand(indices), operand(values)
    if axis is None:
        if indices.ndim != 1:
            # Raises NumPy's error for this number of dimensions.
            np.put_along_axis(np.empty(1, bool), shape_probe(indices.shape, np.dtype(int)), 0, None)
        _put(arr, indices, values)
        return
    shape = shape_probe(arr.shape)
    # Raises NumPy's error for an invalid axis, shape or dtype.
    np.take_along_axis(shape, np.broadcast_to(np.zeros((), indices.dtype), indices.shape), axis)
    key: list[Any] = [
        np.arange(size).reshape([-1 if d == place else 1 for d in range(arr.ndim)])
        for place, size in enumerate(arr.shape)
    ]
    key[axis] = indices
    arr[tuple(key)] = values


@_written(np.fill_diagonal)
def _fill_diagonal(a: ShardedArray, val: Any, wrap: bool = False) -> None:
    if a.ndim < 2 or (a.ndim > 2 and len(set(a.shape)) > 1):
        np.fill_diagonal(shape_probe(a.shape).copy(), True, wrap)  # raises NumPy's error for these shapes
    step = 1 + sum(math.prod(a.shape[d:]) for d in range(1, a.ndim))
    end = a.size if wrap or a.ndim > 2 else min(a.size, a.shape[1] ** 2)
    _put(a, np.arange(0, end, step), val)
