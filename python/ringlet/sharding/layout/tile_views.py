"""Tiles of a tensor as views."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ringlet import _core
from ringlet.collectives.argument_parsing import shortened
from ringlet.errors import PartitionError

Array = np.ndarray[Any, np.dtype[Any]]


def tile_views(tensor: Array, partition_dimensions: Sequence[int]) -> list[Array]:
    """Divide a tensor into equal tiles without copying.

    Parameters
    ----------
    tensor : ndarray, shape (d0, d1, ...)
        Tensor to divide, of any dtype and layout. Every tile shares its memory: writes to a tile change the tensor.
        Tiles of a read-only tensor are read-only.
    partition_dimensions : sequence of int, length ``tensor.ndim``
        Number of tiles along each dimension; ``(2, 1)`` halves the rows.

    Returns
    -------
    list of ndarray, length ``prod(partition_dimensions)``
        Views in row-major tile order, each of shape
        ``(d0 // partition_dimensions[0], d1 // partition_dimensions[1], ...)``.

    Raises
    ------
    TypeError
        If `tensor` is not an ndarray.
    PartitionError
        If a dimension is not a multiple of its number of tiles, or `partition_dimensions` does not have one whole
        number for each dimension.

    References
    ----------
    tensorflow/tensorflow, ``tensorflow/python/distribute/tpu_strategy.py``,
    ``experimental_split_to_logical_devices``: the same tiles in the same order.

    Examples
    --------
    >>> import ringlet
    >>> [tile.tolist() for tile in ringlet.sharding.tile_views(np.arange(6).reshape(2, 3), (2, 1))]
    [[[0, 1, 2]], [[3, 4, 5]]]
    """
    if not isinstance(tensor, np.ndarray):
        raise TypeError(
            f"cannot divide a {type(tensor).__name__} into views: expected an ndarray; convert with np.asarray."
        )
    try:
        parts = [operator.index(part) for part in partition_dimensions]
    except TypeError:
        raise PartitionError(
            f"partition_dimensions is {shortened(partition_dimensions)}: expected a sequence of {tensor.ndim} "
            f"integers, the number of tiles along each dimension of shape {tensor.shape}."
        ) from None
    return _core.tile_views(tensor, parts)
