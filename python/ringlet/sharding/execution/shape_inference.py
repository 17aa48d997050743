"""Shape inference: arrays without values, on which NumPy computes shapes, dtypes and errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ringlet.sharding.layout.layout import Array
from ringlet.sharding.sharded_array import ShardedArray
from ringlet.values.operator_proxy import plain

Small = tuple[np.dtype[Any], tuple[int, ...]]


def shape_probe(shape: Sequence[int], dtype: Any = bool) -> Array:
    """Return an array of this shape that uses the memory of one element."""
    return np.broadcast_to(np.empty((), dtype), shape)


def dtype_probe(value: Any) -> Any:
    """Replace an array with an empty array, for dtype inference by NumPy; return other values unchanged."""
    value = plain(value)
    return np.empty(0, value.dtype) if isinstance(value, (ShardedArray, np.ndarray)) else value


def loop_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype to pass to a ufunc loop: without time unit and byte order."""
    return np.dtype(dtype.type) if dtype.kind in "mM" else dtype.newbyteorder("=")


def small(value: Any) -> Small:
    """Return the dtype and the shape for a trial reduction: dimensions of size 1, or 0 if they are empty."""
    array = value if isinstance(value, ShardedArray) else np.asarray(value)
    return array.dtype, tuple(min(size, 1) for size in array.shape)


def probe_array(small: Small) -> Array:
    """Return an array with this dtype and shape for a trial call."""
    dtype, shape = small
    return np.zeros(shape, dtype)


def addresses_of(shape: Sequence[int]) -> Array:
    """Return an array without memory whose dimensions are identified by their strides: 1, 2, 3, ...

    The strides reveal how a function permutes and drops dimensions; the elements must not be read.
    """
    return np.lib.stride_tricks.as_strided(np.empty(1, np.int8), tuple(shape), tuple(range(1, len(shape) + 1)))


def shape_of_reshape(shape: Sequence[int], given: Any) -> tuple[int, ...]:
    """Return the shape of :func:`numpy.reshape`'s result, with -1 resolved, or raise NumPy's error."""
    strides = [1]
    for size in reversed(shape[1:]):
        strides.append(strides[-1] * max(size, 1))
    fake = np.lib.stride_tricks.as_strided(np.empty(1, np.int8), tuple(shape), tuple(reversed(strides[: len(shape)])))
    made: tuple[int, ...] = fake.reshape(given).shape
    return made
