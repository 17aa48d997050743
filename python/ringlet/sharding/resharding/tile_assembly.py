"""Assembly of an array from copied regions of other arrays; selection from one array, as a view if possible."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ringlet.sharding.execution.device_threads import on_devices
from ringlet.sharding.explain_operations import is_recording, record_operation
from ringlet.sharding.layout.device_group import DeviceGroup, common_group
from ringlet.sharding.layout.layout import Array, Box, Layout, Shape
from ringlet.sharding.resharding.collective_record import Collective, Message
from ringlet.sharding.resharding.device_buffers import buffers_for, fresh, fresh_like
from ringlet.sharding.resharding.regions import (
    ArraySpec,
    CopyPlan,
    DeviceBoxes,
    IndexRange,
    Region,
    device_boxes,
    plan_regions,
)
from ringlet.sharding.resharding.reshard_time import timed
from ringlet.sharding.resharding.tile_transport import received
from ringlet.sharding.sharded_array import ShardedArray

Spaces = Sequence[Array | None]


def full_ranges(shape: Sequence[int]) -> tuple[IndexRange, ...]:
    """Return the index ranges of a whole array."""
    return tuple(IndexRange(0, 1, size) for size in shape)


def range_view(buffer: Array, ranges: Sequence[IndexRange]) -> Array:
    """Return the view of an array that index ranges select."""
    # `...` makes NumPy return a 0-d array instead of a scalar.
    key: Any = (*(index_range.key for index_range in ranges), ...)
    return repeated(buffer[key], tuple(index_range.length for index_range in ranges))


def repeated(array: Array, shape: Shape) -> Array:
    """Return an array broadcast to a shape; the array itself, with its strides, if it has the shape."""
    return array if array.shape == shape else np.broadcast_to(array, shape)


def select_ranges(name: str, x: ShardedArray, ranges: tuple[IndexRange, ...], layout: Layout) -> ShardedArray:
    """Return the selected elements of an array in a layout with the same parts, as a read-only value.

    The elements are views if no data moves between memories.
    """
    if x._whole is not None and x._group.member is None and not is_recording():
        return x._derive(lambda buffer: range_view(buffer, ranges), layout)
    spec = ArraySpec(tuple(index_range.length for index_range in ranges), x.dtype, layout)
    regions = (Region(0, (0,) * x.ndim, ranges),)
    copies = plan_regions(regions, (x._layout,), (x.shape,), spec)
    if nothing_moves(x, copies):
        made = x._derive(lambda buffer: range_view(buffer, ranges), layout)
    else:
        made = _filled([x], regions, spec, x._group, copies)
        made._combine, made._is_view = x._combine, True
    record_copies(name, x, made, copies)
    return made


def assemble(name: str, operands: Sequence[Any], regions: Sequence[Region], specs: Sequence[ArraySpec]) -> ShardedArray:
    """Return a new array, assembled from regions of the operands that cover it.

    At least one operand is sharded, and none is partial. `specs` are candidates for the result; the first that sends
    the fewest bytes is used.
    """
    group = common_group(name, [x for x in operands if isinstance(x, ShardedArray)])
    planned = [(_planned(operands, regions, spec), spec) for spec in specs]
    copies, spec = min(planned, key=lambda plan: plan[0].nbytes)
    made = _filled(operands, regions, spec, group, copies)
    record_copies(name, operands, made, copies)
    return made


def nothing_moves(x: ShardedArray, copies: CopyPlan) -> bool:
    """Return whether the plan moves no data between memories. The result is the same on all processes."""
    if x._group.member is not None:
        return not copies.messages
    return x._whole is not None or all(x._buffer(copy.source) is x._buffer(copy.target) for copy in copies.messages)


def record_copies(name: str, operands: Any, result: ShardedArray, copies: CopyPlan) -> None:
    """Record an operation with the collectives of its copies."""
    collectives: Sequence[Collective] = copies.collectives
    if result._group.assignment is not None:
        collectives = [timed(collective, result._group) for collective in collectives]
    record_operation(name, operands, result, collectives)


def as_writable(x: ShardedArray) -> ShardedArray:
    """Make a result writable, and return it; memory that it shares is copied at the first write."""
    x._is_view = False
    return x


def fill(
    group: DeviceGroup,
    places: Spaces,
    target: DeviceBoxes,
    sources: Sequence[tuple[Spaces, tuple[int, ...]]],
    copies: CopyPlan,
) -> None:
    """Run the copies from source regions into `places`: for each device, an array of the result's shape.

    `places` has None for devices of other processes. A source has a view of each device's memory, and the position in
    the result at which the view begins.
    """
    brought: list[list[tuple[Box, Array]]] = [[] for _ in places]
    for number, (buffers, offset) in enumerate(sources):
        wanted = [copy for copies_of in copies.of_device for copy in copies_of if copy.region == number]
        messages = [Message(copy.source, copy.target, _moved(copy.box, offset)) for copy in wanted]
        for copy, values in zip(wanted, received(group, messages, buffers), strict=True):
            if values is not None:
                brought[copy.target].append((copy.box, values))

    def work(device: int) -> None:
        for box, values in brought[device]:
            places[device][box] = values  # type: ignore[index]  # writers have places

    devices = writers(places, target)
    nbytes = sum(values.nbytes for device in devices for _, values in brought[device])
    on_devices(work, devices, nbytes // max(1, len(devices)))


def writers(places: Spaces, target: DeviceBoxes) -> list[int]:
    """Return the devices that must write: of the devices that share the memory of a non-empty box, the first."""
    first: dict[tuple[int, object], int] = {}
    for device, (place, box, part) in enumerate(zip(places, target.boxes, target.parts, strict=True)):
        if place is not None and part >= 0 and all(begin < end for begin, end in box):
            first.setdefault((id(place), box), device)
    return list(first.values())


def region_views(x: Any, region: Region, num_devices: int) -> tuple[Spaces, tuple[int, ...]]:
    """Return the view of each device's memory through a region, and the position of the view in the result."""
    if not isinstance(x, ShardedArray):
        return [range_view(x, region.ranges)] * num_devices, region.offset
    buffers = [x._buffer(device) for device in range(num_devices)]
    views = {id(buffer): range_view(buffer, region.ranges) for buffer in buffers if buffer is not None}
    return [None if buffer is None else views[id(buffer)] for buffer in buffers], region.offset


def _planned(operands: Sequence[Any], regions: Sequence[Region], spec: ArraySpec) -> CopyPlan:
    all_gathered = Layout.replicated(spec.layout.num_devices, len(spec.shape))
    layouts = tuple(x._layout if isinstance(x, ShardedArray) else all_gathered for x in operands)
    return plan_regions(tuple(regions), layouts, tuple(tuple(x.shape) for x in operands), spec)


def _filled(
    operands: Sequence[Any], regions: Sequence[Region], spec: ArraySpec, group: DeviceGroup, copies: CopyPlan
) -> ShardedArray:
    sources = [region_views(operands[region.operand], region, group.num_devices) for region in regions]
    # For a single region NumPy would return a view; the copy keeps that view's memory order.
    view = next((view for view in sources[0][0] if view is not None), None) if len(regions) == 1 else None
    make = partial(fresh, spec.shape, spec.dtype) if view is None else partial(fresh_like, view, spec.shape)
    buffers = buffers_for(spec.layout, group, lambda _: make())
    fill(group, buffers, device_boxes(spec.layout, spec.shape), sources, copies)
    return ShardedArray._build(buffers, spec.layout, group)


def _moved(box: Box, offset: tuple[int, ...]) -> Box:
    return tuple(slice(side.start - at, side.stop - at) for side, at in zip(box, offset, strict=True))
