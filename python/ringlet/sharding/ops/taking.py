"""Take: elements by their index along one dimension."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringlet.sharding.execution.array_function_table import implements
from ringlet.sharding.execution.propagation import TileBoxes
from ringlet.sharding.execution.shape_inference import shape_probe
from ringlet.sharding.execution.tile_execution import apply, write_out
from ringlet.sharding.explain_operations import record_operation
from ringlet.sharding.layout.factors import FactorMap
from ringlet.sharding.layout.layout import WHOLE, Array, Layout, tile_bounds
from ringlet.sharding.ops.elementwise import operand
from ringlet.sharding.resharding.collective_record import Collective
from ringlet.sharding.resharding.device_buffers import empty, filling_devices
from ringlet.sharding.resharding.pencils import all_gathered, rows_of, with_whole_axes
from ringlet.sharding.resharding.regions import ArraySpec, Copy, Region, plan_regions
from ringlet.sharding.resharding.reshard import materialized, redistribute
from ringlet.sharding.resharding.reshard_time import timed
from ringlet.sharding.resharding.tile_assembly import as_writable, full_ranges, nothing_moves
from ringlet.sharding.resharding.tile_transport import Transfer, transfer
from ringlet.sharding.resharding.transfers import components
from ringlet.sharding.sharded_array import ShardedArray


@implements(np.take)
def take(a: Any, indices: Any, axis: int | None = None, out: Any = None, mode: Any = "raise") -> Any:
    """Implement :func:`numpy.take`.

    Along a divided dimension, each device sends the requested rows that it has; if at least as many are requested as
    exist, the array is gathered along the dimension instead. Divided indices are sent to the devices with the rows if
    the array is divided along this dimension only.
    """
    x = operand(a)
    if axis is None or x.ndim == 0:
        x, axis = np.ravel(x), 0 if axis is None else axis
    if not isinstance(indices, (ShardedArray, np.ndarray)):
        np.take(shape_probe((1,) * x.ndim), 0, axis, mode=mode)  # np.take checks axis and mode before the indices
        indices = np.asarray(indices, getattr(indices, "dtype", np.intp))  # truncates Python floats, like NumPy
    np.take(shape_probe((1,) * x.ndim), np.zeros(1, indices.dtype), axis, mode=mode)  # may raise NumPy's error
    axis = operator.index(axis) % x.ndim
    shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    if _are_divided(x, indices, axis):
        result = _taken_on_request(x, _in_bounds(indices, x.shape[axis], mode), axis).reshape(shape)
        result = as_writable(result)
        return result if out is None else write_out(out, result)
    if isinstance(x, ShardedArray) and x.size and x._layout.cuts[axis].count > 1 and indices.size < x.shape[axis]:
        rows: Any = _taken_from_holders(materialized(x), _checked(indices, x.shape, axis, mode).ravel(), axis)
        result = as_writable(rows.reshape(shape))
        return result if out is None else write_out(out, result)
    is_asked = 0 not in x.shape[:axis] or x.shape[axis] == 0  # whether NumPy checks the bounds of `indices`
    if 0 in x.shape and indices.size and is_asked and (mode == "raise" or 0 not in shape):
        _checked(indices, x.shape, axis, mode)  # checked here, because tiles without elements skip the check
    before, after = [("a", d) for d in range(axis)], [("a", d) for d in range(axis + 1, x.ndim)]
    taking = tuple(("i", d) for d in range(indices.ndim))
    factors = FactorMap(((*before, "taken", *after), taking), (*before, *taking, *after), whole=frozenset({"taken"}))

    def kernel(tiles: list[Array], place: Array, _: TileBoxes) -> None:
        if place.size:  # otherwise NumPy loops endlessly in mode "wrap" on a dimension without elements
            place[...] = np.take(tiles[0], tiles[1], axis, mode=mode)

    return apply("take", factors, kernel, [x, indices], x.dtype, out=out, shape=shape)


def _are_divided(x: Any, indices: Any, axis: int) -> bool:
    """Return whether both are non-empty, the indices are divided, and the array is divided along `axis` only."""
    if not isinstance(x, ShardedArray) or not isinstance(indices, ShardedArray) or 0 in (x.size, indices.size):
        return False
    divided = [d for d, cut in enumerate(x._layout.cuts) if cut.count > 1]
    return divided == [axis] and any(cut.count > 1 for cut in indices._layout.cuts)


def _in_bounds(indices: ShardedArray, size: int, mode: str) -> Any:
    """Return indices in ``[0, size)``, or raise NumPy's error."""
    indices = indices.astype(np.intp, copy=False)
    if mode != "raise":
        return np.clip(indices, 0, size - 1) if mode == "clip" else indices % size
    least, most = int(np.min(indices)), int(np.max(indices))
    if least < -size or most >= size:
        np.take(shape_probe((size,)), least if least < -size else most)
    return np.where(indices < 0, indices + size, indices) if least < 0 else indices


def _taken_on_request(x: ShardedArray, indices: ShardedArray, axis: int) -> ShardedArray:
    """Take rows at sharded indices, which must be in bounds: devices request rows from the devices that hold them."""
    x, indices = materialized(x), materialized(rows_of(indices, indices.ndim))
    cut, own, size = x._layout.cuts[axis], indices._layout.cuts[0], x.shape[axis]
    length, devices = -(-size // cut.count), range(x._group.num_devices)
    if own.count == 1:
        return np.take(x, all_gathered(indices), axis)  # type: ignore[no-any-return]

    def count(tiles: list[Array], out: Array, _: TileBoxes) -> None:
        out[0] = np.bincount(tiles[0] // length, minlength=cut.count)

    rule = FactorMap((("i",),), ("i", None))
    counts = all_gathered(apply("take", rule, count, [indices], np.intp, shape=(own.count, cut.count))).tolist()
    layout = x._layout.with_cuts([own if d == axis else WHOLE for d in range(x.ndim)])
    made = empty((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]), x.dtype, layout, x._group)
    holders = [[d for d in devices if cut.tile_of(d) == tile] for tile in range(cut.count)]
    requests = [
        (device, device if device in holders[tile] else holders[tile][device % len(holders[tile])], tile, number)
        for device in devices
        for tile, number in enumerate(counts[own.tile_of(device)])
        if number
    ]
    filled = devices if x._group.member is not None else filling_devices(made)
    _exchange_requests(x, made, indices, axis, [each for each in requests if each[0] in filled])
    row = math.prod(x.shape) // size * x.dtype.itemsize + indices.dtype.itemsize
    sent = [(device, holder, number) for device, holder, _, number in requests if device != holder]
    if sent:
        tile = tuple(side.stop - side.start for side in layout.boxes(made.shape)[0])
        groups = components((device, holder) for device, holder, _ in sent)
        nbytes = row * sum(number for *_, number in sent)
        exchange = Collective("all-to-all", tile, str(x.dtype), groups, nbytes=nbytes)
        record_operation("take", (x, indices), made, [timed(exchange, x._group)])
    return made


def _exchange_requests(
    x: ShardedArray, made: ShardedArray, indices: ShardedArray, axis: int, requests: Sequence[tuple[int, int, int, int]]
) -> None:
    """Send indices from each device to the holder of their tile, and rows back, into `made`."""
    length, group = -(-x.shape[axis] // x._layout.cuts[axis].count), x._group
    asked, places = [], []
    for device, holder, tile, number in requests:
        own = indices._tile(device) if group.has(device) else None
        places.append(None if own is None else np.nonzero(own // length == tile)[0])
        given = None if own is None else own[places[-1]]
        asked.append(Transfer(device, holder, given, np.empty(number, indices.dtype) if group.has(holder) else None))
    transfer(group, asked, "requests")
    replies = []
    for (device, holder, _, number), request in zip(requests, asked, strict=True):
        buffer, shape = x._buffer(holder), (*x.shape[:axis], number, *x.shape[axis + 1 :])
        given = None if buffer is None else np.take(buffer, request.taken, axis)  # type: ignore[arg-type]
        replies.append(Transfer(holder, device, given, np.empty(shape, x.dtype) if group.has(device) else None))
    transfer(group, replies)
    for place, (_, device, _, taken) in zip(places, replies, strict=True):
        if taken is not None:
            made._tile(device)[(slice(None),) * axis + (place,)] = taken


def _checked(indices: Any, shape: Sequence[int], axis: int, mode: str) -> NDArray[np.intp]:
    """Return non-negative indices, the same on all devices, or raise NumPy's error."""
    if isinstance(indices, ShardedArray):
        indices = redistribute(materialized(indices), Layout.replicated(indices._layout.num_devices, indices.ndim))
        indices = indices._gathered()
    every = np.arange(shape[axis]).reshape([-1 if d == axis else 1 for d in range(len(shape))])
    taken: NDArray[np.intp] = np.take(every, indices, axis, mode=mode)  # type: ignore[call-overload]
    return np.asarray(taken.reshape(indices.shape), np.intp)


def _taken_from_holders(x: ShardedArray, indices: NDArray[np.intp], axis: int) -> ShardedArray:
    cuts = x._layout.cuts
    gathered = x._layout.with_cuts([*cuts[:axis], WHOLE, *cuts[axis + 1 :]])
    made = empty((*x.shape[:axis], indices.size, *x.shape[axis + 1 :]), x.dtype, gathered, x._group)
    # Plan the messages of a gather along the axis, then omit unused rows.
    piece = Region(0, (0,) * x.ndim, full_ranges(x.shape))
    copies = plan_regions((piece,), (x._layout,), (x.shape,), ArraySpec(x.shape, x.dtype, gathered))
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
            buffer = x._buffer(device)
            if buffer is not None:
                # Indices are in bounds; with mode "raise", NumPy would allocate a buffer.
                np.take(buffer[boxes[device]], indices, axis, made._tile(device), mode="clip")
    else:
        _exchange(x, made, indices, axis, wanted)
    record_operation("take", x, made, _collectives(x, made, axis, wanted))
    return made


_Wanted = Sequence[tuple[Copy, tuple[NDArray[np.intp], ...]]]


def _exchange(x: ShardedArray, made: ShardedArray, indices: NDArray[np.intp], axis: int, wanted: _Wanted) -> None:
    transfers = []
    for (source, target, box), places in ((copy[1:], places) for copy, places in wanted):
        buffer, shape = x._buffer(source), [side.stop - side.start for side in box]
        shape[axis] = places[0].size
        given = None if buffer is None else np.take(buffer[box], indices[places] - box[axis].start, axis)
        taken = None if made._buffer(target) is None else np.empty(shape, x.dtype)
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
    """Implement :func:`numpy.take_along_axis`: tile by tile along the other dimensions."""
    array, indices = operand(arr), operand(indices)
    if axis is None and indices.ndim == 1:
        array, axis = np.ravel(array), 0
    if not _fits_along(array.shape, indices, axis):
        np.take_along_axis(shape_probe(array.shape), np.broadcast_to(np.zeros((), indices.dtype), indices.shape), axis)
    axis = operator.index(axis) % array.ndim
    shape = [max(a, b) if a and b else 0 for a, b in zip(array.shape, indices.shape, strict=True)]
    shape[axis] = indices.shape[axis]

    def labels(of: tuple[int, ...], along: str) -> tuple[Any, ...]:
        return tuple(
            along if d == axis else d if size == full else None
            for d, (size, full) in enumerate(zip(of, shape, strict=True))
        )

    if isinstance(array, ShardedArray):
        array = with_whole_axes(array, (axis,))
    factors = FactorMap(
        (labels(array.shape, "taken"), labels(indices.shape, "taking")),
        labels(tuple(shape), "taking"),
        whole=frozenset({"taken"}),
    )

    def kernel(tiles: list[Array], out: Array, _: TileBoxes) -> None:
        out[...] = np.take_along_axis(tiles[0], tiles[1], axis)

    return apply("take_along_axis", factors, kernel, [array, indices], array.dtype, shape=tuple(shape))


def _fits_along(shape: Sequence[int], indices: Any, axis: Any) -> bool:
    """Return whether indices fit an array with this shape; if not, NumPy raises an error before it reads elements."""
    if indices.ndim != len(shape) or indices.dtype.kind not in "iu" or axis is None:
        return False
    if not -len(shape) <= operator.index(axis) < len(shape):
        return False
    sizes = enumerate(zip(shape, indices.shape, strict=True))
    return all(d == axis % len(shape) or a == b or 1 in (a, b) for d, (a, b) in sizes)
