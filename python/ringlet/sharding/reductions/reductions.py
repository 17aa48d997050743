"""Sums, products, minima, maxima and other results of a ufunc's ``reduce``, tile by tile."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from ringlet.collectives import Op
from ringlet.sharding.execution.array_function_table import implements
from ringlet.sharding.execution.cached_calls import cached
from ringlet.sharding.execution.determinism import ignores_tiling
from ringlet.sharding.execution.propagation import TileBoxes
from ringlet.sharding.execution.shape_inference import Small, loop_dtype, probe_array, small
from ringlet.sharding.execution.tile_execution import write_out
from ringlet.sharding.execution.ufunc_table import implements_ufunc, is_cached
from ringlet.sharding.explain_operations import recorded_as_one
from ringlet.sharding.layout.layout import Array
from ringlet.sharding.reductions.exact_sums import exact_sum, is_supported
from ringlet.sharding.reductions.reduction_execution import Axes, Reduction, mask_of, sum_tile, without_nan
from ringlet.sharding.resharding.partial_combine import identity
from ringlet.sharding.resharding.reshard import materialized
from ringlet.sharding.sharded_array import ShardedArray

_NO_VALUE: Any = np._NoValue  # NumPy's marker for an argument that was not passed

# Operations that combine the results of tiles, for dtypes that collectives support; for bool, addition is OR.
_COLLECTIVE_OPS: Mapping[np.ufunc, Op] = {
    np.add: Op.SUM,
    np.multiply: Op.PROD,
    np.maximum: Op.MAX,
    np.minimum: Op.MIN,
    np.logical_and: Op.AND,
    np.logical_or: Op.OR,
    np.logical_xor: Op.XOR,
    np.bitwise_and: Op.AND,
    np.bitwise_or: Op.OR,
    np.bitwise_xor: Op.XOR,
}
_COLLECTIVE_OPS_OF_BOOL: Mapping[np.ufunc, Op] = {**_COLLECTIVE_OPS, np.add: Op.OR, np.multiply: Op.AND}

# Ufuncs that may reduce gathered tile results again: all are commutative, and associative up to rounding.
ASSOCIATIVE: frozenset[np.ufunc] = frozenset(
    {*_COLLECTIVE_OPS, np.fmax, np.fmin, np.gcd, np.lcm, np.hypot, np.logaddexp, np.logaddexp2}
)

# Ufuncs whose result is bool regardless of the dtype of `out`.
LOGICAL: frozenset[np.ufunc] = frozenset({np.logical_and, np.logical_or, np.logical_xor})


def reduce(  # noqa: PLR0917  # as NumPy has them
    ufunc: np.ufunc,
    x: Any,
    axis: Axes = 0,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = _NO_VALUE,
    where: Any = True,
    *,
    name: str | None = None,
    instead_of_nan: float | None = None,
) -> Any:
    """Reduce an array with a ufunc, as ``ufunc.reduce`` does; ``NotImplemented`` for plain arrays and objects.

    ``NotImplemented`` also for ``initial=None`` if the ufunc has an identity. If a reduced dimension is divided, the
    result may be partial; tile results are gathered if no collective combines their values. For ufuncs that are not
    associative the dimension is gathered first. `instead_of_nan` replaces NaN.
    """
    if not isinstance(x, ShardedArray) or x.dtype.hasobject or (initial is None and ufunc.identity is not None):
        return NotImplemented  # tiles start from the identity, which initial=None excludes
    dtype = None if dtype is None else np.dtype(dtype)
    if dtype is not None and dtype.hasobject:
        return NotImplemented
    if ufunc is np.add and ignores_tiling() and is_supported(x, dtype):
        return _summed_exactly(x, dtype, out, (axis, keepdims, initial, where, instead_of_nan))
    arguments = (x, axis, dtype, out, keepdims, initial, where)

    def work() -> Any:
        return _checked(ufunc, *arguments, name or f"{ufunc.__name__}.reduce", instead_of_nan)

    if out is not None or initial is not _NO_VALUE or where is not True or not is_cached(ufunc):
        return work()
    return cached(("reduce", ufunc, dtype, instead_of_nan), (x, axis, keepdims), work)


def _summed_exactly(x: Any, dtype: np.dtype[Any] | None, out: Any, options: tuple[Any, ...]) -> Any:
    axis, keepdims, initial, where, instead_of_nan = options
    model = np.add.reduce(probe_array(small(x)), axis, dtype, where=True)  # raises NumPy's error for an invalid axis
    x = x if instead_of_nan is None else np.where(np.isnan(x), x.dtype.type(0), x)
    x = x if where is True or where is np._NoValue else np.where(where, x, x.dtype.type(0))
    reduction = Reduction.of("sum", x, axis, keepdims)
    total = recorded_as_one("sum", x, lambda: exact_sum(x, reduction.axes, reduction.keepdims))
    total = total if initial is _NO_VALUE or initial is None else total + initial
    total = total.astype(np.asarray(model).dtype, copy=False)
    return total if out is None else write_out(out, total)


def _checked(  # noqa: PLR0917
    ufunc: np.ufunc,
    x: ShardedArray,
    axis: Axes,
    dtype: np.dtype[Any] | None,
    out: Any,
    keepdims: Any,
    initial: Any,
    where: Any,
    name: str,
    instead_of_nan: float | None,
) -> Any:
    if bool in map(type, axis if isinstance(axis, tuple) else (axis,)):  # True equals 1 in the cache below
        ufunc.reduce(probe_array(small(x)), axis)  # raises NumPy's error
    mask = mask_of(where)
    begins = () if initial is _NO_VALUE else (None if initial is None else 0,)
    result_dtype = (_result_dtype if is_cached(ufunc) else _result_dtype.__wrapped__)(
        (ufunc, *begins),
        small(x),
        None if mask is None else small(mask),
        axis if axis is None or isinstance(axis, tuple) else operator.index(axis),  # type: ignore[arg-type]
        (dtype, None if out is None else out.dtype),
    )
    if dtype is not None and ufunc not in LOGICAL and not np.can_cast(x.dtype, result_dtype, "same_kind"):
        # Elements are converted before the reduction, as in NumPy: as integers, 0.5 + 0.5 is 0.
        known = x if instead_of_nan is None else np.where(np.isnan(x), x.dtype.type(instead_of_nan), x)
        x = known.astype(result_dtype)  # type: ignore[assignment]  # dispatched
    reduction = Reduction.of(name, x, axis, keepdims, where)
    axes = tuple([axis - x.ndim for axis in reduction.axes])
    begin = _NO_VALUE if initial is None else initial
    tile_reduction = _TileReduction(ufunc, axes, x.ndim, begin, instead_of_nan)
    if out is None or out.dtype == result_dtype:
        return _reduced(reduction, tile_reduction, result_dtype, out)
    return write_out(out, _reduced(reduction, tile_reduction, result_dtype, None).astype(out.dtype))


@lru_cache(maxsize=1024)
def _result_dtype(
    call: tuple[Any, ...],
    x: Small,
    mask: Small | None,
    axis: int | tuple[int, ...] | None,
    dtypes: tuple[np.dtype[Any] | None, np.dtype[Any] | None],
) -> np.dtype[Any]:
    """Return the dtype of NumPy's result before its conversion to `out`, or raise NumPy's error.

    `dtypes` has the argument ``dtype`` and the dtype of `out`.
    """
    (ufunc, *initial), (wanted, written) = call, dtypes
    more = {"axis": axis} | ({} if mask is None else {"where": probe_array(mask)})
    more |= {"initial": initial[0]} if initial else {}
    model = probe_array(x)
    with np.errstate(all="ignore"):
        found = np.asarray(ufunc.reduce(model, dtype=wanted, **more))
        if written is None:
            return found.dtype
        ufunc.reduce(model, dtype=wanted, out=np.empty(found.shape, written), **more)
        if wanted is not None:
            return found.dtype
        return np.asarray(ufunc(np.empty(0, written), np.empty(0, x[0]))).dtype


@dataclass(frozen=True)
class _TileReduction:
    """Reduction of a tile of `ndim` dimensions, or of a stack of such tiles; axes are counted from the last."""

    ufunc: np.ufunc
    axes: tuple[int, ...]
    ndim: int
    initial: Any
    instead_of_nan: float | None

    @property
    def repeats(self) -> bool:
        """Return whether each tile may include the initial value: a maximum may, but a sum must add it once."""
        return self.ufunc.identity is None

    def reduce(self, tile: Array, mask: Array | None, out: Array, *, begins: bool, keepdims: bool = True) -> None:
        ufunc, axes = self.ufunc, self.axes
        tile = without_nan(tile, self.instead_of_nan)
        more: dict[str, Any] = {} if mask is None else {"where": mask}
        if begins and self.initial is not _NO_VALUE:
            more["initial"] = self.initial
        elif not tile.size and ufunc.identity is None and any(tile.shape[axis] == 0 for axis in axes):
            out.fill(identity(Op.MIN if ufunc is np.minimum else Op.MAX, out.dtype))
            return
        if ufunc is np.add:
            sum_tile(tile, axes, out, ndim=self.ndim, keepdims=keepdims, **more)
            return
        axis = axes[0] if len(axes) == 1 else axes  # np.subtract and others reduce along one axis only
        dtype = None if ufunc in LOGICAL else loop_dtype(out.dtype)
        ufunc.reduce(tile, axis=axis, dtype=dtype, out=out, keepdims=keepdims, **more)


def _reduced(reduction: Reduction, tile_reduction: _TileReduction, dtype: np.dtype[Any], out: Any) -> Any:
    keepdims = reduction.keepdims  # `once` is cached, and must not keep the array alive

    def once(tile: Array, mask: Array | None, result: Array, where: TileBoxes) -> None:
        begins = tile_reduction.repeats or where.part == 0
        tile_reduction.reduce(tile, mask, result, begins=begins, keepdims=keepdims)

    def first(tile: Array, mask: Array | None, pieces: Array, _: TileBoxes) -> None:
        tile_reduction.reduce(tile, mask, pieces, begins=tile_reduction.repeats)

    def last(pieces: Array, result: Array) -> None:
        replace(tile_reduction, instead_of_nan=None).reduce(pieces, None, result, begins=True)

    op = op_of(tile_reduction.ufunc, dtype)
    if op is not None and tile_reduction.instead_of_nan is None:

        def work() -> Any:
            rows = reduction.by_rows(tile_reduction.ufunc, dtype)
            return rows.combined(once, dtype, op, out, takes_stacks=tile_reduction.initial is _NO_VALUE)

        return recorded_as_one(reduction.name, reduction.x, work)
    if op is not None:
        # The parts are combined first, because a part may be NaN although the combined value is not.
        reduction = replace(reduction, x=materialized(reduction.x))
        return reduction.combined(once, dtype, op, out)
    if reduction.is_cut and tile_reduction.ufunc in ASSOCIATIVE:
        return reduction.in_two_stages(first, dtype, last, dtype, out)
    return reduction.undivided(once, dtype, out)


def op_of(ufunc: np.ufunc, dtype: np.dtype[Any]) -> Op | None:
    """Return the operation with which collectives combine results of a dtype; None if there is none."""
    if dtype.kind == "b":
        return _COLLECTIVE_OPS_OF_BOOL.get(ufunc)
    op = _COLLECTIVE_OPS.get(ufunc)
    if dtype.kind == "c":
        return op if op in (Op.SUM, Op.PROD) and dtype.itemsize <= 16 else None
    return op if dtype.kind in "iuf" and dtype.itemsize <= 8 else None


@implements_ufunc(None, "reduce")
def _method(ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    (out,) = kwargs.get("out", (None,))
    return reduce(ufunc, *inputs, **{**kwargs, "out": out})


def _implement(name: str, ufunc: np.ufunc, *others: str, takes_dtype: bool = False) -> None:
    def with_dtype(a: Any, axis: Axes = None, dtype: Any = None, out: Any = None, *args: Any, **kwargs: Any) -> Any:
        return reduce(ufunc, a, axis, dtype, out, *args, name=name, **kwargs)

    def without(a: Any, axis: Axes = None, out: Any = None, *args: Any, **kwargs: Any) -> Any:
        return reduce(ufunc, a, axis, None, out, *args, name=name, **kwargs)

    implements(name, *others)(with_dtype if takes_dtype else without)


_implement("sum", np.add, takes_dtype=True)
_implement("prod", np.multiply, takes_dtype=True)
_implement("max", np.maximum, "amax")
_implement("min", np.minimum, "amin")
_implement("any", np.logical_or)
_implement("all", np.logical_and)


@implements(np.ptp)
def _ptp(a: Any, axis: Axes = None, out: Any = None, keepdims: Any = False) -> Any:
    if not isinstance(a, ShardedArray) or a.dtype.hasobject:
        return NotImplemented
    largest = reduce(np.maximum, a, axis, None, out, keepdims, name="ptp")
    return np.subtract(largest, reduce(np.minimum, a, axis, keepdims=keepdims, name="ptp"), out=out)
