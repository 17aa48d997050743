"""Norms of vectors and matrices: tile by tile, or from the singular values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ringlet.collectives import Op
from ringlet.sharding.execution.array_function_table import implements
from ringlet.sharding.execution.propagation import TileBoxes
from ringlet.sharding.execution.shape_inference import probe_array, small
from ringlet.sharding.explain_operations import recorded_as_one
from ringlet.sharding.layout.layout import Array
from ringlet.sharding.reductions.reduction_execution import Axes, Reduction, normalized_axes, sum_tile
from ringlet.sharding.resharding.reshard import materialized
from ringlet.sharding.sharded_array import ShardedArray


@implements(np.linalg.norm)
def _norm(x: Any, ord: Any = None, axis: Axes = None, keepdims: bool = False) -> Any:
    if ord is None and axis is None and not keepdims and getattr(x, "dtype", None) in (np.float32, np.float64):
        return np.sqrt(np.vdot(x, x))
    return _checked(np.linalg.norm, x, is_vector=ord is None and axis is None, ord=ord, axis=axis, keepdims=keepdims)


@implements("linalg.vector_norm")
def _vector_norm(x: Any, /, *, axis: Axes = None, keepdims: bool = False, ord: Any = 2) -> Any:
    return _checked(np.linalg.vector_norm, x, is_vector=True, ord=ord, axis=axis, keepdims=keepdims)


@implements("linalg.matrix_norm")
def _matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    return _checked(np.linalg.matrix_norm, x, is_vector=False, ord=ord, keepdims=keepdims)


def _checked(function: Callable[..., Any], x: Any, *, is_vector: bool, **kwargs: Any) -> Any:
    if not isinstance(x, ShardedArray) or x.dtype.kind not in "biufc":
        return NotImplemented
    with np.errstate(all="ignore"):
        dtype = np.asarray(function(probe_array(small(x)), **kwargs)).dtype
    order, axis = kwargs["ord"], kwargs.get("axis", (-2, -1))
    if np.ndim(order):
        return NotImplemented
    if axis is not None and not isinstance(axis, tuple):
        axis = int(axis)  # like NumPy, truncates a fractional axis such as 1.5
    axes = tuple(each % x.ndim for each in axis) if isinstance(axis, tuple) else normalized_axes(axis, x.ndim)
    if not is_vector and len(axes) == 2 and order in (2, -2, "nuc"):
        matrices: Any = np.moveaxis(x, axes, (-2, -1))  # type: ignore[type-var]  # dispatched
        reductions: dict[Any, Any] = {2: np.max, -2: np.min, "nuc": np.sum}
        found = reductions[order](np.linalg.svd(matrices, compute_uv=False), axis=-1)
        return np.expand_dims(found, sorted(axes)) if kwargs["keepdims"] else found
    norm = _of_vectors if is_vector or len(axes) != 2 else _of_matrices
    norms = _Norms(x, kwargs["keepdims"], dtype)
    return recorded_as_one(function.__name__, x, lambda: norm(norms, order, axes))


def _of_vectors(norms: _Norms, order: Any, axes: tuple[int, ...]) -> Any:
    if order is None or order == 2:
        return np.sqrt(norms.reduced(np.add, _square, axes))
    if order in (np.inf, -np.inf):
        return norms.reduced(np.maximum if order > 0 else np.minimum, np.abs, axes)
    if order == 0:
        return norms.reduced(np.add, lambda tile: tile != 0, axes)
    if order == 1:
        return norms.reduced(np.add, np.abs, axes)
    return np.power(norms.reduced(np.add, lambda tile: np.abs(tile).astype(norms.dtype) ** order, axes), 1 / order)


def _of_matrices(norms: _Norms, order: Any, axes: tuple[int, ...]) -> Any:
    if order in (None, "fro", "f"):
        return np.sqrt(norms.reduced(np.add, _square, axes))
    rows, columns = axes if abs(order) == 1 else axes[::-1]
    sums = replace(norms, keepdims=True).reduced(np.add, np.abs, (rows,))
    extreme = np.max(sums, columns, initial=0, keepdims=True) if order > 0 else np.min(sums, columns, keepdims=True)
    return extreme if norms.keepdims else np.squeeze(extreme, axis=axes)


def _square(tile: Array) -> Array:
    if tile.dtype.kind == "c":
        squares: Array = tile.real**2 + tile.imag**2
        return squares
    return np.square(tile, dtype=np.float64 if tile.dtype.kind in "biu" else None)


_COMBINED: Mapping[np.ufunc, tuple[Op, float]] = {
    np.add: (Op.SUM, 0),
    np.maximum: (Op.MAX, 0),
    np.minimum: (Op.MIN, np.inf),
}


@dataclass(frozen=True)
class _Norms:
    x: ShardedArray
    keepdims: bool
    dtype: np.dtype[Any]

    def reduced(self, ufunc: np.ufunc, function: Callable[[Array], Array], axes: tuple[int, ...]) -> Any:
        """Reduce the non-negative values that a function returns for each element."""
        reduction = Reduction.of("norm", materialized(self.x), axes, self.keepdims)
        op, least = _COMBINED[ufunc]
        ndim, lasts = self.x.ndim, tuple(axis - self.x.ndim for axis in axes)

        def reducer(tile: Array, _: Array | None, result: Array, __: TileBoxes) -> None:
            tile = function(tile) if tile.ndim == ndim else np.ascontiguousarray(function(tile))
            if ufunc is np.add:
                sum_tile(tile, lasts, result, ndim=ndim, keepdims=self.keepdims)
            else:
                ufunc.reduce(tile, lasts, self.dtype, out=result, keepdims=self.keepdims, initial=least)

        return reduction.combined(reducer, self.dtype, op, takes_stacks=True)
