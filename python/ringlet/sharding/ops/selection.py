"""Selections whose number of elements depends on values: masks, nonzero, compress, unique elements."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ringlet.sharding.execution.array_function_table import implements
from ringlet.sharding.execution.propagation import TileBoxes
from ringlet.sharding.execution.shape_inference import shape_probe
from ringlet.sharding.execution.tile_execution import apply
from ringlet.sharding.layout.factors import FactorMap
from ringlet.sharding.layout.layout import Array
from ringlet.sharding.ops.elementwise import operand
from ringlet.sharding.ops.sorting import sorted_line
from ringlet.sharding.resharding.pencils import all_gathered, packed, rows_of
from ringlet.sharding.resharding.reshard import materialized, redistribute
from ringlet.sharding.sharded_array import ShardedArray


def select_rows(x: Any, mask: Any) -> ShardedArray:
    """Return the rows of an array where a one-dimensional mask is true, divided evenly.

    Each device selects rows of its tile. Because devices select different numbers of rows, rows then move to other
    tiles.
    """
    like = x if isinstance(x, ShardedArray) else mask
    given: Any = (np.asarray(each, like=like) for each in (x, mask))
    x, mask = map(materialized, given)
    cut = (mask if x._layout.is_replicated else x)._layout.cuts[0]
    x, mask = (redistribute(each, each._layout.with_cuts([cut, *each._layout.cuts[1:]])) for each in (x, mask))

    def count(tiles: list[Array], out: Array, _: TileBoxes) -> None:
        out[...] = np.count_nonzero(tiles[0])

    def choose(tiles: list[Array], out: Array, _: TileBoxes) -> None:
        chosen = tiles[0][tiles[1]]
        out[: len(chosen)] = chosen

    counted = apply("select", FactorMap((("i",),), ("i",)), count, [mask], np.intp, shape=(cut.count,))
    counts = all_gathered(counted).tolist()
    rest, shape = tuple(range(x.ndim - 1)), (cut.count * max(counts), *x.shape[1:])
    padded = apply("select", FactorMap((("i", *rest), ("i",)), ("i", *rest)), choose, [x, mask], x.dtype, shape=shape)
    return packed("select", padded, counts)


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
    if a.dtype.names is not None:
        return NotImplemented
    mask = (rows_of(a, a.ndim) if a.ndim else a.reshape(1)).astype(bool)
    return select_rows(_positions(mask), mask)


@implements(np.nonzero)
def nonzero(a: Any) -> Any:
    """Implement :func:`numpy.nonzero`."""
    found = flatnonzero(a) if a.ndim else NotImplemented
    if found is NotImplemented:
        return found
    return (found,) if a.ndim == 1 else np.unravel_index(found, a.shape)


@implements(np.argwhere)
def argwhere(a: Any) -> Any:
    """Implement :func:`numpy.argwhere`."""
    found = nonzero(a)
    return found if found is NotImplemented else np.transpose(np.stack(found))


@implements(np.compress)
def compress(condition: Any, a: Any, axis: int | None = None, out: Any = None) -> Any:
    """Implement :func:`numpy.compress`."""
    mask, x = (each if isinstance(each, ShardedArray) else np.asarray(each) for each in (condition, a))
    if mask.ndim != 1:
        np.compress(shape_probe(mask.shape), shape_probe(x.shape), axis)  # raises NumPy's error
    if out is not None or not isinstance(x, ShardedArray) or not x.ndim:
        return NotImplemented
    x, axis = (rows_of(x, x.ndim), 0) if axis is None else (x, operator.index(axis))
    np.compress([False], shape_probe((1,) * x.ndim), axis)  # raises NumPy's error for an invalid axis
    x = np.moveaxis(x, axis, 0)  # type: ignore[type-var]  # dispatched
    if len(mask) > len(x):
        return NotImplemented
    chosen: Any = select_rows(x[: len(mask)], mask.astype(bool))
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
    np.flip(shape_probe((1,) * x.ndim), along)  # raises NumPy's error for an invalid axis
    obj = all_gathered(obj)
    try:
        kept = np.delete(np.arange(x.shape[along]), obj)
    except IndexError:
        np.delete(shape_probe(x.shape), obj, along)  # raises NumPy's error, which names the axis
        raise
    mask = np.zeros(x.shape[along], bool)
    mask[kept] = True
    return np.compress(mask, x, along)


@implements(np.unique)
def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,  # NumPy's parameter name
) -> Any:
    """Implement :func:`numpy.unique` for all elements; along an axis, or of objects or records, arrays are gathered."""
    if axis is not None or ar.dtype.hasobject or ar.dtype.names is not None:
        return NotImplemented
    line = rows_of(ar, ar.ndim) if ar.ndim else ar.reshape(1)
    if return_index or return_inverse:
        records = sorted_line(line)
        values, places = records["value"], records["index"]
    else:
        values, places = sorted_line(line, records=False), None
    is_first = np.ones_like(values, bool)
    if line.size > 1:
        is_other = values[1:] != values[:-1]
        if equal_nan and values.dtype.kind in "fcmM":
            is_other = is_other & ~(np.isnan(values[1:]) & np.isnan(values[:-1]))
        is_first[1:] = is_other
    results: list[Any] = [select_rows(values, is_first)]
    if return_index:
        results.append(select_rows(places, is_first))
    if return_inverse:
        number = np.cumsum(is_first) - 1
        results.append(np.reshape(np.take(number, np.argsort(places)), ar.shape))
    if return_counts:
        results.append(np.diff(flatnonzero(is_first), append=line.size))
    return tuple(results) if len(results) > 1 else results[0]


@implements(np.setdiff1d)
def _setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    first = np.ravel(operand(ar1)) if assume_unique else np.unique(operand(ar1))
    return first[np.isin(first, all_gathered(operand(ar2)), assume_unique=assume_unique, invert=True)]
