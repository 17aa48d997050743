"""Memory of sharded arrays: for each device an array of the whole's shape, of which that device's box has values."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringlet import _core
from ringlet.sharding.layout.device_group import DeviceGroup
from ringlet.sharding.layout.layout import Layout
from ringlet.sharding.memory_modes import current_mode
from ringlet.sharding.sharded_array import ShardedArray

__all__ = ["POISONED", "copies", "empty", "filling_devices", "fresh", "spaces_for"]

Array = NDArray[Any]

# Whether fresh memory is filled with what no program expects there, so that reading what was never received shows.
POISONED: ContextVar[bool] = ContextVar("ringlet_sharding_poisoned", default=os.environ.get("RINGLET_POISON") == "1")

# From here on memory comes from a pool that keeps its pages: the system zeroes new ones, which costs more than most
# arithmetic on them.
_POOLED_BYTES = 128 << 10


def fresh(shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """Give memory for results, writable, with no values yet.

    Parameters
    ----------
    shape : sequence of int
    dtype : dtype

    Returns
    -------
    ndarray
        In C order, and of its own.

    Examples
    --------
    >>> fresh((2, 3), np.dtype("float32")).shape
    (2, 3)
    """
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


def empty(shape: tuple[int, ...], dtype: np.dtype[Any], layout: Layout, group: DeviceGroup) -> ShardedArray:
    """Give an array with no values yet, in memory as the mode and the group say.

    Devices of this process share one space (for each part of a partial array), or have one each in the mode
    ``"copy"``; those of other processes have none here.

    Parameters
    ----------
    shape : tuple of int
    dtype : dtype
    layout : Layout
    group : DeviceGroup

    Returns
    -------
    ShardedArray
        The caller fills ``_tile(device)`` of each device that has something.

    Examples
    --------
    >>> x = empty((4, 4), np.dtype("int64"), Layout.replicated(2, 2), DeviceGroup.of(2))
    >>> x._space(0) is x._space(1)
    True
    """
    if layout.parts.count == 1 and group.member is None and current_mode() == "shared":
        return ShardedArray._of_whole(fresh(shape, dtype), layout, group)
    return ShardedArray._build(spaces_for(layout, group, lambda _: fresh(shape, dtype)), layout, group)


def spaces_for(layout: Layout, group: DeviceGroup, make: Callable[[int], Array]) -> list[Array | None]:
    """Give a space for each device of this process, as the mode and the group say; None for the others.

    Parameters
    ----------
    layout : Layout
    group : DeviceGroup
    make : callable
        Gives the space for a device; in ``"shared"`` mode it is asked for the first device of each part, in the mode
        ``"copy"`` for all.

    Examples
    --------
    >>> spaces_for(Layout.replicated(2, 1), DeviceGroup.of(2), lambda device: np.full(1, device))
    [array([0]), array([0])]
    """
    if current_mode() == "copy":
        return [make(device) if group.has(device) else None for device in range(group.num_devices)]
    of_part: dict[int, Array] = {}
    spaces: list[Array | None] = []
    parts = layout.parts.tile or (0,) * group.num_devices
    for device, part in enumerate(parts):
        if group.member is not None and not group.has(device):
            spaces.append(None)
            continue
        if part not in of_part:
            of_part[part] = make(device)
        spaces.append(of_part[part])
    return spaces


def filling_devices(x: ShardedArray) -> tuple[int, ...]:
    """Return the devices of this process that have to write their tiles so that all tiles of an array have values.

    Of devices that share memory and have the same tile, that is the first.

    Examples
    --------
    >>> filling_devices(empty((2,), np.dtype("int64"), Layout.replicated(2, 1), DeviceGroup.of(2)))
    (0,)
    """
    devices = x._layout.first_holders(x.shape) if x._has_one_space_per_part else x._layout.holders
    return tuple(device for device in devices if x._space(device) is not None)


def copies(x: ShardedArray) -> list[Array | None]:
    """Give spaces with the same values as those of an array; devices that share memory still do.

    Examples
    --------
    >>> x = empty((2,), np.dtype("int64"), Layout.replicated(2, 1), DeviceGroup.of(2))
    >>> one, other = copies(x)
    >>> one is other, one is x._space(0)
    (True, False)
    """
    boxes = x._layout.boxes(x.shape)
    made: dict[int, Array] = {}
    spaces: list[Array | None] = []
    for device in range(x._group.num_devices):
        space = x._space(device)
        if space is None:
            spaces.append(None)
            continue
        if id(space) not in made:
            made[id(space)] = np.empty_like(space)
        made[id(space)][boxes[device]] = space[boxes[device]]
        spaces.append(made[id(space)])
    return spaces
