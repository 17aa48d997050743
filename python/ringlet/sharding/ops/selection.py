"""Selections of a number of elements that depends on values: masks, nonzero, compress, delete."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ringlet.sharding.execution.array_function_table import implements
from ringlet.sharding.execution.propagation import TileBoxes
from ringlet.sharding.execution.shape_inference import shape_probe
from ringlet.sharding.execution.tile_execution import apply
from ringlet.sharding.layout.factors import FactorMap
from ringlet.sharding.layout.layout import WHOLE, Array, Layout
from ringlet.sharding.resharding.pencils import everywhere, rows_of
from ringlet.sharding.resharding.regions import ArraySpec, IndexRange, Region
from ringlet.sharding.resharding.reshard import materialized, redistribute
from ringlet.sharding.resharding.tile_assembly import as_writable, assemble, full_ranges
from ringlet.sharding.sharded_array import ShardedArray


def select_rows(x: Any, mask: Any) -> ShardedArray:
    """Return the rows of an array where a mask of one dimension is true, in tiles of equal size.

    Devices select their own rows; then rows move to neighbours, because the numbers differ.
    """
    x, mask = (materialized(each) if isinstance(each, ShardedArray) else each for each in (x, mask))
    sharded = x if isinstance(x, ShardedArray) else mask
    cut = sharded._layout.cuts[0]
    if cut.count == 1 and isinstance(mask, ShardedArray):
        others = x._layout.cuts[1:] if isinstance(x, ShardedArray) else ()
        cut = mask._layout.cuts[0] if all(other == WHOLE for other in others) else cut
    x, mask = (
        redistribute(each, each._layout.with_cuts([cut, *each._layout.cuts[1:]]))
        if isinstance(each, ShardedArray)
        else each
        for each in (x, mask)
    )

    def count(tiles: list[Array], out: Array, _: TileBoxes) -> None:
        out[...] = np.count_nonzero(tiles[0])

    def choose(tiles: list[Array], out: Array, _: TileBoxes) -> None:
        chosen = tiles[0][tiles[1]]
        out[: len(chosen)] = chosen

    given = mask if isinstance(mask, ShardedArray) else x
    where = mask if given is mask else _mask_of(given, mask)
    counted = apply("select", FactorMap((("i",),), ("i",)), count, [where], np.intp, shape=(cut.count,))
    counts = everywhere(counted).tolist()
    most, rest = max(counts), tuple(range(x.ndim - 1))
    shape = (cut.count * most, *x.shape[1:])
    padded = apply("select", FactorMap((("i", *rest), ("i",)), ("i", *rest)), choose, [x, where], x.dtype, shape=shape)
    return packed("select", padded, counts, most)


def _mask_of(x: ShardedArray, mask: Array) -> ShardedArray:
    from ringlet.sharding.creation import place

    return place(mask, Layout(x._layout.num_devices, x._layout.cuts[:1], only=x._layout.only), x._group)


def packed(name: str, padded: ShardedArray, counts: Sequence[int], most: int) -> ShardedArray:
    """Return the first ``counts[tile]`` rows of each of the tiles of `most` rows, in tiles of equal size."""
    regions, start = [], 0
    for tile, count in enumerate(counts):
        if count:
            rows = IndexRange(tile * most, 1, count)
            offset = (start, *(0,) * (padded.ndim - 1))
            regions.append(Region(0, offset, (rows, *full_ranges(padded.shape[1:]))))
        start += count
    spec = ArraySpec((start, *padded.shape[1:]), padded.dtype, padded._layout)
    if not regions:
        return as_writable(padded[:0])
    return assemble(name, [padded], regions, [spec])


def select(x: Any, mask: Any) -> ShardedArray:
    """Return ``x[mask]`` for a Boolean mask of the first dimensions."""
    ndim = mask.ndim
    rows = [
        rows_of(each, ndim) if isinstance(each, ShardedArray) else each.reshape(-1, *each.shape[ndim:])
        for each in (x, mask)
    ]
    return select_rows(*rows)


def _positions(like: ShardedArray) -> ShardedArray:
    def kernel(_: list[Array], out: Array, where: TileBoxes) -> None:
        out[...] = np.arange(where.result[0].start, where.result[0].stop)

    made: ShardedArray = apply("arange", FactorMap((("i",),), ("i",)), kernel, [like], np.intp)
    return made


@implements(np.flatnonzero)
def flatnonzero(a: Any) -> Any:
    """Implement :func:`numpy.flatnonzero`."""
    mask = rows_of(a, a.ndim) != 0 if a.ndim else a.reshape(1) != 0
    return select_rows(_positions(mask), mask)


@implements(np.nonzero)
def nonzero(a: Any) -> Any:
    """Implement :func:`numpy.nonzero`."""
    if not a.ndim:
        return NotImplemented
    found = flatnonzero(a)
    return (found,) if a.ndim == 1 else np.unravel_index(found, a.shape)


@implements(np.argwhere)
def argwhere(a: Any) -> Any:
    """Implement :func:`numpy.argwhere`."""
    return np.transpose(np.stack(nonzero(a))) if a.ndim else NotImplemented


@implements(np.compress)
def compress(condition: Any, a: Any, axis: int | None = None, out: Any = None) -> Any:
    """Implement :func:`numpy.compress`."""
    mask, x = (each if isinstance(each, ShardedArray) else np.asarray(each) for each in (condition, a))
    if mask.ndim != 1:
        np.compress(shape_probe(mask.shape), shape_probe(x.shape), axis)  # raises NumPy's error
    if out is not None or not isinstance(x, ShardedArray) or not x.ndim:
        return NotImplemented
    x, axis = (rows_of(x, x.ndim), 0) if axis is None else (x, operator.index(axis))
    np.compress([False], shape_probe((1,) * x.ndim), axis)  # raises NumPy's error
    x = np.moveaxis(x, axis, 0)  # type: ignore[type-var]  # dispatched
    if len(mask) > len(x):
        return NotImplemented
    chosen: Any = select_rows(x[: len(mask)], mask != 0)
    return np.moveaxis(chosen, 0, axis)


@implements(np.extract)
def extract(condition: Any, arr: Any) -> Any:
    """Implement :func:`numpy.extract`."""
    return compress(np.ravel(condition), np.ravel(arr))


@implements(np.delete)
def delete(arr: Any, obj: Any, axis: int | None = None) -> Any:
    """Implement :func:`numpy.delete`."""
    if not isinstance(arr, ShardedArray):
        return NotImplemented
    x, along = (rows_of(arr, arr.ndim), 0) if axis is None else (arr, operator.index(axis))
    np.flip(shape_probe((1,) * x.ndim), along)  # raises NumPy's error
    obj = everywhere(obj)
    try:
        kept = np.delete(np.arange(x.shape[along]), obj)
    except IndexError:
        np.delete(shape_probe(x.shape), obj, along)  # NumPy's error names the axis
        raise
    mask = np.zeros(x.shape[along], bool)
    mask[kept] = True
    return np.compress(mask, x, along)
