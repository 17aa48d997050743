"""Medians, quantiles and percentiles: of whole lines on each device, or from a sort of all elements over devices."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from ringlet.sharding.creation import place
from ringlet.sharding.execution.array_function_table import implements
from ringlet.sharding.execution.propagation import TileBoxes
from ringlet.sharding.execution.shape_inference import probe_array, small
from ringlet.sharding.execution.tile_execution import apply, write_out
from ringlet.sharding.layout.factors import FactorMap
from ringlet.sharding.layout.layout import Array, Layout
from ringlet.sharding.ops.sorting import sorted_line
from ringlet.sharding.reductions.reduction_execution import normalized_axes
from ringlet.sharding.resharding.pencils import all_gathered, rows_of, with_whole_axes
from ringlet.sharding.sharded_array import ShardedArray


def _implement(function: Callable[..., Any]) -> None:
    signature = inspect.signature(function)

    @implements(function)
    def quantile(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        x, axis, out = given.pop("a"), given.pop("axis", None), given.pop("out", None)
        given.pop("overwrite_input", None)
        if not isinstance(x, ShardedArray) or x.dtype.hasobject or given.get("weights") is not None:
            return NotImplemented
        if "q" in given:
            given["q"] = all_gathered(given["q"])
            if np.ndim(given["q"]) > 1 and function.__name__.startswith("nan"):
                return NotImplemented  # for some axes, the shape differs from np.quantile's
        probe = probe_array(small(x)) if x.size else np.empty(x.shape, x.dtype)
        with np.errstate(all="ignore" if x.size else None):
            model = np.asarray(function(probe, axis=axis, **given))  # raises NumPy's error for invalid arguments
        axes = normalized_axes(axis, x.ndim)
        made: Any = None if x.size else place(model, Layout.replicated(x._layout.num_devices, model.ndim), x._group)
        if made is None and len(axes) == x.ndim:
            made = _by_distributed_sort(function, x, given, model)
        if made is None:
            made = _by_moving_axes(function, x, axes, given, model)
        if out is not None and function is not np.median:
            made = np.broadcast_to(made, out.shape)
        return made if out is None else write_out(out, made)


def _by_moving_axes(
    function: Callable[..., Any], x: ShardedArray, axes: tuple[int, ...], given: dict[str, Any], model: Array
) -> Any:
    keeps = given.get("keepdims") is True
    rest = [None if d in axes else d for d in range(x.ndim) if keeps or d not in axes]
    shape = tuple(1 if d is None else x.shape[d] for d in rest)
    added = model.ndim - len(rest)

    def kernel(tiles: list[Array], out: Array, _: TileBoxes) -> None:
        if out.size:
            out[...] = function(tiles[0], axis=axes, **given)

    rule = FactorMap((tuple(range(x.ndim)),), (*(None,) * added, *rest), whole=frozenset(axes))
    shape = (*model.shape[:added], *shape)
    return apply(function.__name__, rule, kernel, [with_whole_axes(x, axes)], model.dtype, shape=shape, effort=8.0)


def _by_distributed_sort(function: Callable[..., Any], x: ShardedArray, given: dict[str, Any], model: Array) -> Any:
    """Sort all elements across devices, and send the elements that the result requires.

    Return None if the method, dtype or layout is unsuitable.
    """
    name = function.__name__.removeprefix("nan")
    if given.get("method", "linear") != "linear" or x.dtype.kind not in "iuf" or x.dtype.itemsize > 8:
        return None
    if np.asarray(given.get("q", 0)).dtype.hasobject:  # for example, a fractions.Fraction
        return None
    line = rows_of(x, x.ndim)
    if line._layout.cuts[0].count == 1:
        return None
    line = sorted_line(line, records=False)
    size = int(np.count_nonzero(~np.isnan(line))) if x.dtype.kind == "f" else line.size
    if size < (line.size if name == function.__name__ else 1):
        kept = all_gathered(line[-1:])  # the last element, a NaN, determines the result
        result = function(kept, **{key: value for key, value in given.items() if key != "keepdims"})
    elif name == "median":
        result = np.median(all_gathered(line[(size - 1) // 2 : size // 2 + 1]))
    else:
        result = _interpolated(line, size, given["q"], 100 if name == "percentile" else 1)
    result = np.asarray(result, model.dtype).reshape(model.shape)
    return place(result, Layout.replicated(x._layout.num_devices, model.ndim), x._group)


def _interpolated(line: ShardedArray, size: int, q: Any, scale: int) -> Array:
    # Computed in the dtypes that NumPy 2.4 uses; results of earlier versions may differ in the last bit of float32.
    part = np.true_divide(q, scale)
    place = (size - 1) * part
    before = np.clip(np.floor(place).astype(np.intp), 0, max(size - 2, 0))
    pairs = all_gathered(np.take(line, np.minimum(np.stack([before, before + 1]), size - 1))).reshape(2, -1)
    between = (place - before.astype(place.dtype)).reshape(-1)
    is_number = type(q) in (int, float)
    found = [np.quantile(pairs[:, n], float(each) if is_number else each) for n, each in enumerate(between)]
    made: Array = np.array(found).reshape(place.shape)
    return made


for _function in (np.median, np.nanmedian, np.quantile, np.nanquantile, np.percentile, np.nanpercentile):
    _implement(_function)
