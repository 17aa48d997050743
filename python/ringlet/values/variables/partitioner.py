"""Partitioners, which determine the number of shards of a variable on parameter servers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ringlet.values.value_conversion import as_dtype

# Dtype kinds of strings, whose size is given by bytes_per_string. Datasets and tf.string store strings as objects.
_TEXT = "SUO"


class Partitioner:
    """Base class of partitioners (``tf.distribute.experimental.partitioners.Partitioner``).

    Any callable with the parameters of :meth:`__call__` is also a partitioner.

    Examples
    --------
    >>> class Halves(Partitioner):
    ...     def __call__(self, shape, dtype, axis=0):
    ...         return [2] + [1] * (len(shape) - 1)
    >>> Halves()((10, 4), "float32")
    [2, 1]
    """

    def __call__(self, shape: Sequence[int], dtype: Any, axis: int = 0) -> list[int]:
        """Return the number of shards along each axis.

        Parameters
        ----------
        shape : sequence of int
            Shape of the variable.
        dtype : dtype-like
            Dtype of the variable.
        axis : int
            Axis to split; strategies split axis 0.

        Returns
        -------
        list of int, length ``len(shape)``
            The number along `axis`, and 1 for all other axes.

        Raises
        ------
        ValueError
            If `axis` is out of range, or the shape is not fully known.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define __call__")


class FixedShardsPartitioner(Partitioner):
    """Partitioner with a fixed number of shards, at most one per row.

    (``tf.distribute.experimental.partitioners.FixedShardsPartitioner``.)

    Parameters
    ----------
    num_shards : int

    Examples
    --------
    >>> FixedShardsPartitioner(2)((10, 3), "float32"), FixedShardsPartitioner(8)((3, 1000), "float32")
    ([2, 1], [3, 1])
    """

    def __init__(self, num_shards: int) -> None:
        self._num_shards = num_shards

    def __call__(self, shape: Sequence[int], dtype: Any, axis: int = 0) -> list[int]:
        """Return the number of shards along each axis; see :class:`Partitioner`."""
        sizes = _known_sizes(shape, axis)
        return _along(sizes, axis, min(self._num_shards, sizes[axis]))


class MinSizePartitioner(Partitioner):
    """Partitioner with ``ceil(size_bytes / min_shard_bytes)`` shards, at most one per row.

    (``tf.distribute.experimental.partitioners.MinSizePartitioner``.)

    Parameters
    ----------
    min_shard_bytes : int
    max_shards : int
        Maximum number of shards.
    bytes_per_string : int
        Assumed size of one string.

    Raises
    ------
    ValueError
        If an argument is less than 1.

    Examples
    --------
    >>> MinSizePartitioner(4, max_shards=10)((6, 1), "float32"), MinSizePartitioner(8, max_shards=10)((6, 1), "float32")
    ([6, 1], [3, 1])
    """

    def __init__(self, min_shard_bytes: int = 256 << 10, max_shards: int = 1, bytes_per_string: int = 16) -> None:
        _check_positive("min_shard_bytes", min_shard_bytes)
        _check_positive("max_shards", max_shards)
        _check_positive("bytes_per_string", bytes_per_string)
        self._min_shard_bytes, self._max_shards = min_shard_bytes, max_shards
        self._bytes_per_string = bytes_per_string

    def __call__(self, shape: Sequence[int], dtype: Any, axis: int = 0) -> list[int]:
        """Return the number of shards along each axis; see :class:`Partitioner`."""
        sizes = _known_sizes(shape, axis)
        size_bytes = math.prod(sizes) * _element_bytes(dtype, self._bytes_per_string)
        wanted = math.ceil(size_bytes / self._min_shard_bytes)
        return _along(sizes, axis, max(1, min(sizes[axis], self._max_shards, wanted)))


class MaxSizePartitioner(Partitioner):
    """Partitioner with the smallest number of shards of at most `max_shard_bytes` each.

    (``tf.distribute.experimental.partitioners.MaxSizePartitioner``.)

    Parameters
    ----------
    max_shard_bytes : int
        A row that exceeds this size forms its own shard.
    max_shards : int, optional
        Maximum number of shards, which takes precedence over `max_shard_bytes`; no limit if None or 0.
    bytes_per_string : int
        Assumed size of one string.

    Raises
    ------
    ValueError
        If an argument is less than 1, except a `max_shards` of 0.

    Examples
    --------
    >>> MaxSizePartitioner(4)((6, 1), "float32"), MaxSizePartitioner(4, max_shards=2)((6, 1), "float32")
    ([6, 1], [2, 1])
    """

    def __init__(self, max_shard_bytes: int, max_shards: int | None = None, bytes_per_string: int = 16) -> None:
        _check_positive("max_shard_bytes", max_shard_bytes)
        if max_shards:  # 0 means no limit, as in TensorFlow
            _check_positive("max_shards", max_shards)
        _check_positive("bytes_per_string", bytes_per_string)
        self._max_shard_bytes, self._max_shards = max_shard_bytes, max_shards
        self._bytes_per_string = bytes_per_string

    def __call__(self, shape: Sequence[int], dtype: Any, axis: int = 0) -> list[int]:
        """Return the number of shards along each axis; see :class:`Partitioner`."""
        sizes = _known_sizes(shape, axis)
        count, rows = math.prod(sizes), sizes[axis]
        if not count:
            return [1] * len(sizes)
        row_bytes = count // rows * _element_bytes(dtype, self._bytes_per_string)
        rows_per_shard = max(1, self._max_shard_bytes // row_bytes)
        return _along(sizes, axis, min(math.ceil(rows / rows_per_shard), self._max_shards or rows))


def _check_positive(name: str, value: int) -> None:
    if value < 1:
        raise ValueError(f"Argument `{name}` must be positive. Received: {value}")


def _known_sizes(shape: Any, axis: int) -> tuple[int, ...]:
    sizes = (shape,) if isinstance(shape, (int, np.integer)) else None if shape is None else tuple(shape)
    if sizes is None or None in sizes:
        raise ValueError(
            f"shape is not fully defined: {'<unknown>' if sizes is None else sizes}. Pass a shape without None"
        )
    if not -len(sizes) <= axis < len(sizes):
        raise ValueError(
            f"Cannot partition variable along axis {axis} when shape is only {sizes}: it has {len(sizes)} axes"
        )
    return sizes


def _along(shape: Sequence[int], axis: int, shards: int) -> list[int]:
    partitions = [1] * len(shape)
    partitions[axis] = shards
    return partitions


def _element_bytes(dtype: Any, bytes_per_string: int) -> int:
    if dtype is None:  # rejected, because np.dtype(None) is float64
        raise TypeError("dtype is None: pass the dtype of the variable, for example 'float32'")
    known = as_dtype(dtype)
    return bytes_per_string if known.kind in _TEXT else known.itemsize
