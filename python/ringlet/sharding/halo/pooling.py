"""Pooling of sharded and of plain arrays."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ringlet.collectives.argument_parsing import shortened
from ringlet.sharding.explain_operations import recorded_as_one
from ringlet.sharding.halo.cache_blocks import wide
from ringlet.sharding.halo.halo_apply import as_operand, check_cotangent
from ringlet.sharding.halo.reduce_window import gradient, reduce_windows, reduced
from ringlet.sharding.halo.windows import POINTWISE, Numbers, Padding, Windows, counted, per_dimension, windows_of
from ringlet.sharding.layout.layout import Array, Shape


def max_pool(
    x: Any,
    window_shape: Numbers,
    strides: Numbers | None = None,
    padding: Padding = "VALID",
    *,
    data_format: str | None = None,
) -> Any:
    """Return the maximum of each window along the spatial dimensions.

    Parameters
    ----------
    x : array-like
    window_shape : int or sequence of int
        Size along each spatial dimension.
    strides : int or sequence of int, optional
        Step of the windows; by default, windows do not overlap.
    padding : str or sequence of (int, int)
        ``"VALID"``, ``"SAME"``, ``"SAME_LOWER"``, or the padding before and after each spatial dimension.
    data_format : str, optional
        A letter for each dimension, N for the batch and C for features, such as ``"NCHW"``. The default is batch first
        and features last.

    Returns
    -------
    ShardedArray, or ndarray if `x` is not sharded
        Divided as `x` is. If spatial dimensions are divided, each tile also reads the neighbouring elements in its
        windows.

    Raises
    ------
    ValueError
        If a size, stride or padding does not fit the array.

    Examples
    --------
    >>> from ringlet.sharding import Sharding, max_pool, shard
    >>> image = shard(np.arange(16).reshape(1, 4, 4, 1), Sharding.tiled((1, 2, 1, 1)))
    >>> np.asarray(max_pool(image, 2))[0, :, :, 0]
    array([[ 5,  7],
           [13, 15]])
    """
    x = as_operand(x)
    return reduced("max_pool", x, np.maximum, _pool_windows(x, window_shape, strides, padding, data_format), x.dtype)


def max_pool_vjp(
    x: Any,
    cotangent: Any,
    window_shape: Numbers,
    strides: Numbers | None = None,
    padding: Padding = "VALID",
    *,
    data_format: str | None = None,
) -> Any:
    """Return the gradient of :func:`max_pool`, given the gradient of its result.

    Parameters
    ----------
    x : array-like
        The operand of the pooling.
    cotangent : array-like
        The gradient of the result, with the result's shape. The first maximum of each window, in row-major order,
        receives it.
    window_shape, strides, padding, data_format
        As for :func:`max_pool`.

    Returns
    -------
    ShardedArray, or ndarray if neither is sharded
        Has the shape of `x`.

    Raises
    ------
    ValueError
        If the shape of `cotangent` differs from the result's.

    Examples
    --------
    >>> from ringlet.sharding import max_pool_vjp
    >>> max_pool_vjp(np.array([3, 1, 4, 1]).reshape(1, 4, 1), np.ones((1, 2, 1)), 2).ravel()
    array([1., 0., 1., 0.])
    """
    x = as_operand(x)
    windows = _pool_windows(x, window_shape, strides, padding, data_format)
    return gradient("max_pool_vjp", x, as_operand(cotangent), np.maximum, windows)


def avg_pool(
    x: Any,
    window_shape: Numbers,
    strides: Numbers | None = None,
    padding: Padding = "VALID",
    *,
    data_format: str | None = None,
    count_include_pad: bool = False,
) -> Any:
    """Return the mean of each window along the spatial dimensions.

    Parameters
    ----------
    x, window_shape, strides, padding, data_format
        As for :func:`max_pool`.
    count_include_pad : bool
        Whether padding counts as zeros; otherwise it is excluded.

    Returns
    -------
    ShardedArray, or ndarray if `x` is not sharded
        Has the dtype of ``np.mean(x)``.

    Raises
    ------
    ValueError
        If a size, stride or padding does not fit the array.

    Examples
    --------
    >>> from ringlet.sharding import avg_pool
    >>> avg_pool(np.array([2, 4, 6, 8]).reshape(1, 4, 1), 3, 1, "SAME").ravel()
    array([3., 4., 6., 7.])
    """
    x = as_operand(x)
    windows = _pool_windows(x, window_shape, strides, padding, data_format)
    dtype = np.mean(np.zeros(1, x.dtype)).dtype

    def work() -> Any:
        sums = reduced("avg_pool", x, np.add, windows, wide(dtype))
        return (sums / _counts(x.shape, windows, wide(dtype), count_include_pad)).astype(dtype, copy=False)

    return recorded_as_one("avg_pool", x, work)


def avg_pool_vjp(
    x: Any,
    cotangent: Any,
    window_shape: Numbers,
    strides: Numbers | None = None,
    padding: Padding = "VALID",
    *,
    data_format: str | None = None,
    count_include_pad: bool = False,
) -> Any:
    """Return the gradient of :func:`avg_pool`, given the gradient of its result.

    Parameters
    ----------
    x : array-like
        The operand of the pooling; only its shape matters.
    cotangent : array-like
        The gradient of the result, with the result's shape.
    window_shape, strides, padding, data_format, count_include_pad
        As for :func:`avg_pool`.

    Returns
    -------
    ShardedArray, or ndarray if neither is sharded
        Has the shape of `x`.

    Raises
    ------
    ValueError
        If the shape of `cotangent` differs from the result's.

    Examples
    --------
    >>> from ringlet.sharding import avg_pool_vjp
    >>> avg_pool_vjp(np.zeros((1, 4, 1)), np.array([2.0, 4.0]).reshape(1, 2, 1), 2).ravel()
    array([1., 1., 2., 2.])
    """
    x, cotangent = as_operand(x), as_operand(cotangent)
    windows = _pool_windows(x, window_shape, strides, padding, data_format)

    def work() -> Any:
        shares = cotangent / _counts(x.shape, windows, cotangent.dtype, count_include_pad)
        return gradient("avg_pool_vjp", x, shares, np.add, windows)

    check_cotangent(cotangent, counted(x.shape, windows))
    return recorded_as_one("avg_pool_vjp", (x, cotangent), work)


def _pool_windows(
    x: Any, window_shape: Numbers, strides: Numbers | None, padding: Padding, data_format: str | None
) -> Windows:
    """Return the windows along spatial dimensions, and windows of one element along batch and features."""
    spatial = _spatial(x.ndim, data_format)
    if not spatial and not (isinstance(window_shape, Sequence) and not window_shape):
        raise ValueError(
            f"window_shape is {shortened(window_shape)}, but an array of shape {x.shape} has only batch and feature "
            "dimensions: add spatial dimensions, as in x[np.newaxis, ..., np.newaxis], or use "
            "ringlet.sharding.reduce_window, whose windows lie along all dimensions"
        )
    sizes = per_dimension("window_shape", window_shape, len(spatial))
    lengths, names = [x.shape[dimension] for dimension in spatial], ("strides", "", "")
    windows = [POINTWISE] * x.ndim
    for dimension, window in zip(
        spatial, windows_of(lengths, sizes, sizes if strides is None else strides, padding, names=names), strict=True
    ):
        windows[dimension] = window
    return tuple(windows)


def _spatial(ndim: int, data_format: Any) -> list[int]:
    letters = "N" + "." * (ndim - 2) + "C" if data_format is None else data_format
    if not isinstance(letters, str) or len(letters) != ndim or letters.count("N") != 1 or letters.count("C") != 1:
        raise ValueError(
            f"data_format {letters!r} does not match an array of {ndim} dimensions: pass one letter for each "
            "dimension, N for the batch, C for features, and other letters for spatial dimensions"
        )
    return [dimension for dimension, letter in enumerate(letters) if letter not in "NC"]


@lru_cache(maxsize=256)
def _counts(shape: Shape, windows: Windows, dtype: np.dtype[Any], count_include_pad: bool) -> Array:
    """Return the number of elements of each window as a broadcastable array; along each axis at least 1."""
    counts: Any = np.ones((1,) * len(shape), dtype)
    for axis, (length, window) in enumerate(zip(shape, windows, strict=True)):
        if window == POINTWISE:
            continue
        along = np.full(window.count(length), window.size, dtype)
        if not count_include_pad:
            reduce_windows(np.ones(length, dtype), along, (window,), np.add)
        counts = counts * np.maximum(along, 1).reshape((-1,) + (1,) * (len(shape) - axis - 1))
    counts.flags.writeable = False
    return counts  # type: ignore[no-any-return]
