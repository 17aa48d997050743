"""Take: elements by their index along one dimension."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringlet.sharding.execution.array_function_table import implements
from ringlet.sharding.execution.shape_inference import shaped
from ringlet.sharding.execution.tile_execution import Where, apply, written_to
from ringlet.sharding.explain import note
from ringlet.sharding.layout.factors import FactorMap
from ringlet.sharding.layout.layout import WHOLE, Layout, tile_bounds
from ringlet.sharding.ops.pointwise import operand
from ringlet.sharding.resharding.collective_record import Collective
from ringlet.sharding.resharding.device_buffers import empty, filling_devices
from ringlet.sharding.resharding.regions import Copy, Form, Piece, plan_pieces
from ringlet.sharding.resharding.reshard import redistribute, settled
from ringlet.sharding.resharding.reshard_time import timed
from ringlet.sharding.resharding.tile_assembly import as_own, full_runs, nothing_moves
from ringlet.sharding.resharding.tile_transport import Transfer, transfer
from ringlet.sharding.resharding.transfers import components
from ringlet.sharding.sharded_array import ShardedArray

__all__ = ["take", "take_along_axis"]

Array = NDArray[Any]


@implements(np.take)
def take(a: Any, indices: Any, axis: int | None = None, out: Any = None, mode: Any = "raise") -> Any:
    """Do what :func:`numpy.take` does.

    Along a dimension that is cut, each device gives the others the rows that it has of those that are wanted; where
    more are wanted than there are, the array is gathered along it instead.

    Examples
    --------
    >>> from ringlet.sharding import Sharding, shard
    >>> table = shard(np.arange(8).reshape(4, 2), Sharding.tiled((2, 1)))
    >>> np.take(table, [3, 0], axis=0)
    ShardedArray(array([[6, 7],
           [0, 1]]), sharding={replicated})
    """
    x = operand(a)
    if axis is None or x.ndim == 0:
        x, axis = np.ravel(x), 0 if axis is None else axis
    if not isinstance(indices, (ShardedArray, np.ndarray)):
        np.take(shaped((1,) * x.ndim), 0, axis, mode=mode)  # an axis or a mode that is wrong is told first
        indices = np.asarray(indices, getattr(indices, "dtype", np.intp))  # as NumPy has it, also of 1.5
    np.take(shaped((1,) * x.ndim), np.zeros(1, indices.dtype), axis, mode=mode)  # NumPy says what is wrong
    axis = operator.index(axis) % x.ndim
    shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    if isinstance(x, ShardedArray) and x.size and x._layout.cuts[axis].count > 1 and indices.size < x.shape[axis]:
        rows: Any = _taken_by_owners(settled(x), _checked(indices, x.shape, axis, mode).ravel(), axis)
        result = as_own(rows.reshape(shape))
        return result if out is None else written_to(out, result)
    is_asked = 0 not in x.shape[:axis] or x.shape[axis] == 0  # as NumPy asks whether they are in bounds
    if 0 in x.shape and indices.size and is_asked and (mode == "raise" or 0 not in shape):
        _checked(indices, x.shape, axis, mode)  # tiles without elements would not ask
    before, after = [("a", d) for d in range(axis)], [("a", d) for d in range(axis + 1, x.ndim)]
    taking = tuple(("i", d) for d in range(indices.ndim))
    factors = FactorMap(((*before, "taken", *after), taking), (*before, *taking, *after), whole=frozenset({"taken"}))

    def kernel(tiles: list[Array], place: Array, _: Where) -> None:
        if place.size:  # or NumPy might never end, going round a dimension without elements
            place[...] = np.take(tiles[0], tiles[1], axis, mode=mode)

    return apply("take", factors, kernel, [x, indices], x.dtype, out=out, shape=shape)


def _checked(indices: Any, shape: Sequence[int], axis: int, mode: str) -> NDArray[np.intp]:
    """Indices from 0 up, the same on all devices.

    Raises
    ------
    IndexError
        NumPy's, if one is out of bounds.
    """
    if isinstance(indices, ShardedArray):
        indices = redistribute(settled(indices), Layout.replicated(indices._layout.num_devices, indices.ndim))
        indices = indices._gathered()
    every = np.arange(shape[axis]).reshape([-1 if d == axis else 1 for d in range(len(shape))])
    taken: NDArray[np.intp] = np.take(every, indices, axis, mode=mode)  # type: ignore[call-overload]
    return np.asarray(taken.reshape(indices.shape), np.intp)


def _taken_by_owners(x: ShardedArray, indices: NDArray[np.intp], axis: int) -> ShardedArray:
    """Rows of an array that is cut along an axis, one after the other, from those who have them."""
    cuts = x._layout.cuts
    gathered = x._layout.with_cuts([*cuts[:axis], WHOLE, *cuts[axis + 1 :]])
    made = empty((*x.shape[:axis], indices.size, *x.shape[axis + 1 :]), x.dtype, gathered, x._group)
    # Messages are those that would gather the array along the axis, less the rows that nobody wants.
    piece = Piece(0, (0,) * x.ndim, full_runs(x.shape))
    copies = plan_pieces((piece,), (x._layout,), (x.shape,), Form(x.shape, x.dtype, gathered))
    bounds = tile_bounds(x.shape[axis], cuts[axis].count)
    places = {begin: np.nonzero((indices >= begin) & (indices < end)) for begin, end in bounds if begin < end}
    wanted = [
        (copy, chosen)
        for of_device in copies.of_device
        for copy in of_device
        if (chosen := places[copy.box[axis].start])[0].size
    ]
    if nothing_moves(x, copies):
        boxes = gathered.boxes(x.shape)
        for device in filling_devices(made):
            space = x._space(device)
            if space is not None:
                # They are in bounds; with the mode that asks, NumPy would go round through memory of its own.
                np.take(space[boxes[device]], indices, axis, made._tile(device), mode="clip")
    else:
        _exchange(x, made, indices, axis, wanted)
    note("take", x, made, _collectives(x, made, axis, wanted))
    return made


_Wanted = Sequence[tuple[Copy, tuple[NDArray[np.intp], ...]]]


def _exchange(x: ShardedArray, made: ShardedArray, indices: NDArray[np.intp], axis: int, wanted: _Wanted) -> None:
    """Bring rows to where they are wanted, each through memory of its own."""
    transfers = []
    for (source, target, box), places in ((copy[1:], places) for copy, places in wanted):
        space, shape = x._space(source), [side.stop - side.start for side in box]
        shape[axis] = places[0].size
        given = None if space is None else np.take(space[box], indices[places] - box[axis].start, axis)
        taken = None if made._space(target) is None else np.empty(shape, x.dtype)
        transfers.append(Transfer(source, target, given, taken))
    transfer(x._group, transfers)
    for (_, places), (_, target, _, taken) in zip(wanted, transfers, strict=True):
        if taken is not None:
            made._tile(target)[(slice(None),) * axis + places] = taken


def _collectives(x: ShardedArray, made: ShardedArray, axis: int, wanted: _Wanted) -> list[Collective]:
    sent = [(copy, places[0].size) for copy, places in wanted if copy.source != copy.target]
    if not sent:
        return []
    rows = sum(
        count * math.prod(side.stop - side.start for d, side in enumerate(copy.box) if d != axis)
        for copy, count in sent
    )
    tile = tuple(side.stop - side.start for side in made._layout.boxes(made.shape)[sent[0][0].target])
    groups = components((copy.source, copy.target) for copy, _ in sent)
    gather = Collective("all-gather", tile, str(x.dtype), groups, nbytes=rows * x.dtype.itemsize)
    return [timed(gather, x._group)]


@implements(np.take_along_axis)
def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    """Do what :func:`numpy.take_along_axis` does: along the other dimensions, tile by tile."""
    array, indices = operand(arr), operand(indices)
    if axis is None and indices.ndim == 1:
        array, axis = np.ravel(array), 0
    if not _fits_along(array.shape, indices, axis):
        np.take_along_axis(shaped(array.shape), np.broadcast_to(np.zeros((), indices.dtype), indices.shape), axis)
    axis = operator.index(axis) % array.ndim
    shape = [max(a, b) if a and b else 0 for a, b in zip(array.shape, indices.shape, strict=True)]
    shape[axis] = indices.shape[axis]

    def labels(of: tuple[int, ...], along: str) -> tuple[Any, ...]:
        return tuple(
            along if d == axis else d if size == full else None
            for d, (size, full) in enumerate(zip(of, shape, strict=True))
        )

    factors = FactorMap(
        (labels(array.shape, "taken"), labels(indices.shape, "taking")),
        labels(tuple(shape), "taking"),
        whole=frozenset({"taken"}),
    )

    def kernel(tiles: list[Array], out: Array, _: Where) -> None:
        out[...] = np.take_along_axis(tiles[0], tiles[1], axis)

    return apply("take_along_axis", factors, kernel, [array, indices], array.dtype, shape=tuple(shape))


def _fits_along(shape: Sequence[int], indices: Any, axis: Any) -> bool:
    """Whether indices select from an array of a shape; if not, NumPy raises an error before it reads any element."""
    if indices.ndim != len(shape) or indices.dtype.kind not in "iu" or axis is None:
        return False
    if not -len(shape) <= operator.index(axis) < len(shape):
        return False
    sizes = enumerate(zip(shape, indices.shape, strict=True))
    return all(d == axis % len(shape) or a == b or 1 in (a, b) for d, (a, b) in sizes)
