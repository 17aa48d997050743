"""Reduction along divided dimensions: by partial results, or by gathered pieces."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from ringlet.collectives import Op
from ringlet.sharding.execution.propagation import TileBoxes
from ringlet.sharding.execution.shape_inference import loop_dtype
from ringlet.sharding.execution.tile_execution import apply
from ringlet.sharding.explain_operations import recorded_as_one
from ringlet.sharding.layout.factors import FactorMap, Labels
from ringlet.sharding.layout.layout import WHOLE, Array, Layout, Shape, tile_bounds
from ringlet.sharding.memory_modes import current_mode
from ringlet.sharding.resharding.reshard import materialized, redistribute
from ringlet.sharding.sharded_array import ShardedArray
from ringlet.values.operator_proxy import plain

Axes = int | Sequence[int] | None

# Minimum size in bytes for a reduction in two passes, the first row by row in memory order.
_BY_ROWS_BYTES = 1 << 20

# Reduces the elements of a tile selected by a mask (None for all) into `out`.
Reducer = Callable[[Array, Array | None, Array, TileBoxes], object]


def normalized_axes(axis: Axes, ndim: int) -> tuple[int, ...]:
    """Return the axes of an `axis` argument that NumPy has validated, in ascending order from 0."""
    if axis is None or ndim == 0:
        return tuple(range(ndim))
    axes = axis if isinstance(axis, Sequence) else (axis,)
    return tuple(sorted(operator.index(a) % ndim for a in axes))


def mask_of(where: Any) -> Any:
    """Return the mask array of `where`; None if all elements count."""
    where = plain(where)
    if where is True or where is np._NoValue:
        return None
    return where if isinstance(where, (ShardedArray, np.ndarray)) else np.asarray(where, getattr(where, "dtype", bool))


def without_nan(tile: Array, number: float | None) -> Array:
    """Return a tile with NaN replaced by a number; the tile itself without a number, or if its dtype has no NaN."""
    if number is None or tile.dtype.kind not in "fc":
        return tile
    return np.where(np.isnan(tile), tile.dtype.type(number), tile)


def sum_tile(tile: Array, axes: tuple[int, ...], out: Array, *, ndim: int | None = None, **more: Any) -> None:
    """Sum the elements of a tile, as ``np.add.reduce`` does for a whole array.

    NumPy sums contiguous elements pairwise and then accumulates such sums in sequence, which loses precision for the
    many short rows of a tile. This function adds the sums of rows pairwise too. If `tile` is a stack of tiles of `ndim`
    dimensions, in C order, `axes` count from the last; each tile's sum has the same bits as for the tile alone.
    """
    adds_rows = len(axes) > 1 and axes[-1] in (-1, tile.ndim - 1) and out.dtype.kind in "fc" and "where" not in more
    one = tile if ndim in (None, tile.ndim) else tile[(0,) * (tile.ndim - ndim)]
    if adds_rows and not (one.flags.c_contiguous or one.flags.f_contiguous):
        rows = None if one is tile else np.empty((*tile.shape[:-1], 1), out.dtype)
        tile = np.add.reduce(tile, axes[-1], out.dtype, rows, keepdims=True)
    np.add.reduce(tile, axes, loop_dtype(out.dtype), out, **more)


@dataclass(frozen=True)
class Reduction:
    """Arguments of a reduction of an array, or of its elements selected by `mask`, along ascending axes."""

    name: str
    x: ShardedArray
    axes: tuple[int, ...]
    keepdims: bool = False
    mask: Any = None

    @classmethod
    def of(cls, name: str, x: ShardedArray, axis: Axes, keepdims: Any, where: Any = True) -> Reduction:
        """Build the reduction for a NumPy call; raise ValueError if `where` does not broadcast to the shape of `x`."""
        mask = mask_of(where)
        if mask is not None and not _broadcasts(mask.shape, x.shape):
            raise ValueError(
                f"{name} was given where= of shape {mask.shape} for an array of shape {x.shape}, to which it does not "
                "broadcast: pass a mask whose dimensions are the array's last, each of the same size or of size 1"
            )
        return cls(name, x, normalized_axes(axis, x.ndim), keepdims is not np._NoValue and bool(keepdims), mask)

    @property
    def count(self) -> int:
        """Number of elements reduced to each result if no mask excludes any."""
        return math.prod(self.x.shape[axis] for axis in self.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the result."""
        sizes = enumerate(self.x.shape)
        return tuple(1 if axis in self.axes else size for axis, size in sizes if self.keepdims or axis not in self.axes)

    @property
    def is_cut(self) -> bool:
        """Whether a reduced dimension is divided."""
        return any(self.x._layout.cuts[axis].count > 1 for axis in self.axes)

    def combined(self, reducer: Reducer, dtype: Any, op: Op, out: Any = None, *, takes_stacks: bool = False) -> Any:
        """Reduce each tile; if a reduced dimension is divided, the result may be partial, and `op` combines its parts.

        Each part of a partial array is reduced by itself if `op` is the operation that combines the parts, there is no
        mask, and the dtype does not change; otherwise the parts are combined before the reduction. `takes_stacks`
        states that `reducer` also reduces a stack of tiles along additional leading dimensions: its axes are negative,
        and it ignores its `TileBoxes`.
        """
        if out is None and self._may_join_columns(np.dtype(dtype)):
            return recorded_as_one(
                self.name, self.x, lambda: self._on_whole_axis(self.x.ndim - 1, reducer, dtype, op, takes_stacks)
            )
        return self._apply(reducer, dtype, out, op, takes_stacks and self._may_stack(np.dtype(dtype)))

    def undivided(self, reducer: Reducer, dtype: Any, out: Any = None) -> Any:
        """Reduce with the reduced dimensions whole on each device."""
        return self._apply(reducer, dtype, out, None)

    def in_two_stages(
        self, reducer: Reducer, piece_dtype: Any, last: Callable[[Array, Array], object], dtype: Any, out: Any = None
    ) -> Any:
        """Reduce each tile to pieces, of size 1 along the reduced dimensions; gather the pieces, and reduce them.

        `reducer` reduces a tile that has elements; `piece_dtype` is structured if a piece has several numbers.
        ``last(pieces, out)`` reduces one piece for each tile with elements, in order. Both functions keep all
        dimensions.
        """

        def work() -> Any:
            aligned = self._aligned()
            pieces = aligned._pieces(reducer, piece_dtype)
            gathered = replace(aligned, x=pieces, mask=None)

            def finish(tile: Array, _: Array | None, result: Array, __: TileBoxes) -> None:
                if result.size:
                    last(tile, _kept(result, tile.shape, self.axes))

            return gathered.undivided(finish, dtype, out)

        return recorded_as_one(self.name, self.x, work)

    def by_rows(self, ufunc: np.ufunc, dtype: np.dtype[Any]) -> Reduction:
        """Reduce each row of a tile first if that reads memory sequentially; return the remaining reduction.

        `ufunc` allows partial reductions, up to rounding. Returns this reduction unchanged in all other cases, for
        example if tiles are whole rows or of different widths, or the array is small or partial.
        """
        x = self.x
        if self.mask is not None or not x.ndim or x.ndim - 1 not in self.axes or x._layout.is_partial:
            return self
        *others, cut = x._layout.cuts
        width = x.shape[-1] // cut.count
        if cut.count == 1 or x.shape[-1] % cut.count or width < 2 or x.size * x.dtype.itemsize < _BY_ROWS_BYTES:
            return self
        if not self._is_exact_by_rows(dtype):
            return self

        def reducer(tile: Array, _: Array | None, result: Array, __: TileBoxes) -> None:
            ufunc.reduce(tile, x.ndim, out=result)

        layout = x._layout.with_cuts((*others, cut, WHOLE))
        apart = x._derive(lambda buffer: buffer.reshape(*x.shape[:-1], cut.count, width), layout)
        rows = Reduction(self.name, apart, (x.ndim,))
        return replace(self, x=rows._on_whole_axis(x.ndim - 1, reducer, dtype, None))

    def _is_exact_by_rows(self, dtype: np.dtype[Any]) -> bool:
        """Return whether a tile's bits do not depend on other tiles: memory is in C order, floats are not converted."""
        x = self.x
        if dtype.kind in "fc" and dtype != x._dtype:
            return False
        buffers = (x._whole,) if x._buffers is None else x._buffers
        return all(buffer is None or buffer.flags.c_contiguous for buffer in buffers)

    def _may_join_columns(self, dtype: np.dtype[Any]) -> bool:
        """Return whether tiles adjacent in memory can be reduced as one array, because whole rows are combined.

        False if the reduction runs along the rows, or if a tile is so narrow (one column) that NumPy treats it as a
        row.
        """
        x = self.x
        if self.mask is not None or not x.ndim or x.ndim - 1 in self.axes or x._whole is None:
            return False
        return _has_columns(x.shape[-1], x._layout.cuts[-1].count) and self._is_exact_by_rows(dtype)

    def _may_stack(self, dtype: np.dtype[Any]) -> bool:
        """Return whether one call reduces tiles to the same bits as separate calls; false for rows of one element."""
        x = self.x
        is_wide = x.ndim > 0 and x.shape[-1] > x._layout.cuts[-1].count
        return self.mask is None and x._whole is not None and is_wide and self._is_exact_by_rows(dtype)

    def _on_whole_axis(self, axis: int, reducer: Reducer, dtype: Any, op: Op | None, takes_stacks: bool = False) -> Any:
        """Reduce with the unreduced dimension `axis` whole if memory is shared, since narrow tiles are much slower."""
        x = self.x
        if x._whole is None or current_mode() != "shared":  # the result would not be in shared memory
            return self._apply(reducer, dtype, None, op)
        joined = ShardedArray._of_whole(x._whole, _joined_layout(x._layout, axis, self.axes), x._group)
        found = Reduction(self.name, joined, self.axes, self.keepdims)._apply(reducer, dtype, None, op, takes_stacks)
        layout = _cut_again(found._layout, x._layout, self.axes, self.keepdims)
        if found._buffers is None:
            return ShardedArray._of_whole(found._whole, layout, x._group)
        return ShardedArray._build(found._buffers, layout, x._group, found._combine)

    def _aligned(self) -> Reduction:
        """Combine the array's parts, and divide the mask like the array, so that each piece belongs to one tile."""
        x = materialized(self.x)
        if not isinstance(self.mask, ShardedArray):
            return replace(self, x=x)
        first = x.ndim - self.mask.ndim
        cuts = [
            x._layout.cuts[first + d] if size == x.shape[first + d] else WHOLE for d, size in enumerate(self.mask.shape)
        ]
        layout = Layout(x._layout.num_devices, tuple(cuts), only=x._layout.only)
        return replace(self, x=x, mask=redistribute(materialized(self.mask), layout))

    def _pieces(self, reducer: Reducer, dtype: Any) -> Any:
        x = self.x
        shape = tuple(
            _num_pieces(size, x._layout.cuts[axis].count) if axis in self.axes else size
            for axis, size in enumerate(x.shape)
        )

        def kernel(tiles: list[Any], out: Array, where: TileBoxes) -> None:
            if out.size:
                reducer(tiles[0], tiles[1] if len(tiles) > 1 else None, out, where)

        labels = tuple(range(x.ndim))
        return apply(self.name, FactorMap(self._operand_labels(), labels), kernel, self._operands, dtype, shape=shape)

    def _apply(self, reducer: Reducer, dtype: Any, out: Any, op: Op | None, takes_stacks: bool = False) -> Any:
        def kernel(tiles: list[Any], result: Array, where: TileBoxes) -> None:
            if result.size:
                reducer(tiles[0], tiles[1] if len(tiles) > 1 else None, result, where)

        is_linear = op is not None and self.mask is None and np.dtype(dtype) == self.x.dtype
        factors = _factor_map(self._operand_labels(), self.axes, self.keepdims, op, is_linear)
        return apply(self.name, factors, kernel, self._operands, dtype, out=out, takes_stacks=takes_stacks)

    @property
    def _operands(self) -> list[Any]:
        return [self.x] if self.mask is None else [self.x, self.mask]

    def _operand_labels(self) -> tuple[Labels, ...]:
        labels = tuple(range(self.x.ndim))
        if self.mask is None:
            return (labels,)
        first = self.x.ndim - self.mask.ndim
        shape = self.x.shape
        return (
            labels,
            tuple(first + d if size == shape[first + d] else None for d, size in enumerate(self.mask.shape)),
        )


@lru_cache(maxsize=1024)
def _joined_layout(layout: Layout, axis: int, axes: tuple[int, ...]) -> Layout:
    """Return a layout with `axis` whole; if none stays divided, divide the first unless reduced, to use all threads."""
    wider = [WHOLE if each == axis else cut for each, cut in enumerate(layout.cuts)]
    if axis and 0 not in axes and all(cut.count == 1 for cut in wider):
        wider[0] = layout.cuts[axis]
    return layout.with_cuts(wider)


@lru_cache(maxsize=1024)
def _cut_again(result: Layout, reduced: Layout, axes: tuple[int, ...], keepdims: bool) -> Layout:
    kept = [d for d in range(reduced.ndim) if keepdims or d not in axes]
    return result.with_cuts([WHOLE if d in axes else reduced.cuts[d] for d in kept])


@lru_cache(maxsize=1024)
def _has_columns(size: int, count: int) -> bool:
    widths = {end - begin for begin, end in tile_bounds(size, count)}
    return count > 1 and not widths & {0, 1}


@lru_cache(maxsize=1024)
def _factor_map(
    operands: tuple[Labels, ...], axes: tuple[int, ...], keepdims: bool, op: Op | None, is_linear: bool
) -> FactorMap:
    kept = [axis for axis in operands[0] if keepdims or axis not in axes]
    result = tuple(None if axis in axes else axis for axis in kept)
    if op is None:
        return FactorMap(operands, result, whole=frozenset(axes))
    linear = (frozenset({0}),) if is_linear else ()
    return FactorMap(operands, result, dict.fromkeys(axes, op), linear=linear, linear_ops=frozenset({op}))


def _kept(array: Array, shape: Shape, axes: tuple[int, ...]) -> Array:
    return array.reshape(tuple(1 if axis in axes else size for axis, size in enumerate(shape)))  # a view


def _num_pieces(size: int, num_tiles: int) -> int:
    """Return the number of tiles that are not empty, at least 1: without elements, the first tile has the result."""
    return -(-size // -(-size // num_tiles)) if size else 1


def _broadcasts(shape: Shape, target: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(shape, target) == target
    except ValueError:
        return False
