"""Pencils: layouts in which some dimensions are whole on each device, as FFTs, sorts and scans require."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ringlet.sharding.layout.layout import WHOLE, Layout, Shape, coarser, divisors, joint
from ringlet.sharding.resharding.regions import ArraySpec, IndexRange, Region
from ringlet.sharding.resharding.reshard import materialized, redistribute
from ringlet.sharding.resharding.tile_assembly import as_writable, assemble, full_ranges
from ringlet.sharding.sharded_array import ShardedArray


@lru_cache(maxsize=1024)
def pencil(layout: Layout, shape: Shape, axes: tuple[int, ...]) -> Layout:
    """Return a layout in which `axes` are whole: their cuts move to other dimensions, as far as tiles are long enough.

    Tiles that fit no other dimension are copied to several devices.
    """
    cuts = list(layout.cuts)
    for axis in axes:
        cut, cuts[axis] = cuts[axis], WHOLE
        others = [d for d in range(len(shape)) if d not in axes]
        for count in divisors(cut.count) if cut.count > 1 else ():
            fits = [d for d in others if shape[d] >= count * cuts[d].count]
            if fits and count > 1:
                # Tiles of equal size are preferred.
                d = max(fits, key=lambda d: (shape[d] % (count * cuts[d].count) == 0, shape[d] // cuts[d].count))
                cuts[d] = joint((cuts[d], coarser(cut, count)))
                break
    return layout.with_cuts(cuts)


def with_whole_axes(x: ShardedArray, axes: Sequence[int]) -> ShardedArray:
    """Return `x` with combined parts and whole `axes`, by an all-to-all exchange; the result may share its memory."""
    x = materialized(x)
    return redistribute(x, pencil(x._layout, x.shape, tuple(axes)))


def moved_back(made: ShardedArray, layout: Layout) -> ShardedArray:
    """Return a new result in another layout, as a writable array; the caller must not use `made` afterwards."""
    result = redistribute(made, layout)
    result._is_view, result._root = False, None
    return result


def all_gathered(x: Any) -> Any:
    """Gather a sharded array as a plain array on each device, and record this; return other values unchanged."""
    if not isinstance(x, ShardedArray):
        return x
    x = materialized(x)
    return redistribute(x, Layout.replicated(x._layout.num_devices, x.ndim))._gathered()


def rows_of(x: ShardedArray, ndim: int) -> ShardedArray:
    """Return an array with its first `ndim` dimensions, of which only the first stays divided, merged into one."""
    shape = (math.prod(x.shape[:ndim]), *x.shape[ndim:])
    return x if ndim == 1 else with_whole_axes(x, range(1, ndim)).reshape(shape)


def packed(name: str, padded: ShardedArray, counts: Any) -> ShardedArray:
    """Return the first ``counts[tile]`` rows of each tile of `padded`, redistributed evenly."""
    length, ends = len(padded) // len(counts), np.cumsum(counts)
    rest, zeros = full_ranges(padded.shape[1:]), (0,) * (padded.ndim - 1)
    regions = [
        Region(0, (int(end - count), *zeros), (IndexRange(tile * length, 1, int(count)), *rest))
        for tile, (count, end) in enumerate(zip(counts, ends, strict=True))
        if count
    ]
    if not regions:
        return as_writable(padded[:0])
    spec = ArraySpec((int(ends[-1]), *padded.shape[1:]), padded.dtype, padded._layout)
    return assemble(name, [padded], regions, [spec])
