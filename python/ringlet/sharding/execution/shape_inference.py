"""Arrays without values that NumPy is asked about: what shape and dtype a function gives, what error it raises."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringlet.sharding.sharded_array import ShardedArray
from ringlet.values.operator_proxy import plain

__all__ = ["Small", "addresses_of", "loop_dtype", "shape_of_reshape", "shaped", "small", "stand_in", "typed"]

Array = NDArray[Any]
Small = tuple[np.dtype[Any], tuple[int, ...]]


def shaped(shape: Sequence[int], dtype: Any = bool) -> Array:
    """Give an array of a shape that takes the memory of one element.

    Examples
    --------
    >>> shaped((1 << 30, 4)).shape
    (1073741824, 4)
    """
    return np.broadcast_to(np.empty((), dtype), shape)


def typed(value: Any) -> Any:
    """Give what NumPy finds the dtype of a result with: an empty array for an array, anything else as it is.

    Examples
    --------
    >>> typed(np.ones((3, 4))), typed(2.5)
    (array([], dtype=float64), 2.5)
    """
    value = plain(value)
    return np.empty(0, value.dtype) if isinstance(value, (ShardedArray, np.ndarray)) else value


def loop_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Give what a ufunc is told to compute in: it takes no unit of time, and no order of bytes.

    Examples
    --------
    >>> loop_dtype(np.dtype("m8[s]")), loop_dtype(np.dtype("float32"))
    (dtype('<m8'), dtype('float32'))
    """
    return np.dtype(dtype.type) if dtype.kind in "mM" else dtype.newbyteorder("=")


def small(value: Any) -> Small:
    """Give dtype and shape of an array to try a reduction on: each dimension has one element, or none as it has none.

    Examples
    --------
    >>> small(np.zeros((5, 0, 1)))
    (dtype('float64'), (1, 0, 1))
    """
    array = value if isinstance(value, ShardedArray) else np.asarray(value)
    return array.dtype, tuple(min(size, 1) for size in array.shape)


def stand_in(small: Small) -> Array:
    """Make the array of a dtype and shape to try a call on.

    Examples
    --------
    >>> stand_in((np.dtype("int8"), (1, 0)))
    array([], shape=(1, 0), dtype=int8)
    """
    dtype, shape = small
    return np.zeros(shape, dtype)


def addresses_of(shape: Sequence[int]) -> Array:
    """Give an array without memory whose dimensions are told apart by their strides: 1, 2, 3, ...

    Functions that turn and drop dimensions say by it what they do; nothing may read it.

    Examples
    --------
    >>> addresses_of((4, 5, 6)).transpose(2, 0, 1).strides
    (3, 1, 2)
    """
    return np.lib.stride_tricks.as_strided(np.empty(1, np.int8), tuple(shape), tuple(range(1, len(shape) + 1)))


def shape_of_reshape(shape: Sequence[int], given: Any) -> tuple[int, ...]:
    """Tell what shape :func:`numpy.reshape` gives, one -1 in what it was given filled in.

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
