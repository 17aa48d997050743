"""Shape inference: arrays without values, on which NumPy computes shapes, dtypes and errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringlet.sharding.sharded_array import ShardedArray
from ringlet.values.operator_proxy import plain

__all__ = [
    "Small",
    "addresses_of",
    "dtype_probe",
    "loop_dtype",
    "probe_array",
    "shape_of_reshape",
    "shape_probe",
    "small",
]

Array = NDArray[Any]
Small = tuple[np.dtype[Any], tuple[int, ...]]


def shape_probe(shape: Sequence[int], dtype: Any = bool) -> Array:
    """Return an array of a shape in the memory of one element.

    Examples
    --------
    >>> shape_probe((1 << 30, 4)).shape
    (1073741824, 4)
    """
    return np.broadcast_to(np.empty((), dtype), shape)


def dtype_probe(value: Any) -> Any:
    """Return an empty array for an array, anything else unchanged, for NumPy to infer a dtype.

    Examples
    --------
    >>> dtype_probe(np.ones((3, 4))), dtype_probe(2.5)
    (array([], dtype=float64), 2.5)
    """
    value = plain(value)
    return np.empty(0, value.dtype) if isinstance(value, (ShardedArray, np.ndarray)) else value


def loop_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype to pass to a ufunc loop: without time unit and byte order.

    Examples
    --------
    >>> loop_dtype(np.dtype("m8[s]")), loop_dtype(np.dtype("float32"))
    (dtype('<m8'), dtype('float32'))
    """
    return np.dtype(dtype.type) if dtype.kind in "mM" else dtype.newbyteorder("=")


def small(value: Any) -> Small:
    """Return dtype and shape for a trial reduction: dimensions of size 1, or 0 if they are empty.

    Examples
    --------
    >>> small(np.zeros((5, 0, 1)))
    (dtype('float64'), (1, 0, 1))
    """
    array = value if isinstance(value, ShardedArray) else np.asarray(value)
    return array.dtype, tuple(min(size, 1) for size in array.shape)


def probe_array(small: Small) -> Array:
    """Return the array of a dtype and shape for a trial call.

    Examples
    --------
    >>> probe_array((np.dtype("int8"), (1, 0)))
    array([], shape=(1, 0), dtype=int8)
    """
    dtype, shape = small
    return np.zeros(shape, dtype)


def addresses_of(shape: Sequence[int]) -> Array:
    """Return an array without memory whose dimensions are identified by their strides: 1, 2, 3, ...

    Reveals how a function permutes and drops dimensions; must not be read.

    Examples
    --------
    >>> addresses_of((4, 5, 6)).transpose(2, 0, 1).strides
    (3, 1, 2)
    """
    return np.lib.stride_tricks.as_strided(np.empty(1, np.int8), tuple(shape), tuple(range(1, len(shape) + 1)))


def shape_of_reshape(shape: Sequence[int], given: Any) -> tuple[int, ...]:
    """Return the shape of :func:`numpy.reshape`'s result, with -1 resolved.

    Raises
    ------
    ValueError, TypeError
        NumPy's.

    Examples
    --------
    >>> shape_of_reshape((4, 6), (-1, 3))
    (8, 3)
    """
    strides = [1]
    for size in reversed(shape[1:]):
        strides.append(strides[-1] * max(size, 1))
    fake = np.lib.stride_tricks.as_strided(np.empty(1, np.int8), tuple(shape), tuple(reversed(strides[: len(shape)])))
    made: tuple[int, ...] = fake.reshape(given).shape
    return made
