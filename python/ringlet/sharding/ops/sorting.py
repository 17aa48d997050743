"""Sort and similar functions: whole lines on each device, or one long line by a sample sort."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ringlet.sharding.execution.array_function_table import implements
from ringlet.sharding.execution.propagation import TileBoxes
from ringlet.sharding.execution.tile_execution import apply
from ringlet.sharding.layout.factors import FactorMap
from ringlet.sharding.layout.layout import Array, tile_bounds
from ringlet.sharding.resharding.pencils import all_gathered, moved_back, packed, rows_of, with_whole_axes
from ringlet.sharding.resharding.regions import ArraySpec, IndexRange, Region
from ringlet.sharding.resharding.reshard import materialized
from ringlet.sharding.resharding.tile_assembly import assemble
from ringlet.sharding.sharded_array import ShardedArray

# Approximate cost of sorting lines, as a number of passes over the data.
_EFFORT = 8.0
_LINE = FactorMap((("i",),), ("i",))


def along_lines(function: Callable[..., Any], a: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a NumPy function that reorders elements along `axis`.

    If `axis` is divided, its tiles move to another dimension and back. A divided array of one dimension, without
    fields, is sorted by a sample sort.
    """
    bound = _signature(function).bind(a, *args, **kwargs)
    given = bound.arguments
    if not isinstance(a, ShardedArray) or a.dtype.hasobject or not a.ndim:
        return NotImplemented
    if given.get("axis", -1) is None:
        a, given["axis"] = rows_of(a, a.ndim), 0
        given[next(iter(given))] = a
        return along_lines(function, *bound.args, **bound.kwargs)
    axis = given.get("axis", -1)
    # np.partition checks `kth` against the length of `axis`, so the probe has the original length.
    line = operator.index(axis) % a.ndim if "kth" in given else None
    shape = tuple(size if place == line else min(size, 1) for place, size in enumerate(a.shape))
    model = function(np.zeros(shape, a.dtype), *bound.args[1:], **bound.kwargs)  # may raise NumPy's error
    x = materialized(a)
    axis = operator.index(axis) % a.ndim
    if x.ndim == 1 and x._layout.cuts[0].count > 1 and x.dtype.names is None:
        return sorted_line(x)["index"].copy() if function.__name__.startswith("arg") else sorted_line(x, records=False)
    labels = tuple(range(x.ndim))

    def kernel(tiles: list[Any], result: Array, _: TileBoxes) -> None:
        result[...] = function(tiles[0], *bound.args[1:], **bound.kwargs)

    rule = FactorMap((labels,), labels, whole=frozenset((axis,)))
    return moved_back(
        apply(function.__name__, rule, kernel, [with_whole_axes(x, (axis,))], model.dtype, effort=_EFFORT), x._layout
    )


def sorted_line(x: ShardedArray, *, records: bool = True) -> ShardedArray:
    """Sort a one-dimensional array by a sample sort; the result has the same tiling.

    Each device sorts its tile; samples of all tiles, sent to all devices, determine the values that each device
    receives. Each element moves to the device that merges it and then, if tiles of the same size require it, to
    another. The sort is stable. With `records`, elements have the fields "value" and "index", the position before the
    sort.
    """
    x = materialized(x)
    cut, (size,) = x._layout.cuts[0], x.shape
    count, bounds = cut.count, tile_bounds(size, cut.count)
    dtype = np.dtype([("value", x.dtype), ("index", np.intp)]) if records else x.dtype

    def values(tile: Array) -> Array:
        return tile["value"] if records else tile

    def sort(tiles: list[Array], out: Array, where: TileBoxes) -> None:
        if records:
            order = np.argsort(tiles[0], kind="stable")
            out["value"], out["index"] = tiles[0][order], order + where.result[0].start
        else:
            out[...] = np.sort(tiles[0], kind="stable")

    made: ShardedArray = apply("sort", _LINE, sort, [x], dtype, effort=_EFFORT)
    if count == 1:
        return made

    def sample(tiles: list[Array], out: Array, _: TileBoxes) -> None:
        tile = values(tiles[0])
        out[...] = tile[np.arange(count) * len(tile) // count] if len(tile) else np.zeros((), x.dtype)

    samples = all_gathered(apply("sort", _LINE, sample, [made], x.dtype, shape=(count * count,)))
    tile_of, place_of = np.divmod(np.arange(count * count), count)
    lengths = np.array([stop - start for start, stop in bounds])
    order = np.argsort(samples, kind="stable")
    order = order[lengths[tile_of[order]] > 0]
    chosen = order[np.arange(1, count) * len(order) // count] if len(order) else order

    def split(tiles: list[Array], out: Array, where: TileBoxes) -> None:
        # Equal values are split by tile number and index, so that tiles are of similar sizes.
        tile, number = values(tiles[0]), where.result[0].start
        left, right = (np.searchsorted(tile, samples[chosen], side) for side in ("left", "right"))
        places = np.where(tile_of[chosen] < number, left, right)
        own = tile_of[chosen] == number
        places[own] = (place_of[chosen] * len(tile) // count)[own]
        out[0, :-1] = np.diff(places, prepend=0)
        out[0, -1] = len(tile) - (places[-1] if len(places) else 0)

    split_map = FactorMap((("i",),), ("i", None))
    wide = (count, len(chosen) + 1)
    counts = all_gathered(apply("sort", split_map, split, [made], np.intp, shape=wide))
    starts = np.cumsum(counts, axis=1) - counts + np.array([start for start, _ in bounds])[:, None]
    totals, offsets = counts.sum(axis=0), np.cumsum(counts, axis=0) - counts
    most = int(totals.max(initial=0))
    regions = [
        Region(0, (int(taker * most + offsets[giver, taker]),), (IndexRange(int(starts[giver, taker]), 1, int(n)),))
        for (giver, taker), n in np.ndenumerate(counts)
        if n
    ]
    if not regions:
        return made
    spec = ArraySpec((count * most,), dtype, made._layout)
    received = assemble("sort", [made], regions, [spec])

    def merge(tiles: list[Array], out: Array, where: TileBoxes) -> None:
        number = where.result[0].start // most
        total = totals[number] if number < len(totals) else 0
        tile = tiles[0][:total]
        out[:total] = tile[np.argsort(tile["value"], kind="stable")] if records else np.sort(tile, kind="stable")

    return packed("sort", apply("sort", _LINE, merge, [received], dtype, effort=_EFFORT), totals)


@lru_cache(maxsize=8)
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)


def _implement(function: Callable[..., Any]) -> None:
    def along(a: Any, *args: Any, **kwargs: Any) -> Any:
        return along_lines(function, a, *args, **kwargs)

    implements(function)(along)


for _function in (np.sort, np.argsort, np.partition, np.argpartition):
    _implement(_function)


@implements(np.lexsort)
def lexsort(keys: Any, axis: int = -1) -> Any:
    """Implement :func:`numpy.lexsort`: a stable sort by each key in turn."""
    first, *others = keys
    if not np.ndim(first):
        return NotImplemented
    order: Any = np.argsort(first, axis, kind="stable")
    for key in others:
        order = np.take_along_axis(order, np.argsort(np.take_along_axis(key, order, axis), axis, kind="stable"), axis)
    return order
