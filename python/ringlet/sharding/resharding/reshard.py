"""Resharding: changes the layout of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from ringlet.errors import ShardingError
from ringlet.sharding.explain_operations import is_recording, record_operation, recorded_as_one, recording_suspended
from ringlet.sharding.layout.device_group import DeviceGroup
from ringlet.sharding.layout.layout import Array, Layout
from ringlet.sharding.layout.layout_of import group_of, layout_of
from ringlet.sharding.layout.mesh import NamedSharding
from ringlet.sharding.layout.partition_spec import SPEC_NAMES
from ringlet.sharding.memory_modes import is_planning
from ringlet.sharding.report import Operation, array_records
from ringlet.sharding.resharding.collective_record import Collective, Message
from ringlet.sharding.resharding.device_buffers import buffers_for, empty, fresh, fresh_like
from ringlet.sharding.resharding.partial_combine import combine, identity
from ringlet.sharding.resharding.reshard_plan import ReshardPlan, Step, collectives_for, plan_reshard
from ringlet.sharding.resharding.tile_transport import deliver, received, view_of
from ringlet.sharding.sharded_array import ShardedArray


def reshard(x: ShardedArray, sharding: Any) -> ShardedArray:
    """Implement :meth:`ShardedArray.reshard`.

    If devices share memory and neither sharding is partial, nothing is copied: the result reads the memory of `x` until
    either is written to.
    """
    if x._group.mesh is not None and type(sharding).__name__ in SPEC_NAMES:
        sharding = NamedSharding(x._group.mesh, sharding)
    layout = layout_of(sharding, x.ndim, x._group.num_devices)
    group = group_of(sharding, x._group.num_devices)
    if group != DeviceGroup.of(x._group.num_devices) and not x._group.equals_but_for_replica(group):
        raise ShardingError(
            f"{sharding} is for {group}, but the array is on {x._group}: pass a sharding of the same mesh, or move the "
            "values with ringlet.sharding.shard(np.asarray(array), sharding)"
        )

    def work() -> ShardedArray:
        made = redistribute(x, layout)._derive(_itself, layout, is_view=False)
        made._group = group.joined(x._group) or x._group  # adds the axis names of the mesh
        return made

    return recorded_as_one("reshard", x, work)


def redistribute(x: ShardedArray, layout: Layout) -> ShardedArray:
    """Return the values of an array in another layout for the same devices, and record the bytes sent.

    If `layout` has other parts than `x`, the parts are combined, and the first part of `layout` gets the values. The
    result may be `x` itself, share its memory or be cached, so it must not be written to.
    """
    source = x._layout
    if source is layout or source == layout:
        return x
    if source.parts == layout.parts:
        return _moved(x, layout)
    if layout.is_partial:
        return _in_parts(materialized(x), layout)
    if x._settled is None:
        origin = x._origin
        if origin is not None and origin.source._buffers is origin.buffers:
            values = redistribute(origin.source, layout)  # the source caches its values, for all arrays derived from it
            with recording_suspended() if is_recording() else nullcontext():
                x._settled = origin.compute(values)
        else:
            x._settled = _combined(x, layout)
        x._origin = None
    return redistribute(x._settled, layout)


def materialized(x: ShardedArray) -> ShardedArray:
    """Return `x` with its parts combined (cached), or `x` itself if it is not partial.

    Other arrays may share the result, so it must not be written to.
    """
    if not x._layout.is_partial:
        return x
    return x._settled if x._settled is not None else redistribute(x, x._layout.without_parts())


def reductions_due(arrays: Sequence[ShardedArray]) -> list[Operation]:
    """Return the reductions of arrays that are still partial; results computed from one partial array may share one."""
    due: dict[int, ShardedArray] = {}
    for x in arrays:
        while x._layout.is_partial and x._settled is None:
            origin = x._origin
            if origin is None or origin.source._buffers is not origin.buffers:
                due[id(x)] = x
                break
            x = origin.source  # noqa: PLW2901  # as `redistribute` does
    return [*map(_reduction, due.values())]


def _reduction(x: ShardedArray) -> Operation:
    layout = x._layout.without_parts()
    (record,) = array_records(x)
    return Operation("reduce", (record,), (replace(record, layout=layout),), tuple(_collectives(x, layout)))


def described(value: Any) -> Any:
    """Return a value with each sharded array replaced by an array of the same kind without values, for planning."""
    if isinstance(value, ShardedArray):
        if value._group.member is not None:
            raise ShardingError(
                f"explain was given an array on {value._group}: expected devices of one process. Create the mesh "
                "without member=, and shard np.broadcast_to(0.0, shape)"
            )
        buffers = buffers_for(value._layout, value._group, lambda _: fresh(value.shape, value.dtype))
        return ShardedArray._build(buffers, value._layout, value._group, value._combine)
    if isinstance(value, dict):
        return {key: described(each) for key, each in value.items()}
    return type(value)(map(described, value)) if type(value) in (list, tuple) else value


def _plan(x: ShardedArray, layout: Layout) -> ReshardPlan:
    group = x._group if x._group.assignment is not None else None
    return plan_reshard(x.shape, x.dtype.itemsize, x._layout, layout, group=group, dtype=_name_of(x.dtype))


def _collectives(x: ShardedArray, layout: Layout) -> Sequence[Collective]:
    group = x._group if x._group.assignment is not None else None
    return collectives_for(x.shape, x.dtype.itemsize, x._layout, layout, group=group, dtype=_name_of(x.dtype))


@lru_cache(maxsize=256)
def _name_of(dtype: np.dtype[Any]) -> str:
    name: str = dtype.name  # NumPy formats the name at each access
    return name


def _itself(buffer: Array) -> Array:
    return buffer


def _moved(x: ShardedArray, layout: Layout) -> ShardedArray:
    buffers, collectives = _received(x, layout)
    result = x._derive(_itself, layout)
    if x._whole is None:
        result._whole, result._buffers = None, tuple(buffers)
    if collectives:
        record_operation("reshard", x, result, collectives)
    return result


def _received(x: ShardedArray, layout: Layout) -> tuple[Sequence[Array | None], Sequence[Collective]]:
    """Return each device's buffer after a transfer, and its collectives; writable buffers of `x` are reused."""
    if x._whole is not None:
        return (x._whole,) * layout.num_devices, _collectives(x, layout)
    buffers, plan = receive_buffers(x, layout), _plan(x, layout)
    for step in plan.steps:
        deliver(x._group, step.messages, buffers, buffers)
    return buffers, plan.collectives


def receive_buffers(x: ShardedArray, layout: Layout) -> list[Array | None]:
    """Return the buffer in which each device receives the elements of its box in `layout` that it lacks.

    Writable buffers of `x` are reused, other buffers are copied; None for devices of other processes, and for devices
    that hold no part of the array in either layout.
    """
    boxes = x._layout.boxes(x.shape)
    buffers = [x._buffer(device) for device in range(layout.num_devices)]
    replaced: dict[int, Array] = {}
    for device, buffer in enumerate(buffers):
        if buffer is not None and not buffer.flags.writeable:
            made = replaced.get(id(buffer))
            if made is None:
                made = replaced[id(buffer)] = fresh_like(buffer)
            made[boxes[device]] = buffer[boxes[device]]
            buffers[device] = made
    missing = [device for device in layout.holders if buffers[device] is None and x._group.has(device)]
    if missing:
        known = next((buffer for buffer in buffers if buffer is not None), None)
        new = partial(fresh, x.shape, x.dtype) if known is None else partial(fresh_like, known)
        made_for = buffers_for(layout.without_parts(), x._group, lambda _: new())
        for device in missing:
            buffers[device] = made_for[device]
    return buffers


def _combined(x: ShardedArray, layout: Layout) -> ShardedArray:
    result = empty(x.shape, x.dtype, layout, x._group)
    if result._whole is not None and x._has_one_buffer_per_part:
        collectives = _collectives(x, layout) if is_recording() else ()
        of_part = dict(zip(x._layout.parts.tile, x._buffers or (), strict=True))
        combine([of_part[part] for part in range(len(of_part))], x._combine, result._whole)  # type: ignore[misc]
    else:
        plan = _plan(x, layout)
        collectives = plan.collectives
        buffers = [result._buffer(device) for device in range(layout.num_devices)]
        for step in plan.steps:
            _reduce(x, step, buffers)
            deliver(x._group, step.messages, buffers, buffers)
    record_operation("reduce", x, result, collectives)
    return result


def _reduce(x: ShardedArray, step: Step, buffers: Sequence[Array | None]) -> None:
    incoming = [Message(source, r.device, r.box) for r in step.reductions for source in r.sources]
    spaces_of_parts = [x._buffer(device) for device in range(x._group.num_devices)]
    values = iter(received(x._group, incoming, spaces_of_parts, "-"))
    for reduction in step.reductions:
        parts = [next(values) for _ in reduction.sources]
        buffer = buffers[reduction.device]
        if buffer is not None:
            combine([part for part in parts if part is not None], x._combine, view_of(buffer, reduction.box))


def _in_parts(x: ShardedArray, layout: Layout) -> ShardedArray:
    """Return a partial array whose first part has the values; other parts have the neutral element."""
    buffers, collectives = _received(x, layout)
    result = empty(x.shape, x.dtype, layout, x._group)
    result._combine = x._combine
    for device, box in enumerate(layout.boxes(x.shape)):
        target, buffer = result._buffer(device), buffers[device]
        if target is not None and buffer is not None and not is_planning():
            is_first = layout.parts.tile_of(device) == 0
            target[box] = buffer[box] if is_first else identity(x._combine, x.dtype)
    if collectives:
        record_operation("reshard", x, result, collectives)
    return result
