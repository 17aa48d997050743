"""Functions that move, repeat or pad the elements of an array: roll, tile, repeat and pad."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringlet.sharding.execution.array_function_table import implements
from ringlet.sharding.execution.shape_inference import shape_probe, small
from ringlet.sharding.resharding.regions import ArraySpec, IndexRange, Region
from ringlet.sharding.resharding.reshard import materialized
from ringlet.sharding.resharding.tile_assembly import as_writable, assemble, full_ranges
from ringlet.sharding.sharded_array import ShardedArray

# Maximum number of regions in a transfer plan; with more, gathering the array costs less.
_MOST_REGIONS = 1024


def _from_ranges(name: str, x: ShardedArray, ranges: Sequence[Sequence[IndexRange]]) -> Any:
    """Assemble index ranges of `x` along each dimension in its layout; return NotImplemented for too many regions."""
    x = materialized(x)
    ranges = [[index_range for index_range in along if index_range.length] for along in ranges]
    count = int(np.prod([len(along) for along in ranges], dtype=float))
    if count > _MOST_REGIONS:
        return NotImplemented
    starts = [[0, *itertools.accumulate(index_range.length for index_range in along)] for along in ranges]
    regions = [
        Region(0, tuple(start[i] for start, i in zip(starts, places, strict=True)), chosen)
        for places, chosen in zip(
            itertools.product(*(range(len(along)) for along in ranges)), itertools.product(*ranges), strict=True
        )
    ]
    return assemble(name, [x], regions, [ArraySpec(tuple(start[-1] for start in starts), x.dtype, x._layout)])


def _ranges_of_indices(indices: NDArray[np.intp]) -> list[IndexRange]:
    ranges: list[IndexRange] = []
    for index in indices.tolist():
        if ranges:
            start, step, count = ranges[-1]
            if count == 1 and index - start in (-1, 0, 1):
                ranges[-1] = IndexRange(start, index - start, 2)
                continue
            if count > 1 and index == start + step * count:
                ranges[-1] = IndexRange(start, step, count + 1)
                continue
        ranges.append(IndexRange(index, 1, 1))
    return ranges


@implements(np.roll)
def roll(a: ShardedArray, shift: Any, axis: Any = None) -> Any:
    """Implement :func:`numpy.roll`: elements that leave a tile move to other tiles."""
    if axis is None:
        flat: Any = roll(a.ravel(), shift, 0)
        return flat if flat is NotImplemented else as_writable(flat.reshape(a.shape))
    np.roll(shape_probe((1,) * a.ndim), shift, axis)  # raises NumPy's error for an invalid shift or axis
    shifts = [0] * a.ndim
    for by, along in np.broadcast(shift, axis):
        shifts[operator.index(along) % a.ndim] += int(by)
    ranges = []
    for size, total in zip(a.shape, shifts, strict=True):
        by = total % size if size else 0
        ranges.append([IndexRange(size - by, 1, by), IndexRange(0, 1, size - by)])
    return _from_ranges("roll", a, ranges)


@implements(np.tile)
def tile(A: Any, reps: Any) -> Any:  # noqa: N803  # NumPy's name
    """Implement :func:`numpy.tile`."""
    if not isinstance(A, ShardedArray):
        return NotImplemented
    times = tuple(reps) if np.iterable(reps) else (reps,)
    if not all(isinstance(count, (int, np.integer)) and count >= 0 for count in times):
        np.tile(shape_probe(small(A)[1]), times)  # raises NumPy's error for negative counts
        return NotImplemented
    x = A[(None,) * (len(times) - A.ndim) + (...,)]
    times = (1,) * (x.ndim - len(times)) + times
    return _from_ranges(
        "tile", x, [[index_range] * int(count) for index_range, count in zip(full_ranges(x.shape), times, strict=True)]
    )


@implements(np.repeat)
def repeat(a: Any, repeats: Any, axis: int | None = None) -> Any:
    """Implement :func:`numpy.repeat`."""
    if not isinstance(a, ShardedArray) or isinstance(repeats, ShardedArray):
        return NotImplemented
    x: Any = np.ravel(a) if axis is None or a.ndim == 0 else a
    along = 0 if axis is None else operator.index(axis)
    times = np.asarray(repeats, getattr(repeats, "dtype", np.intp))  # truncated as in NumPy: 1.5 becomes 1
    np.repeat(np.empty(0), np.empty(0, times.dtype))  # raises NumPy's error for counts that are not integers
    np.repeat(shape_probe((1,) * x.ndim), 1, along)  # raises NumPy's error for the axis
    along %= x.ndim
    if times.size != 1:
        ranges = [[index_range] for index_range in full_ranges(x.shape)]
        ranges[along] = _ranges_of_indices(np.repeat(np.arange(x.shape[along]), times))  # raises NumPy's error
        return _from_ranges("repeat", x, ranges)
    np.repeat(shape_probe(small(x)[1]), times, along)
    count = max(0, int(times.reshape(())))
    wider = np.expand_dims(x, along + 1)
    wider = np.broadcast_to(wider, (*x.shape[: along + 1], count, *x.shape[along + 1 :]))
    merged = (*x.shape[:along], x.shape[along] * count, *x.shape[along + 1 :])
    made: Any = np.reshape(wider, merged)
    return as_writable(made) if made._root is None else made.copy()  # a view, as for one repetition, is copied


@implements(np.pad)
def pad(array: ShardedArray, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Any:
    """Implement :func:`numpy.pad` for most modes and options."""
    try:
        given = np.asarray(pad_width)
        widths = np.broadcast_to(given, (array.ndim, 2)).tolist()
    except (TypeError, ValueError):
        return NotImplemented
    is_whole = given.dtype.kind == "i" and given.min(initial=0) >= 0
    if is_whole and mode == "constant" and not kwargs.keys() - {"constant_values"}:
        return _padded_by_values(materialized(array), widths, kwargs.get("constant_values", 0))
    if is_whole and mode in _ENDS and not kwargs.keys() - {"stat_length"}:
        return _padded_by_results(array, widths, mode, **kwargs)
    if not is_whole or kwargs or mode not in ("edge", "reflect", "symmetric", "wrap"):
        return NotImplemented
    indices = [np.pad(np.arange(size), pair, mode) for size, pair in zip(array.shape, widths, strict=True)]
    return _from_ranges("pad", array, [_ranges_of_indices(along) for along in indices])


# How each mode computes the padding from the elements at an end.
_ENDS = {"maximum": np.max, "mean": np.mean, "median": np.median, "minimum": np.min, "empty": None}


def _padded_by_results(x: Any, widths: list[list[int]], mode: Any, stat_length: Any = None) -> Any:
    if 0 in x.shape:
        np.pad(shape_probe(x.shape), widths, mode)  # raises NumPy's error if an empty dimension is padded
    lengths = np.broadcast_to(np.asarray(stat_length), (x.ndim, 2))
    for axis, pair in enumerate(widths):
        before = (slice(None),) * axis
        slabs, size = [], x.shape[axis]
        for side, width in enumerate(pair):
            length = size if lengths[axis, side] is None else min(int(lengths[axis, side]), size)
            key: tuple[Any, ...] = (*before, slice(length) if side == 0 else slice(size - length, None))
            shape = [width if d == axis else extent for d, extent in enumerate(x.shape)]
            if mode == "empty":
                slab = np.zeros(shape, x.dtype)
            else:
                found = _ENDS[mode](x[key], axis, keepdims=True)  # type: ignore[misc]
                found = np.round(found) if x.dtype.kind in "biu" and mode in ("mean", "median") else found
                slab = np.broadcast_to(found.astype(x.dtype), shape)
            slabs.append(slab)
        x = np.concatenate([slabs[0], x, slabs[1]], axis)
    return x


def _padded_by_values(x: ShardedArray, widths: list[list[int]], values: Any) -> ShardedArray:
    """Concatenate the array, dimension by dimension, with slabs at both ends; slabs cover earlier padding."""
    values = np.broadcast_to(np.asarray(values), (x.ndim, 2))
    shape = tuple(size + before + after for size, (before, after) in zip(x.shape, widths, strict=True))
    operands: list[Any] = [x]
    regions = [Region(0, tuple(before for before, _ in widths), full_ranges(x.shape))]
    for d, pair in enumerate(widths):
        for side, width in enumerate(pair):
            offset = [0] * d + [0 if side == 0 else shape[d] - width] + [before for before, _ in widths[d + 1 :]]
            sizes = [*shape[:d], width, *x.shape[d + 1 :]]
            regions.append(Region(len(operands), tuple(offset), tuple(IndexRange(0, 0, size) for size in sizes)))
            operands.append(np.full((1,) * x.ndim, values[d, side], x.dtype))
    return assemble("pad", operands, regions, [ArraySpec(shape, x.dtype, x._layout)])
