"""Argmax and argmin: along divided axes, tiles return pairs of value and index, and the first best is chosen."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ringlet.collectives import Op
from ringlet.sharding.execution.array_function_table import implements
from ringlet.sharding.execution.propagation import TileBoxes
from ringlet.sharding.execution.shape_inference import probe_array, small
from ringlet.sharding.execution.tile_execution import write_out
from ringlet.sharding.layout.layout import Array
from ringlet.sharding.reductions.reduction_execution import Reducer, Reduction, without_nan
from ringlet.sharding.sharded_array import ShardedArray

_INDEX = np.dtype(np.intp)


def _implement(name: str) -> None:
    function: Callable[..., Any] = getattr(np, name)
    search: Callable[..., Any] = getattr(np, name.removeprefix("nan"))
    worst = -np.inf if search is np.argmax else np.inf

    def find(a: Any, axis: int | None = None, out: Any = None, *, keepdims: Any = False) -> Any:
        if not isinstance(a, ShardedArray) or a.dtype.hasobject:
            return NotImplemented
        axis = None if axis is None else operator.index(axis)
        model = function(probe_array(small(a)), axis=axis)  # raises NumPy's error for invalid arguments
        if out is not None:
            function(probe_array(small(a)), axis=axis, out=np.empty(np.shape(model), out.dtype))
        reduction = Reduction.of(name, a, axis, keepdims)
        skips_nan = function is not search and a.dtype.kind in "fc"
        if skips_nan:
            _refuse_all_nan(reduction)
        if out is None or out.dtype == _INDEX:
            return _found(reduction, search, worst if skips_nan else None, out)
        return write_out(out, _found(reduction, search, worst if skips_nan else None, None).astype(out.dtype))

    implements(name)(find)


def _found(reduction: Reduction, search: Callable[..., Any], instead_of_nan: float | None, out: Any) -> Any:
    x, axes = reduction.x, reduction.axes

    def whole(tile: Array, _: Array | None, result: Array, __: TileBoxes) -> None:
        axis = axes[0] if len(axes) == 1 else None
        result[...] = search(without_nan(tile, instead_of_nan), axis=axis, keepdims=reduction.keepdims)

    if not reduction.is_cut:
        return reduction.undivided(whole, _INDEX, out)
    # Devices exchange pairs of value and index, so the index has the smallest sufficient dtype.
    index = np.dtype(np.int32 if math.prod(x.shape) < 2**31 else np.int64)
    pair = np.dtype([("value", x.dtype), ("index", index)])
    pairs = _pairs(reduction, search, instead_of_nan)
    return reduction.in_two_stages(pairs, pair, _first_best(axes, search), _INDEX, out)


def _pairs(reduction: Reduction, search: Callable[..., Any], instead_of_nan: float | None) -> Reducer:
    axes, shape = reduction.axes, reduction.x.shape

    def reducer(tile: Array, _: Array | None, result: Array, where: TileBoxes) -> None:
        tile = without_nan(tile, instead_of_nan)
        box = where.operands[0]
        if len(axes) == 1:
            (axis,) = axes
            place = search(tile, axis=axis, keepdims=True)
            result["value"] = np.take_along_axis(tile, place, axis)
            result["index"] = place + box[axis].start
        else:
            places = np.unravel_index(search(tile), tile.shape)
            result["value"] = tile[places]
            result["index"] = np.ravel_multi_index([p + b.start for p, b in zip(places, box, strict=True)], shape)

    return reducer


def _first_best(axes: tuple[int, ...], search: Callable[..., Any]) -> Callable[[Array, Array], None]:
    """Return a function that reduces pairs to the smallest index with the best value; NaN is the best value."""

    def last(pieces: Array, result: Array) -> None:
        values, indices = (
            pieces[field] if len(axes) == 1 else pieces[field].reshape(-1, *(1,) * (len(axes) - 1))
            for field in ("value", "index")
        )
        axis = axes[0] if len(axes) == 1 else 0
        best = np.take_along_axis(values, search(values, axis=axis, keepdims=True), axis)
        is_best = (values == best) | ((values != values) & (best != best))  # noqa: PLR0124  # NaN, NaT
        result[...] = np.where(is_best, indices, np.iinfo(indices.dtype).max).min(axis=axis, keepdims=True)

    return last


def _refuse_all_nan(reduction: Reduction) -> None:
    def reducer(tile: Array, _: Array | None, result: Array, __: TileBoxes) -> None:
        np.isnan(tile).all(axis=reduction.axes, out=result, keepdims=reduction.keepdims)

    if np.any(reduction.combined(reducer, np.dtype(bool), Op.AND)):
        raise ValueError("All-NaN slice encountered")


for _name in ("argmax", "argmin", "nanargmax", "nanargmin"):
    _implement(_name)
