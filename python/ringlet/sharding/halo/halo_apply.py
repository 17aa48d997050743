"""Runs operations whose tiles see more of their operands than the same tile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ringlet.sharding.execution.device_threads import in_threads
from ringlet.sharding.execution.tile_execution import Where, arrays_at_once, compute, prepare, unfilled
from ringlet.sharding.explain import noted_as_one
from ringlet.sharding.halo.halo_exchange import with_neighbours
from ringlet.sharding.halo.windows import Needs
from ringlet.sharding.layout.factors import FactorMap
from ringlet.sharding.layout.layout import Box
from ringlet.sharding.sharded_array import ShardedArray

__all__ = ["SeeingKernel", "apply_seeing", "as_operand"]

Array = NDArray[Any]
SeeingKernel = Callable[[Sequence[Array], tuple[Box, ...], Array, Box], object]


def apply_seeing(
    name: str,
    factor_map: FactorMap,
    kernel: SeeingKernel,
    operands: Sequence[Any],
    *,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    needs: Callable[[int, tuple[int, ...]], Needs],
    effort: float = 1.0,
    at_once: Callable[[tuple[int, ...]], SeeingKernel | None] | None = None,
) -> Any:
    """Run an operation on tiles and what surrounds them.

    Parameters
    ----------
    name : str
        What reports call it.
    factor_map : FactorMap
    kernel : callable
        ``kernel(spaces, boxes, out, out_box)`` fills `out`, which is `out_box` of the result, from `boxes` of `spaces`:
        one for each operand, of its shape.
    operands : sequence of (ShardedArray or ndarray)
    dtype, shape
        Of the result.
    needs : callable
        ``needs(operand, counts)`` tells what each tile needs of an operand, given the number of tiles along each of its
        dimensions.
    effort : float
        As that of :func:`ringlet.sharding.execution.tile_execution.apply`.
    at_once : callable, optional
        Gives a kernel that fills all tiles in one call, the same bits as `kernel` does one by one, for a number of
        equal tiles along each dimension of the result; None if there is none. For little work in shared memory.

    Returns
    -------
    ShardedArray, or ndarray if no operand is sharded

    Examples
    --------
    >>> from ringlet.sharding import Sharding, shard
    >>> def differences(spaces, boxes, out, out_box):
    ...     out[...] = np.diff(spaces[0][boxes[0]])
    >>> x = shard(np.arange(9) ** 2, Sharding.tiled((2,)))
    >>> same = FactorMap((("i",),), ("i",))
    >>> needs = ((((0, 5),), ((4, 9),)),)
    >>> y = apply_seeing("diff", same, differences, [x], dtype=x.dtype, shape=(8,), needs=lambda *_: needs)
    >>> np.asarray(y)
    array([ 1,  3,  5,  7,  9, 11, 13, 15])
    """
    if not any(isinstance(x, ShardedArray) for x in operands):
        out = np.empty(shape, dtype)
        _fill_whole(kernel, operands, out)
        return out

    def work() -> ShardedArray:
        ready = prepare(name, factor_map, operands, dtype, shape=shape)
        seen = [
            with_neighbours(x, layout, needs(number, tuple(cut.count for cut in layout.cuts)), ready.group, given)
            for number, (x, layout, given) in enumerate(
                zip(ready.operands, ready.plan.operand_layouts, operands, strict=True)
            )
        ]
        result = unfilled(ready)
        arrays, whole = arrays_at_once(ready, effort), result._whole
        if at_once is not None and arrays is not None and whole is not None:
            for_all = at_once(tuple([cut.count for cut in result._layout.cuts]))
            if for_all is not None:
                _fill_whole(for_all, arrays, whole)
                return result

        def fill(out: Array, where: Where) -> None:
            device = where.device
            kernel([spaces[device] for spaces, _ in seen], tuple(boxes[device] for _, boxes in seen), out, where.result)

        compute(result, fill, ready, effort)
        return result

    return noted_as_one(name, operands, work)


def as_operand(given: ArrayLike) -> Any:
    """Give what an operation is to work on: sharded arrays as they are, anything else as an array.

    Raises
    ------
    TypeError
        If it is masked.

    Examples
    --------
    >>> as_operand([1, 2])
    array([1, 2])
    """
    if isinstance(given, np.ma.MaskedArray):
        raise TypeError("a masked array would lose its mask: give array.filled(0), or another value that is right here")
    return given if isinstance(given, ShardedArray) else np.asarray(given)


def _fill_whole(kernel: SeeingKernel, arrays: Sequence[Array], whole: Array) -> None:
    def fill(_: int) -> None:
        kernel(arrays, tuple(map(_all, arrays)), whole, _all(whole))

    in_threads(fill, (0,), whole.nbytes)  # one thread of BLAS, as tiles have


def _all(array: Array) -> Box:
    return tuple(slice(0, size) for size in array.shape)
