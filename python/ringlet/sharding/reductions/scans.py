"""Scans: ``accumulate`` and ``reduceat`` of ufuncs."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringlet.sharding.execution.array_function_table import implements
from ringlet.sharding.execution.propagation import TileBoxes
from ringlet.sharding.execution.shape_inference import loop_dtype, probe_array, small
from ringlet.sharding.execution.tile_execution import apply
from ringlet.sharding.execution.ufunc_table import implements_ufunc
from ringlet.sharding.layout.factors import FactorMap
from ringlet.sharding.layout.layout import Array
from ringlet.sharding.reductions.reduction_execution import normalized_axes, without_nan
from ringlet.sharding.reductions.reductions import ASSOCIATIVE
from ringlet.sharding.resharding.pencils import moved_back, with_whole_axes
from ringlet.sharding.resharding.reshard import materialized
from ringlet.sharding.sharded_array import ShardedArray


def accumulate(
    ufunc: np.ufunc,
    x: Any,
    axis: int = 0,
    dtype: Any = None,
    out: Any = None,
    *,
    name: str | None = None,
    instead_of_nan: float | None = None,
) -> Any:
    """Reduce each prefix of a dimension, as ``ufunc.accumulate`` does; ``NotImplemented`` for plain arrays and objects.

    If the dimension is divided, the last elements of the tiles are sent to all devices and combined with later tiles;
    for ufuncs that are not associative, its tiles move to another dimension and back. With `out`, the dimension is
    gathered.
    """
    if not isinstance(x, ShardedArray) or x.dtype.hasobject:
        return NotImplemented
    model = probe_array(small(x))
    with np.errstate(all="ignore"):
        found = ufunc.accumulate(model, axis, dtype, None if out is None else np.empty(model.shape, out.dtype)).dtype
    if found.hasobject:
        return NotImplemented
    (along,) = normalized_axes(axis, x.ndim)
    loop = loop_dtype(found) if out is None else dtype

    def kernel(tiles: list[Any], result: Array, _: TileBoxes) -> None:
        ufunc.accumulate(without_nan(tiles[0], instead_of_nan), along, loop, result)

    x, name = materialized(x), name or f"{ufunc.__name__}.accumulate"
    if x._layout.cuts[along].count > 1 and out is None and ufunc in ASSOCIATIVE and x.size:
        labels = tuple(range(x.ndim))
        made = apply(name, FactorMap((labels,), labels), kernel, [x], found)
        return _with_offsets(ufunc, made, along, name)
    back = x._layout if out is None else None
    made = apply(
        name, _along(x.ndim, along), kernel, [x if out is not None else with_whole_axes(x, (along,))], found, out=out
    )
    return made if back is None else moved_back(made, back)


def _with_offsets(ufunc: np.ufunc, x: ShardedArray, axis: int, name: str) -> Any:
    """Combine scans of each tile with the last elements of the tiles before it."""
    labels, count, length = tuple(range(x.ndim)), x._layout.cuts[axis].count, 0
    length = -(-x.shape[axis] // count)

    def last(tiles: list[Any], out: Array, _: TileBoxes) -> None:
        out[...] = tiles[0].take([-1], axis) if tiles[0].shape[axis] else np.zeros((), x.dtype)

    shape = tuple(count if d == axis else size for d, size in enumerate(x.shape))
    totals = apply(name, FactorMap((labels,), labels), last, [x], x.dtype, shape=shape)

    def combine(tiles: list[Any], out: Array, where: TileBoxes) -> None:
        tile, before = tiles[0], where.result[axis].start // length
        if not before or not tile.size:
            out[...] = tile
            return
        known = tiles[1][(slice(None),) * axis + (slice(before),)]
        ufunc(ufunc.reduce(known, axis, loop_dtype(x.dtype), keepdims=True), tile, out=out)

    each = tuple("all" if d == axis else d for d in labels)
    rule = FactorMap((labels, each), labels, whole=frozenset({"all"}))
    return apply(name, rule, combine, [x, totals], x.dtype, shape=x.shape)


def reduceat(  # noqa: PLR0917  # as NumPy has them
    ufunc: np.ufunc, x: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None
) -> Any:
    """Reduce slices of a dimension, as ``ufunc.reduceat`` does; a divided dimension is gathered.

    Return ``NotImplemented`` if `indices` are sharded, `x` is not, elements are objects, or `axis` is not an integer.
    """
    if not isinstance(x, ShardedArray) or isinstance(indices, ShardedArray) or x.dtype.hasobject:
        return NotImplemented
    if not isinstance(axis, (int, np.integer)):
        return NotImplemented
    shape = tuple(size if a == axis % max(x.ndim, 1) else min(size, 1) for a, size in enumerate(x.shape))
    with np.errstate(all="ignore"):
        model = np.add.reduceat(np.zeros(shape, bool), indices, axis)
        place = None if out is None else np.empty(model.shape, out.dtype)
        found = ufunc.reduceat(np.zeros(shape, x.dtype), indices, axis, dtype, place).dtype
    if found.hasobject:
        return NotImplemented
    (along,) = normalized_axes(axis, x.ndim)
    loop = loop_dtype(found) if out is None else dtype

    def kernel(tiles: list[Any], result: Array, _: TileBoxes) -> None:
        ufunc.reduceat(tiles[0], indices, along, loop, result)

    shape = tuple(model.shape[a] if a == along else size for a, size in enumerate(x.shape))
    name = f"{ufunc.__name__}.reduceat"
    return apply(name, _along(x.ndim, along), kernel, [x], found, out=out, shape=shape)


def _along(ndim: int, axis: int) -> FactorMap:
    labels = tuple(range(ndim))
    return FactorMap((labels,), labels, whole=frozenset({axis}))


@implements_ufunc(None, "accumulate")
def _accumulate_method(ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    (out,) = kwargs.get("out", (None,))
    return accumulate(ufunc, *inputs, **{**kwargs, "out": out})


@implements_ufunc(None, "reduceat")
def _reduceat_method(ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    (out,) = kwargs.get("out", (None,))
    return reduceat(ufunc, *inputs, **{**kwargs, "out": out})


def _implement(name: str, ufunc: np.ufunc, instead_of_nan: float | None = None) -> None:
    def running(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
        if not isinstance(a, ShardedArray):
            return NotImplemented
        getattr(np, name)(probe_array(small(a)), axis, dtype)  # raises NumPy's error for invalid arguments
        line = np.reshape(a, -1) if axis is None or a.ndim == 0 else a
        return accumulate(
            ufunc, line, 0 if axis is None else axis, dtype, out, name=name, instead_of_nan=instead_of_nan
        )

    implements(name)(running)


_implement("cumsum", np.add)
_implement("cumprod", np.multiply)
_implement("nancumsum", np.add, 0)
_implement("nancumprod", np.multiply, 1)


def _implement_cumulative(name: str, ufunc: np.ufunc) -> None:
    function = getattr(np, name, None)

    def running(
        x: Any, /, *, axis: int | None = None, dtype: Any = None, out: Any = None, include_initial: bool = False
    ) -> Any:
        if not isinstance(x, ShardedArray) or function is None or (include_initial and out is not None):
            return NotImplemented
        function(probe_array(small(x)), axis=axis)  # raises NumPy's error for invalid arguments
        line = x if x.ndim else np.reshape(x, -1)
        along = 0 if axis is None else axis % line.ndim
        made = accumulate(ufunc, line, along, dtype, out, name=name)
        if not include_initial or made is NotImplemented:
            return made
        first = [1 if d == along else size for d, size in enumerate(made.shape)]
        return np.concatenate([np.full(first, ufunc.identity, made.dtype), made], along)

    implements(name)(running)


_implement_cumulative("cumulative_sum", np.add)
_implement_cumulative("cumulative_prod", np.multiply)
