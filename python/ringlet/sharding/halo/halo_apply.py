"""Halo operations: a tile of the result also depends on operand elements outside the corresponding operand tile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ringlet.sharding.execution.device_threads import in_threads
from ringlet.sharding.execution.propagation import TileBoxes
from ringlet.sharding.execution.tile_execution import allocate, arrays_at_once, compute, prepare
from ringlet.sharding.explain_operations import recorded_as_one
from ringlet.sharding.halo.halo_exchange import exchange_halo
from ringlet.sharding.halo.windows import Needs
from ringlet.sharding.layout.factors import FactorMap
from ringlet.sharding.layout.layout import Array, Box, Shape
from ringlet.sharding.sharded_array import ShardedArray

SeeingKernel = Callable[[Sequence[Array], tuple[Box, ...], Array, Box], object]


def apply_with_halo(
    name: str,
    factor_map: FactorMap,
    kernel: SeeingKernel,
    operands: Sequence[Any],
    *,
    dtype: np.dtype[Any],
    shape: Shape,
    needs: Callable[[int, tuple[int, ...]], Needs],
    effort: float = 1.0,
    at_once: Callable[[tuple[int, ...]], SeeingKernel | None] | None = None,
) -> Any:
    """Run an operation on tiles and their halos.

    ``kernel(buffers, boxes, out, out_box)`` fills `out`, which is box `out_box` of the result, from `boxes` of
    `buffers`; each operand has one buffer, with the operand's shape. ``needs(operand, counts)`` returns the ranges of
    an operand that each tile needs, given the number of tiles along each of its dimensions. `at_once` is for small work
    in shared memory: given the number of equal tiles along each dimension of the result, it returns a kernel that fills
    all tiles in one call with the same bits as separate calls, or None.
    """
    if not any(isinstance(x, ShardedArray) for x in operands):
        out = np.empty(shape, dtype)
        _fill_whole(kernel, operands, out)
        return out

    def work() -> ShardedArray:
        prepared = prepare(name, factor_map, operands, dtype, shape=shape)
        seen = [
            exchange_halo(x, layout, needs(number, tuple(cut.count for cut in layout.cuts)), prepared.group, given)
            for number, (x, layout, given) in enumerate(
                zip(prepared.operands, prepared.plan.operand_layouts, operands, strict=True)
            )
        ]
        result = allocate(prepared)
        arrays, whole = arrays_at_once(prepared, effort), result._whole
        if at_once is not None and arrays is not None and whole is not None:
            for_all = at_once(tuple([cut.count for cut in result._layout.cuts]))
            if for_all is not None:
                _fill_whole(for_all, arrays, whole)
                return result

        def fill(out: Array, where: TileBoxes) -> None:
            device = where.device
            kernel(
                [buffers[device] for buffers, _ in seen], tuple(boxes[device] for _, boxes in seen), out, where.result
            )

        compute(result, fill, prepared, effort)
        return result

    return recorded_as_one(name, operands, work)


def as_operand(given: ArrayLike) -> Any:
    """Convert a value to an ndarray, unless it is a sharded array; raise TypeError for a masked array."""
    if isinstance(given, np.ma.MaskedArray):
        raise TypeError("a masked array would lose its mask: pass array.filled(0), or another suitable fill value")
    return given if isinstance(given, ShardedArray) else np.asarray(given)


def check_cotangent(cotangent: Any, shape: Shape) -> None:
    """Check that a gradient has the shape of the result."""
    if cotangent.shape != shape:
        raise ValueError(
            f"the gradient has shape {cotangent.shape}, expected the result's shape {shape}: pass a gradient of that "
            "shape"
        )


def _fill_whole(kernel: SeeingKernel, arrays: Sequence[Array], whole: Array) -> None:
    def fill(_: int) -> None:
        kernel(arrays, tuple(map(_all, arrays)), whole, _all(whole))

    in_threads(fill, (0,), whole.nbytes)  # one BLAS thread, as for tiles


def _all(array: Array) -> Box:
    return tuple(slice(0, size) for size in array.shape)
