"""Number of bytes sent between two layouts of an array."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ringlet.sharding.layout.dim_sharding import joint
from ringlet.sharding.layout.layout import Layout, Shape

__all__ = ["moved_bytes"]

Integers = NDArray[np.int64]


@lru_cache(maxsize=16384)
def moved_bytes(shape: Shape, itemsize: int, source: Layout, target: Layout) -> int:
    """Return the number of bytes that devices receive: the parts of their tiles that they lack.

    Combining parts costs the bytes of a reduce-scatter and, where several devices need the result, an all-gather.
    """
    if source == target:
        return 0
    starts, stops = _bounds(target, shape)
    receivers = list(target.holders)
    wanted = int((stops - starts).prod(axis=0)[receivers].sum())
    known = _overlaps(shape, source, target)[receivers]
    if not source.is_partial or target.is_partial:
        return (wanted - int(known.sum())) * itemsize
    # With p parts and r receivers, each element is sent (p - 1) + (r - 1) times, and once more if no receiver has a
    # part.
    size = math.prod(shape)
    tiles = _tiles(target) * source.num_devices + _tiles(source)
    _, first = np.unique(tiles[receivers], return_index=True)
    return (size * (source.parts.count - 2) + wanted + size - int(known[first].sum())) * itemsize


def _overlaps(shape: Shape, source: Layout, target: Layout) -> Integers:
    """Return the number of elements that each device both needs and has."""
    starts, stops = _bounds(target, shape)
    others_start, others_stop = _bounds(source, shape)
    sides = np.minimum(stops, others_stop) - np.maximum(starts, others_start)
    overlaps: Integers = np.maximum(sides, 0).prod(axis=0)
    if source.only is not None:
        overlaps[np.arange(source.num_devices) != source.only] = 0
    return overlaps


def _tiles(layout: Layout) -> Integers:
    """Return the tile number of each device."""
    return np.array(joint(layout.cuts).tile or (0,) * layout.num_devices)


@lru_cache(maxsize=1024)
def _bounds(layout: Layout, shape: Shape) -> tuple[Integers, Integers]:
    """Return the bounds of each device's box, [dimension, device]; of all devices, if one has the array."""
    sizes = np.array(shape, np.int64).reshape(-1, 1)
    lengths = -(-sizes // np.array([cut.count for cut in layout.cuts], np.int64).reshape(-1, 1))
    tiles = [cut.tile or (0,) * layout.num_devices for cut in layout.cuts]
    starts = np.array(tiles, np.int64).reshape(-1, layout.num_devices) * lengths
    return np.minimum(starts, sizes), np.minimum(starts + lengths, sizes)
