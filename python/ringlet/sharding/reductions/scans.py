"""Scans: ``accumulate`` and ``reduceat`` of ufuncs, along dimensions that are not divided."""

from __future__ import annotations

import operator
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

    If the dimension is divided, it is gathered; other dimensions keep their layout.
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

    return apply(name or f"{ufunc.__name__}.accumulate", _along(x.ndim, along), kernel, [x], found, out=out)


def reduceat(  # noqa: PLR0917  # as NumPy has them
    ufunc: np.ufunc, x: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None
) -> Any:
    """Reduce slices of a dimension, as ``ufunc.reduceat`` does; a divided dimension is gathered.

    Return ``NotImplemented`` if `indices` are sharded, `x` is not sharded, or `x` contains objects.
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
        line = np.reshape(a, -1) if axis is None or a.ndim == 0 else a
        along = 0 if axis is None else operator.index(axis)
        return accumulate(ufunc, line, along, dtype, out, name=name, instead_of_nan=instead_of_nan)

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
        if not isinstance(x, ShardedArray) or include_initial or function is None:
            return NotImplemented
        function(probe_array(small(x)), axis=axis)  # raises NumPy's errors
        line = x if x.ndim else np.reshape(x, -1)
        return accumulate(ufunc, line, 0 if axis is None else axis, dtype, out, name=name)

    implements(name)(running)


_implement_cumulative("cumulative_sum", np.add)
_implement_cumulative("cumulative_prod", np.multiply)
