"""Buffers of sharded arrays: each has the whole array's shape, with values in the boxes of its devices."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from ringlet import _core
from ringlet.sharding.layout.device_group import DeviceGroup
from ringlet.sharding.layout.layout import Array, Layout, Shape
from ringlet.sharding.memory_modes import current_mode, is_planning
from ringlet.sharding.sharded_array import ShardedArray

# Whether new memory is filled with unlikely values, so that tests detect reads of elements that were never received.
POISONED: ContextVar[bool] = ContextVar("ringlet_sharding_poisoned", default=os.environ.get("RINGLET_POISON") == "1")

# Minimum size of buffers from a pool that keeps its pages: the kernel zeroes new pages, which costs more than most
# arithmetic on them.
_POOLED_BYTES = 128 << 10


def fresh_like(array: Array, shape: Sequence[int] | None = None) -> Array:
    """Return uninitialized writable memory with an array's dtype and memory order; by default, also its shape.

    Sums of floats depend on the memory order, so memory that replaces an array must have the same order.
    """
    order = sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis]))
    shape = array.shape if shape is None else shape
    made: Array = fresh([shape[axis] for axis in order], array.dtype).transpose(np.argsort(order))
    return made


def fresh(shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """Return uninitialized writable memory in C order; while planning, the memory of one element."""
    if is_planning():
        return np.lib.stride_tricks.as_strided(np.zeros(1, dtype), shape, (0,) * len(shape))
    is_pooled = math.prod(shape) * dtype.itemsize >= _POOLED_BYTES and not dtype.hasobject
    array = _core.allocate(shape, dtype)[0] if is_pooled else np.empty(shape, dtype)
    return _poisoned(array) if POISONED.get() else array


def _poisoned(array: Array) -> Array:
    kind = array.dtype.kind
    if kind in "fc":
        array.fill(np.nan)
    elif kind in "iu":
        array.fill(np.iinfo(array.dtype).max)
    elif not array.dtype.hasobject:
        array.view(np.uint8).fill(0xA5) if array.ndim and kind != "b" else array.fill(1)
    return array


def empty(shape: Shape, dtype: np.dtype[Any], layout: Layout, group: DeviceGroup) -> ShardedArray:
    """Return an uninitialized array, in memory that the mode and the group determine; the caller fills the tiles."""
    if layout.parts.count == 1 and group.member is None and current_mode() != "copy":
        return ShardedArray._of_whole(fresh(shape, dtype), layout, group)
    return ShardedArray._build(buffers_for(layout, group, lambda _: fresh(shape, dtype)), layout, group)


def buffers_for(layout: Layout, group: DeviceGroup, make: Callable[[int], Array]) -> list[Array | None]:
    """Return a buffer for each device of this process, as the mode and the group determine; None for other devices.

    `make` is called for the first device of each part in ``"shared"`` mode, for each in ``"copy"`` mode.
    """
    if current_mode() == "copy":
        return [make(device) if group.has(device) else None for device in range(group.num_devices)]
    of_part: dict[int, Array] = {}
    buffers: list[Array | None] = []
    parts = layout.parts.tile or (0,) * group.num_devices
    for device, part in enumerate(parts):
        if group.member is not None and not group.has(device):
            buffers.append(None)
            continue
        if part not in of_part:
            of_part[part] = make(device)
        buffers.append(of_part[part])
    return buffers


def filling_devices(x: ShardedArray) -> tuple[int, ...]:
    """Return the devices of this process that must write to fill an array.

    Of the devices that share the memory of a tile, only the first writes.
    """
    devices = x._layout.first_holders(x.shape) if x._has_one_buffer_per_part else x._layout.holders
    return tuple(device for device in devices if x._buffer(device) is not None)


def copies(x: ShardedArray) -> list[Array | None]:
    """Return copies of an array's buffers; devices that share a buffer share its copy."""
    if is_planning():
        return [x._buffer(device) for device in range(x._group.num_devices)]
    boxes = x._layout.boxes(x.shape)
    made: dict[int, Array] = {}
    buffers: list[Array | None] = []
    for device in range(x._group.num_devices):
        buffer = x._buffer(device)
        if buffer is None:
            buffers.append(None)
            continue
        if id(buffer) not in made:
            made[id(buffer)] = np.empty_like(buffer)
            if x._buffers is None:  # all devices share one buffer: copy all of it
                np.copyto(made[id(buffer)], buffer)
        if x._buffers is not None:
            made[id(buffer)][boxes[device]] = buffer[boxes[device]]
        buffers.append(made[id(buffer)])
    return buffers
