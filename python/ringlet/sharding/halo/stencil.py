"""Stencils: functions of the neighbourhood of each element, tile by tile, and their gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ringlet.collectives.argument_parsing import shortened
from ringlet.sharding.execution.tile_execution import allocate, compute, prepare
from ringlet.sharding.explain_operations import recorded_as_one
from ringlet.sharding.halo.boundary import (
    Boundaries,
    Boundary,
    Bounds,
    boundary_of,
    extended,
    folded,
    ranges_of,
    segments,
)
from ringlet.sharding.halo.cache_blocks import blocks
from ringlet.sharding.halo.halo_apply import apply_with_halo, as_operand, check_cotangent
from ringlet.sharding.halo.halo_exchange import exchange_halo
from ringlet.sharding.halo.windows import POINTWISE, Needs
from ringlet.sharding.layout.factors import FactorMap
from ringlet.sharding.layout.layout import Array, Box, Shape, tile_bounds
from ringlet.sharding.layout.partition import whole_number
from ringlet.sharding.resharding.transfers import box_size
from ringlet.sharding.sharded_array import ShardedArray

Depth = int | Sequence[int | tuple[int, int]]

# Size of a part in bytes. Functions allocate several arrays of this size, and are much faster if they fit in the cache.
_PART_BYTES = 256 << 10


def map_halo(function: Callable[[Array], Any], x: Any, depth: Depth, boundary: Any = "zero") -> Any:
    """Apply a function to each part of an array together with the elements around it.

    For stencils: the result of `function` for an element must depend only on it and its neighbours up to `depth` away.
    The result then depends neither on the division of `x` nor on the parts for which `function` is called.

    Parameters
    ----------
    function : callable
        Takes a read-only array with `depth` more elements at each end than the part. Returns an array of the part's
        shape, or of the argument's shape, whose ends are then removed. Called for parts of any size, concurrently in
        several threads.
    x : array-like
    depth : int or sequence of (int or (int, int))
        Distance to the farthest neighbour, for all dimensions or for each; a pair has the distances before and after
        the element. May exceed the size of a tile.
    boundary : str, number, or sequence of these, one for each dimension
        Elements beyond the ends: ``"zero"`` or a number; ``"reflect"``: the elements in reverse order, beginning with
        the end element; ``"nearest"``: the end element; ``"periodic"``: the array again.

    Returns
    -------
    ShardedArray, or ndarray if `x` is not sharded
        Has the shape and division of `x` and the dtype that `function` returns, or the dtype of `x` if `x` is empty.

    Raises
    ------
    ValueError
        If `depth` or `boundary` does not fit the array, or the result of `function` has the wrong shape.

    See Also
    --------
    map_halo_vjp : The gradient of this function.

    References
    ----------
    scipy, ``scipy.ndimage``: the same names for the same boundaries, except ``"constant"`` and ``"wrap"``.

    Examples
    --------
    >>> from ringlet.sharding import Sharding, map_halo, shard
    >>> x = shard(np.array([0, 1, 4, 9, 16, 25]), Sharding.tiled((2,)))
    >>> np.asarray(map_halo(lambda part: part[2:] - part[:-2], x, 1, "nearest"))
    array([ 1,  4,  8, 12, 16,  9])
    """
    x = as_operand(x)
    view = _view(x, depth, boundary)
    dimensions = tuple(range(x.ndim))

    def fill(buffer: Array, out: Array, box: Box) -> None:
        for part, place in _blocks_of(out.shape, box, x.dtype):
            out[place] = _applied(function, buffer, part, view)

    if not x.size:
        return x.copy()
    if not isinstance(x, ShardedArray):
        whole = tuple(slice(0, size) for size in x.shape)
        out = np.empty(x.shape, _dtype(function, x, whole, view))
        fill(x, out, whole)
        return out

    def work() -> ShardedArray:
        prepared = prepare("map_halo", FactorMap((dimensions,), dimensions), [x], x.dtype)
        layout = prepared.plan.operand_layouts[0]
        needs = _needs(view, tuple(cut.count for cut in layout.cuts))
        buffers, _ = exchange_halo(prepared.operands[0], layout, needs, prepared.group, x)
        filled = (d for d, box in enumerate(prepared.plan.result_boxes) if buffers[d] is not None and box_size(box))
        device = next(filled, None)
        dtype = (
            x.dtype if device is None else _dtype(function, buffers[device], prepared.plan.result_boxes[device], view)
        )
        result = allocate(prepared._replace(dtype=dtype))
        compute(result, lambda out, where: fill(buffers[where.device], out, where.result), prepared, effort=4.0)
        return result

    return recorded_as_one("map_halo", x, work)


def map_halo_vjp(
    function_vjp: Callable[[Array, Array], Any], x: Any, cotangent: Any, depth: Depth, boundary: Any = "zero"
) -> Any:
    """Return the vector-Jacobian product of :func:`map_halo`: the cotangent of its input.

    Parameters
    ----------
    function_vjp : callable
        ``function_vjp(part, cotangent)`` returns the cotangent of `part`, with its shape. `part` includes its halo,
        `cotangent` does not.
    x : array-like
        The operand of :func:`map_halo`.
    cotangent : array-like
        The gradient of the result, with the result's shape.
    depth, boundary
        As for :func:`map_halo`.

    Returns
    -------
    ShardedArray, or ndarray if neither is sharded
        Has the shape of `x` and the dtype of `cotangent`. Includes the gradients of elements repeated beyond the ends.

    Raises
    ------
    ValueError
        If the shapes of `cotangent` and `x` differ, or in the cases of :func:`map_halo`.

    Examples
    --------
    The gradient of ``part[2:] - part[:-2]``:

    >>> from ringlet.sharding import map_halo_vjp
    >>> def difference_vjp(part, cotangent):
    ...     return np.pad(cotangent, (2, 0)) - np.pad(cotangent, (0, 2))
    >>> map_halo_vjp(difference_vjp, np.zeros(4), np.array([1.0, 2.0, 4.0, 8.0]), 1, "nearest")
    array([-3., -3., -6., 12.])
    """
    x, cotangent = as_operand(x), as_operand(cotangent)
    check_cotangent(cotangent, x.shape)
    view = _view(x, depth, boundary)
    outputs = view._replace(depths=((0, 0),) * x.ndim, reaches=tuple(map(max, view.depths)))
    inputs = view._replace(reaches=outputs.reaches)
    # For a periodic array, outputs beyond the ends are computed from repetitions of `cotangent`. Gradients of elements
    # beyond the ends are dropped: adding them to the elements that they repeat would count these outputs twice.
    once = tuple(Boundary("constant") if b.kind == "periodic" else b for b in view.boundaries)
    dimensions = tuple(range(x.ndim))

    def kernel(buffers: Sequence[Array], _: tuple[Box, ...], out: Array, out_box: Box) -> None:
        for part, place in _blocks_of(out.shape, out_box, cotangent.dtype):
            bounds = inputs.bounds(part)
            given = extended(buffers[1], outputs.bounds(part), view.boundaries)
            gradient = np.asarray(function_vjp(extended(buffers[0], bounds, view.boundaries), given))
            expected = tuple(stop - start for start, stop in bounds)
            if gradient.shape != expected:
                raise ValueError(
                    f"the function returned a gradient of shape {gradient.shape}: expected {expected}, the shape of "
                    "its first argument"
                )
            out[place] = folded(gradient, bounds, x.shape, once, part)

    return apply_with_halo(
        "map_halo_vjp",
        FactorMap((dimensions, dimensions), dimensions),
        kernel,
        (x, cotangent),
        dtype=cotangent.dtype,
        shape=x.shape,
        needs=lambda number, counts: _needs((inputs, outputs)[number], counts),
        effort=8.0,
    )


class _View(NamedTuple):
    """Region around a part: extended by `reaches` (for gradients: to all affected outputs), then by `depths`."""

    shape: Shape
    depths: tuple[tuple[int, int], ...]
    boundaries: Boundaries
    reaches: tuple[int, ...]

    def bounds(self, part: Box) -> Bounds:
        """Return the bounds of a part with its halo, which may lie beyond the ends of the array."""
        return tuple(self.along(dimension, side.start, side.stop) for dimension, side in enumerate(part))

    def along(self, dimension: int, begin: int, end: int) -> tuple[int, int]:
        length, (before, after) = self.shape[dimension], self.depths[dimension]
        begin, end = begin - self.reaches[dimension], end + self.reaches[dimension]
        if self.boundaries[dimension].kind != "periodic":
            begin, end = max(begin, 0), min(end, length)
        return begin - before, end + after


@lru_cache(maxsize=256)
def _needs(view: _View, counts: tuple[int, ...]) -> Needs:
    needs = []
    for dimension, (length, count) in enumerate(zip(view.shape, counts, strict=True)):
        kind = view.boundaries[dimension].kind
        spans = [
            view.along(dimension, *bounds) if bounds[0] < bounds[1] else (0, 0) for bounds in tile_bounds(length, count)
        ]
        needs.append(tuple(ranges_of(segments(length, *span, kind)) for span in spans))
    return tuple(needs)


def _blocks_of(shape: Shape, box: Box, dtype: np.dtype[Any]) -> Iterator[tuple[Box, Box]]:
    for block in blocks(shape, shape, (POINTWISE,) * len(shape), _PART_BYTES // dtype.itemsize):
        part = tuple(
            slice(side.start + place.start, side.start + place.stop)
            for side, place in zip(box, block.outputs, strict=True)
        )
        yield part, block.outputs


def _applied(function: Callable[[Array], Any], buffer: Array, part: Box, view: _View) -> Array:
    seen = extended(buffer, view.bounds(part), view.boundaries)
    result = np.asarray(function(seen))
    shape = tuple(side.stop - side.start for side in part)
    if result.shape == shape:
        return result
    if result.shape != seen.shape:
        raise ValueError(
            f"the function returned shape {result.shape} for an argument of shape {seen.shape}: expected {shape}, the "
            f"shape without the halo of {view.depths}, or {seen.shape}, from which the halo is then removed"
        )
    inner: Array = result[
        tuple(slice(before, before + size) for (before, _), size in zip(view.depths, shape, strict=True))
    ]
    return inner


def _dtype(function: Callable[[Array], Any], buffer: Array, box: Box, view: _View) -> np.dtype[Any]:
    shape = tuple(side.stop - side.start for side in box)
    part, _ = next(_blocks_of(shape, box, buffer.dtype))
    return _applied(function, buffer, part, view).dtype


def _view(x: Any, depth: Any, boundary: Any) -> _View:
    depths = list(depth) if isinstance(depth, Iterable) else [depth] * x.ndim
    pairs = [tuple(each) if isinstance(each, Iterable) else (each, each) for each in depths]
    exact = tuple(tuple(whole_number(number) for number in pair) for pair in pairs)
    if len(exact) != x.ndim or any(len(pair) != 2 or any(n is None or n < 0 for n in pair) for pair in exact):
        raise ValueError(
            f"depth is {shortened(depth)}: expected a number of 0 or more, or a number or pair of numbers for each of "
            f"{x.ndim} dimensions"
        )
    each = list(boundary) if isinstance(boundary, (list, tuple)) else [boundary] * x.ndim
    if len(each) != x.ndim:
        raise ValueError(
            f"boundary is {shortened(boundary)}: expected one boundary, or one for each of {x.ndim} dimensions"
        )
    boundaries = tuple(boundary_of(one, x.dtype) for one in each)
    return _View(x.shape, exact, boundaries, (0,) * x.ndim)  # type: ignore[arg-type]
