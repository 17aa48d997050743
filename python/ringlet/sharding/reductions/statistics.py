"""Means, variances and other statistics; variances along divided axes combine the moments of tiles."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ringlet.collectives import Op
from ringlet.sharding.execution.array_function_table import implements
from ringlet.sharding.execution.cached_calls import cached
from ringlet.sharding.execution.determinism import ignores_tiling
from ringlet.sharding.execution.propagation import TileBoxes
from ringlet.sharding.execution.shape_inference import loop_dtype, probe_array, shape_probe, small
from ringlet.sharding.explain_operations import recorded_as_one
from ringlet.sharding.layout.layout import Array
from ringlet.sharding.reductions.reduction_execution import Axes, Reduction, mask_of, sum_tile
from ringlet.sharding.reductions.reductions import reduce
from ringlet.sharding.resharding.reshard import materialized
from ringlet.sharding.sharded_array import ShardedArray

# Computes a result from (count, mean, spread): the spread is the sum of squared deviations from the mean.
Finish = Callable[[Array, Array, Array], Array]


def moment_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the structured dtype of moments: a count, a mean of `dtype` and a real spread of the same precision."""
    return np.dtype([("count", np.int64), ("mean", dtype), ("spread", np.zeros((), dtype).real.dtype)])


def from_moments(
    reduction: Reduction, finish: Finish, work_dtype: np.dtype[Any], dtype: np.dtype[Any], *, out: Any, skips_nan: bool
) -> Any:
    """Reduce an array to a function of its count, mean and spread.

    Each tile computes its moments in two passes, as NumPy does. Gathered moments are combined: the total spread is the
    sum over tiles of the tile's spread plus its count times the squared distance of its mean from the total mean (Chan,
    Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979).
    """
    axes = reduction.axes

    def of_tile(tile: Array, mask: Array | None, pieces: Array, _: TileBoxes) -> None:
        if skips_nan:
            known = ~np.isnan(tile)
            mask = known if mask is None else known & mask
            tile = np.where(mask, tile, tile.dtype.type(0))
        chosen: dict[str, Any] = {} if mask is None else {"where": mask}
        mean, spread = pieces["mean"], pieces["spread"]
        pieces["count"] = count = _count(tile, mask, axes)
        sum_tile(tile, axes, mean, keepdims=True, **chosen)
        np.true_divide(mean, np.maximum(count, 1), out=mean, casting="unsafe")
        distance = np.subtract(tile, mean, dtype=work_dtype)
        sum_tile(_squared(distance), axes, spread, keepdims=True, **chosen)

    def of_all(pieces: Array, result: Array) -> None:
        counts, means, spreads = pieces["count"], pieces["mean"], pieces["spread"]
        count = np.add.reduce(counts, axes, keepdims=True)
        mean = np.add.reduce(counts * means, axes, keepdims=True) / np.maximum(count, 1)
        spread = np.add.reduce(spreads + counts * _squared(means - mean), axes, keepdims=True, dtype=np.float64)
        result[...] = finish(count, mean, spread)

    return reduction.in_two_stages(of_tile, moment_dtype(work_dtype), of_all, dtype, out)


def _count(tile: Array, mask: Array | None, axes: tuple[int, ...]) -> Array:
    if mask is None:
        return np.asarray(math.prod(tile.shape[axis] for axis in axes))
    count: Array = np.add.reduce(np.broadcast_to(mask, tile.shape), axes, np.int64, keepdims=True)
    return count


def _squared(distance: Array) -> Array:
    if distance.dtype.kind == "c":
        squares: Array = distance.real**2 + distance.imag**2
        return squares
    return np.multiply(distance, distance, out=distance)


_NO_VALUE: Any = np._NoValue  # NumPy's marker for an argument that was not passed


def _modelled(
    function: Callable[..., Any], x: ShardedArray, out: Any = None, where: Any = True, **kwargs: Any
) -> np.dtype[Any]:
    mask = mask_of(where)
    if mask is not None:
        kwargs["where"] = probe_array(small(mask))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        model = np.asarray(function(probe_array(small(x)), **kwargs))
        if out is not None:
            function(probe_array(small(x)), out=np.empty(model.shape, out.dtype), **kwargs)
    return model.dtype


def _work_dtype(x: ShardedArray, dtype: Any) -> np.dtype[Any]:
    if dtype is None and x.dtype.kind in "biu":
        dtype = np.float64
    elif dtype is None:
        dtype = np.float32 if x.dtype == np.float16 else x.dtype
    return loop_dtype(np.dtype(dtype))


def _computes(x: Any, dtype: Any) -> bool:
    """Return whether tiles can compute moments: of numbers, in a complex dtype or, unless they are complex, a float."""
    if not isinstance(x, ShardedArray) or x.dtype.kind not in "biufc":
        return False
    return _work_dtype(x, dtype).kind in ("c" if x.dtype.kind == "c" else "fc")


@implements(np.mean)
def _mean(
    a: Any, axis: Axes = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True
) -> Any:
    if not isinstance(a, ShardedArray) or not _computes(a, dtype):
        return NotImplemented

    def work() -> Any:
        return _checked_mean(a, (axis, dtype, out, keepdims, where))

    if out is not None or where is not True or a.dtype.kind not in "fc" or not a.size:
        return work()
    return cached(("mean", None if dtype is None else np.dtype(dtype)), (a, axis, keepdims), work)


def _checked_mean(a: Any, options: tuple[Any, ...]) -> Any:
    axis, dtype, out, keepdims, where = options
    result_dtype, work_dtype = _modelled(np.mean, a, out, where, axis=axis, dtype=dtype), _work_dtype(a, dtype)
    reduction = Reduction.of("mean", a, axis, keepdims, where)
    # Sums of integers are exact, so the total is divided instead of each tile's sum: the mean of ones is then exactly
    # 1.
    if reduction.mask is not None or out is not None or a.dtype.kind in "biu" or ignores_tiling():
        known = True if reduction.mask is None else np.broadcast_to(reduction.mask, a.shape)
        count = reduction.count if known is True else np.sum(known, axis, np.intp, keepdims=keepdims)
        total = np.sum(a, axis, work_dtype, out, keepdims, where=known)
        mean = _divided(total, count, out)
        return mean if out is not None or mean.dtype == result_dtype else mean.astype(result_dtype)
    if reduction.count == 0:
        warnings.warn("Mean of empty slice", RuntimeWarning, stacklevel=2)

    ndim, axes, count, keeps = a.ndim, tuple(d - a.ndim for d in reduction.axes), reduction.count, reduction.keepdims

    def reducer(tile: Array, _: Array | None, result: Array, __: TileBoxes) -> None:
        total = np.empty(result.shape, work_dtype)
        sum_tile(tile, axes, total, ndim=ndim, keepdims=keeps)
        np.true_divide(total, count, out=result, casting="unsafe")

    def work() -> Any:
        return reduction.by_rows(np.add, work_dtype).combined(reducer, result_dtype, Op.SUM, takes_stacks=True)

    return recorded_as_one("mean", a, work)


def _divided(total: Any, count: Any, out: Any) -> Any:
    if np.any(count == 0):
        warnings.warn("Mean of empty slice", RuntimeWarning, stacklevel=2)
    if out is None and not total.shape:  # `total` is read-only
        return np.true_divide(total, count, dtype=total.dtype, casting="unsafe")
    return np.true_divide(total, count, out=total, casting="unsafe")


@implements(np.nanmean)
def _nanmean(
    a: Any, axis: Axes = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True
) -> Any:
    if not isinstance(a, ShardedArray) or not _computes(a, dtype):
        return NotImplemented
    if a.dtype.kind not in "fc":
        return np.mean(a, axis, dtype, out, keepdims, where=where)
    _modelled(np.nanmean, a, out, where, axis=axis, dtype=dtype)
    count = np.sum(~np.isnan(a), axis, np.intp, keepdims=keepdims, where=where)
    total = np.nansum(a, axis, dtype, out, keepdims, where=where)
    with np.errstate(invalid="ignore", divide="ignore"):
        return _divided(total, count, out)


def _moment(
    function: Callable[..., Any], finish: Finish, a: Any, *, out: Any, keepdims: Any, where: Any, **kwargs: Any
) -> Any:
    if not isinstance(a, ShardedArray) or not _computes(a, kwargs["dtype"]):
        return NotImplemented
    found = _modelled(function, a, out, where, **kwargs)
    result_dtype = found if out is None else out.dtype
    reduction = Reduction.of(function.__name__, a, kwargs.pop("axis"), keepdims, where)
    if reduction.is_cut:
        skips_nan = function.__name__.startswith("nan") and a.dtype.kind in "fc"
        work_dtype = _work_dtype(a, kwargs["dtype"])
        return from_moments(reduction, finish, work_dtype, result_dtype, out=out, skips_nan=skips_nan)

    def whole(tile: Array, mask: Array | None, result: Array, _: TileBoxes) -> None:
        more = ({} if mask is None else {"where": mask}) | ({} if out is None else {"out": result})
        result[...] = function(tile, axis=reduction.axes, keepdims=reduction.keepdims, **kwargs, **more)

    return reduction.undivided(whole, result_dtype, out)


def _implement_spread(function: Callable[..., Any]) -> None:
    is_root = function.__name__.endswith("std")

    def spread_of(  # noqa: PLR0917  # as NumPy has them
        a: Any,
        axis: Axes = None,
        dtype: Any = None,
        out: Any = None,
        ddof: float = 0,
        keepdims: Any = False,
        *,
        where: Any = True,
        mean: Any = _NO_VALUE,
        correction: Any = _NO_VALUE,
    ) -> Any:
        if mean is not _NO_VALUE or not isinstance(a, ShardedArray):
            return NotImplemented
        skips_nan = function.__name__.startswith("nan") and a.dtype.kind in "fc"
        kwargs = {"ddof": ddof} if correction is _NO_VALUE else {"ddof": ddof, "correction": correction}
        taken = ddof if correction is _NO_VALUE else correction

        def finish(count: Array, _: Array, spread: Array) -> Array:
            if (count <= taken).any():
                warnings.warn("Degrees of freedom <= 0 for slice", RuntimeWarning, stacklevel=2)
            left = np.maximum(count - taken, 0)
            variance = spread / np.where(left > 0, left, np.nan) if skips_nan else spread / left
            return np.sqrt(variance) if is_root else variance

        return _moment(function, finish, a, out=out, keepdims=keepdims, where=where, axis=axis, dtype=dtype, **kwargs)

    implements(function)(spread_of)


for _function in (np.var, np.std, np.nanvar, np.nanstd):
    _implement_spread(_function)


@implements(np.nansum)
def _nansum(a: Any, axis: Axes = None, dtype: Any = None, out: Any = None, *args: Any, **kwargs: Any) -> Any:
    return reduce(np.add, a, axis, dtype, out, *args, name="nansum", instead_of_nan=0, **kwargs)


@implements(np.nanprod)
def _nanprod(a: Any, axis: Axes = None, dtype: Any = None, out: Any = None, *args: Any, **kwargs: Any) -> Any:
    return reduce(np.multiply, a, axis, dtype, out, *args, name="nanprod", instead_of_nan=1, **kwargs)


def _implement_extreme(name: str, ufunc: np.ufunc) -> None:
    def extreme(a: Any, axis: Axes = None, out: Any = None, *args: Any, **kwargs: Any) -> Any:
        result = reduce(ufunc, a, axis, None, out, *args, name=name, **kwargs)
        if result is not NotImplemented and result.dtype.kind in "fc" and np.any(np.isnan(result)):
            warnings.warn("All-NaN slice encountered", RuntimeWarning, stacklevel=2)
        return result

    implements(name)(extreme)


_implement_extreme("nanmax", np.fmax)
_implement_extreme("nanmin", np.fmin)


@implements(np.count_nonzero)
def _count_nonzero(a: Any, axis: Axes = None, *, keepdims: bool = False) -> Any:
    if not isinstance(a, ShardedArray) or a.dtype.hasobject:
        return NotImplemented
    _modelled(np.count_nonzero, a, axis=axis)
    reduction = Reduction.of("count_nonzero", materialized(a), axis, keepdims)
    axes = None if len(reduction.axes) == a.ndim else reduction.axes

    def reducer(tile: Array, _: Array | None, result: Array, __: TileBoxes) -> None:
        result[...] = np.count_nonzero(tile, axis=axes, keepdims=reduction.keepdims)

    return reduction.combined(reducer, np.intp, Op.SUM)


@implements(np.average)
def _average(a: Any, axis: Axes = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False) -> Any:
    a = a if isinstance(a, ShardedArray) else np.asanyarray(a)
    if axis is not None:
        np.flip(shape_probe((1,) * a.ndim), axis)  # type: ignore[arg-type]  # raises NumPy's error for a bad axis
    if weights is None:
        mean = np.mean(a, axis, keepdims=keepdims)
        count = math.prod(a.shape) / math.prod(np.shape(mean))
        return (mean, np.full_like(mean, count)) if returned else mean
    weights = weights if isinstance(weights, ShardedArray) else np.asanyarray(weights)
    if weights.shape != a.shape:
        weights = _broadcast_weights(a, axis, weights)
    floats = (np.float64,) if a.dtype.kind in "biu" else ()
    dtype = np.result_type(a.dtype, weights.dtype, *floats)
    scale = np.sum(weights, axis, dtype=dtype, keepdims=keepdims)
    if np.any(scale == 0):
        raise ZeroDivisionError("Weights sum to zero, can't be normalized")
    average = np.true_divide(np.sum(np.multiply(a, weights, dtype=dtype), axis, keepdims=keepdims), scale)
    return (average, np.broadcast_to(scale, average.shape)) if returned else average


def _broadcast_weights(a: Any, axis: Axes, weights: Any) -> Any:
    if axis is None:
        raise TypeError(
            f"Axis must be specified when shapes of a and weights differ: they are {a.shape} and {weights.shape}."
        )
    axes = [each % a.ndim for each in (axis if isinstance(axis, tuple) else (axis,))]
    wanted = tuple(a.shape[each] for each in axes)
    if weights.shape != wanted:
        raise ValueError(
            f"Shape of weights must be consistent with shape of a along specified axis: weights have shape "
            f"{weights.shape}, but a has shape {wanted} along axis {axis}."
        )
    ordered = np.transpose(weights, np.argsort(axes))
    return np.reshape(ordered, tuple(size if each in axes else 1 for each, size in enumerate(a.shape)))
