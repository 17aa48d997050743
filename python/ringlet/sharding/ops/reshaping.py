"""Reshape: tiles that are also tiles of the new shape stay on their devices."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ringlet.sharding.execution.array_function_table import implements
from ringlet.sharding.execution.device_threads import on_devices
from ringlet.sharding.execution.shape_inference import shape_of_reshape
from ringlet.sharding.explain_operations import record_operation
from ringlet.sharding.layout.layout import WHOLE, Array, Cut, Layout, Shape
from ringlet.sharding.resharding.device_buffers import buffers_for, fresh
from ringlet.sharding.resharding.regions import CopyPlan, DeviceBoxes, copies_between, device_boxes
from ringlet.sharding.resharding.reshard import redistribute
from ringlet.sharding.resharding.tile_assembly import fill, record_copies, writers
from ringlet.sharding.sharded_array import ShardedArray

_RESHAPE_MAY_REFUSE_TO_COPY = np.lib.NumpyVersion(np.__version__) >= "2.1.0"


@implements(np.reshape)
def reshape(
    a: ShardedArray, /, shape: Any = None, order: Any = "C", *, newshape: Any = None, copy: bool | None = None
) -> ShardedArray:
    """Implement :func:`numpy.reshape`, read-only unless `copy` is true.

    Merged or split dimensions keep their tiles, and nothing is sent, if the tiles are contiguous runs of the result, as
    along the first dimension. Other merged dimensions are gathered. If the tiles of the result have other bounds,
    devices exchange elements. With ``copy=False``, ValueError is raised if a device copied or received elements, where
    the memory order is that of the buffers.
    """
    x, given = a, newshape if shape is None else shape
    order = _order_of(x, order)
    if order == "F":
        given = shape_of_reshape(x.shape[::-1], tuple(given)[::-1] if isinstance(given, Sequence) else given)
        made: ShardedArray = reshape(x.transpose(), given).transpose()
    else:
        made = _reshaped(x, shape_of_reshape(x.shape, given))
    if copy is False and x.nbytes and not _is_view_of(made, x):
        # NumPy's error, also for what the reshape above has copied or sent by now.
        raise ValueError("Unable to avoid creating a copy while reshaping.")
    return made.copy() if copy else made


def _is_view_of(made: ShardedArray, x: ShardedArray) -> bool:
    pairs = ((made._buffer(device), x._buffer(device)) for device in range(x._group.num_devices))
    return all(view is None or (buffer is not None and np.may_share_memory(view, buffer)) for view, buffer in pairs)


@implements(np.ravel)
def ravel(a: ShardedArray, order: Any = "C") -> ShardedArray:
    """Implement :func:`numpy.ravel`, except that the result is read-only.

    Orders "A" and "K" follow the memory order of the buffers, and are C order if the devices are in several processes.
    """
    if order == "K":
        strides = _memory(a).strides
        axes = sorted(range(a.ndim), key=lambda axis: -abs(strides[axis]))
        return reshape(np.transpose(a, axes), -1)  # type: ignore[arg-type]  # dispatched
    return reshape(a, -1, order)


def _memory(x: ShardedArray) -> Array:
    """Return an array with the memory order of `x`; C order for several processes, since some may have no tile."""
    if x._group.member is not None:
        return fresh(x.shape, x.dtype)
    return next(buffer for buffer in map(x._buffer, range(x._layout.num_devices)) if buffer is not None)


def _order_of(x: ShardedArray, order: Any) -> str:
    if order not in ("C", "F", "A"):
        np.reshape(0, 0, order)  # raises NumPy's error
    if order != "A":
        return str(order)
    flags = _memory(x).flags
    return "F" if flags.f_contiguous and not flags.c_contiguous else "C"


class _Plan(NamedTuple):
    """Plan of a reshape; `copies` is None if nothing moves.

    Merging the dimensions that are reshaped together turns the old and the new shape into `flat_shape`; `sources` and
    `targets` are in its coordinates.
    """

    source: Layout
    target: Layout
    flat_shape: Shape
    sources: DeviceBoxes
    targets: DeviceBoxes
    copies: CopyPlan | None


def _reshaped(x: ShardedArray, shape: Shape) -> ShardedArray:
    plan = _planned(x.shape, shape, x._layout, x.dtype)
    x = redistribute(x, plan.source)
    if plan.copies is None:
        made = _in_place(x, shape, plan.target)
        record_operation("reshape", x, made)
        return made
    buffers = buffers_for(plan.target, x._group, lambda _: fresh(shape, x.dtype))
    views = {id(buffer): buffer.reshape(plan.flat_shape) for buffer in buffers if buffer is not None}
    places = [None if buffer is None else views[id(buffer)] for buffer in buffers]
    flat = [_flat(x, device, plan) for device in range(x._group.num_devices)]
    fill(x._group, places, plan.targets, [(flat, (0,) * len(plan.flat_shape))], plan.copies)
    made = ShardedArray._build(buffers, plan.target, x._group, x._combine)
    made._is_view = True
    record_copies("reshape", x, made, plan.copies)
    return made


def _flat(x: ShardedArray, device: int, plan: _Plan) -> Array | None:
    buffer = x._buffer(device)
    if buffer is None:
        return None
    view = _view_of(buffer, plan.flat_shape)
    if view is None:
        box = tuple(slice(*bounds) for bounds in plan.sources.boxes[device])
        view = fresh(plan.flat_shape, x.dtype)
        view[box] = x._tile(device).reshape(view[box].shape)
    return view


def _in_place(x: ShardedArray, shape: Shape, layout: Layout) -> ShardedArray:
    if all(
        buffer is None or _view_of(buffer, shape) is not None for buffer in map(x._buffer, range(x._group.num_devices))
    ):
        return x._derive(lambda buffer: buffer.reshape(shape), layout)
    buffers = buffers_for(layout, x._group, lambda _: fresh(shape, x.dtype))
    made = ShardedArray._build(buffers, layout, x._group, x._combine)

    def copy_tile(device: int) -> None:
        tile, given = made._tile(device), x._tile(device)
        view = _view_of(tile, given.shape)
        if view is None:
            tile[...] = given.reshape(tile.shape)
        else:
            view[...] = given

    devices = writers(buffers, device_boxes(layout, shape))
    on_devices(copy_tile, devices, 2 * x.size * x.dtype.itemsize // max(1, len(devices)))
    made._is_view = True
    return made


def _view_of(buffer: Array, shape: Shape) -> Array | None:
    """Return a view of another shape; None if that requires a copy."""
    if buffer.flags.c_contiguous:
        return buffer.reshape(shape)
    view: Array = buffer.view()
    try:
        if _RESHAPE_MAY_REFUSE_TO_COPY:
            return view.reshape(shape, copy=False)
        view.shape = shape  # deprecated in NumPy 2.5
    except (AttributeError, ValueError):
        return None
    return view


@lru_cache(maxsize=4096)
def _planned(shape: Shape, new: Shape, layout: Layout, dtype: np.dtype[Any]) -> _Plan:
    """Plan a reshape; if a dimension gets more tiles than indices, choose the cheaper of two ways to divide it."""
    plans = [_planned_as(shape, new, layout, dtype, may_be_idle) for may_be_idle in (False, True)]
    return min(plans, key=lambda plan: 0 if plan.copies is None else plan.copies.nbytes)


def _planned_as(shape: Shape, new: Shape, layout: Layout, dtype: np.dtype[Any], may_be_idle: bool) -> _Plan:
    groups = list(_groups(shape, new))
    source, target = list(layout.cuts), [WHOLE] * len(new)
    for d, size in enumerate(shape):
        if size == 1 or 0 in shape:
            source[d] = WHOLE
    for dimensions, becoming in groups:
        if len(dimensions) == len(becoming) == 1:
            target[becoming[0]] = source[dimensions[0]]
            continue
        _keep_runs(source, dimensions, shape)
        count, tiles = _merged_tiles([source[d] for d in dimensions], layout.num_devices)
        cuts = _split([new[d] for d in becoming], count, tiles, may_be_idle)
        for d, cut in zip(becoming, cuts, strict=True):
            target[d] = cut
    before, after = layout.with_cuts(source), layout.with_cuts(target)
    flat_shape = tuple(math.prod(shape[d] for d in dimensions) for dimensions, _ in groups)
    sources = _flattened(device_boxes(before, shape), shape, [dimensions for dimensions, _ in groups])
    targets = _flattened(device_boxes(after, new), new, [becoming for _, becoming in groups])
    copies = None if sources == targets else copies_between([sources], targets, dtype)
    return _Plan(before, after, flat_shape, sources, targets, copies)


def _groups(shape: Shape, new: Shape) -> Iterator[tuple[list[int], list[int]]]:
    """Yield minimal groups of old and new dimensions that are reshaped together; none has dimensions of size 1."""
    if 0 in shape:
        return
    olds = iter([d for d, size in enumerate(shape) if size > 1])
    news = iter([d for d, size in enumerate(new) if size > 1])
    for old in olds:
        dimensions, becoming = [old], [next(news)]
        before, after = shape[old], new[becoming[0]]
        while before != after:
            if before < after:
                dimensions.append(next(olds))
                before *= shape[dimensions[-1]]
            else:
                becoming.append(next(news))
                after *= new[becoming[-1]]
        yield dimensions, becoming


def _keep_runs(cuts: list[Cut], dimensions: Sequence[int], shape: Shape) -> None:
    """Make merged dimensions whole, in `cuts`, unless their tiles are contiguous runs.

    If tiles have more than one index along a dimension, the following dimensions become whole.
    """
    is_run = True
    for d in dimensions:
        if not is_run:
            cuts[d] = WHOLE
        is_run = is_run and cuts[d].count == shape[d]


def _merged_tiles(cuts: Sequence[Cut], num_devices: int) -> tuple[int, list[int]]:
    """Return the number of tiles of several dimensions, and each device's tile, counted in row-major order."""
    count, tiles = 1, [0] * num_devices
    for cut in cuts:
        count *= cut.count
        tiles = [tile * cut.count + cut.tile_of(device) for device, tile in enumerate(tiles)]
    return count, tiles


def _split(sizes: Sequence[int], count: int, tiles: Sequence[int], may_be_idle: bool) -> Iterator[Cut]:
    """Divide dimensions into `count` tiles in total: leading dimensions into single indices, until no tiles are left.

    Tiles in excess of the last dimension's indices either stay, some of them empty, or are replaced by copies on
    several devices.
    """
    for size in sizes:
        if count == 1:
            yield WHOLE
        elif size < count and count % size == 0:
            count //= size
            yield Cut(size, tuple(tile // count for tile in tiles))
            tiles = [tile % count for tile in tiles]
        else:
            fits = count if may_be_idle else min(size, count)
            parts = max(n for n in range(1, fits + 1) if count % n == 0)
            yield Cut(parts, tuple(tile // (count // parts) for tile in tiles)) if parts > 1 else WHOLE
            count = 1


def _flattened(boxes: DeviceBoxes, shape: Shape, groups: Sequence[Sequence[int]]) -> DeviceBoxes:
    """Convert boxes to coordinates of the merged dimensions, along which they are contiguous."""
    made = []
    for bounds in boxes.boxes:
        is_empty = any(begin == end for begin, end in bounds)
        runs = []
        for dimensions in groups:
            start, length = 0, 1
            for d in dimensions:
                start = start * shape[d] + bounds[d][0]
                length *= bounds[d][1] - bounds[d][0]
            runs.append((0, 0) if is_empty else (start, start + length))
        made.append(tuple(runs))
    return DeviceBoxes(tuple(made), boxes.parts)
