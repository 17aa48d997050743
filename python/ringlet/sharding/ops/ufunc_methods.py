"""The methods ``at`` and ``outer`` of NumPy's ufuncs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringlet.sharding.execution.ufunc_table import implements_ufunc
from ringlet.sharding.explain import noted_as_one
from ringlet.sharding.layout.layout import Box, Layout
from ringlet.sharding.resharding.reshard import redistribute, settled
from ringlet.sharding.sharded_array import ShardedArray

__all__ = ["at", "outer"]

Array = NDArray[Any]


@implements_ufunc(None, "outer")
def outer(ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Apply a ufunc to all pairs of elements: elementwise, the first operand with more dimensions, of size 1."""
    if ufunc.signature is not None or ufunc.nin != 2 or len(inputs) != 2:
        return NotImplemented
    first, second = (x if isinstance(x, ShardedArray) else np.asarray(x) for x in inputs)
    if second.ndim:
        first = first[(...,) + (None,) * second.ndim]
    return noted_as_one(f"{ufunc.__name__}.outer", inputs, lambda: ufunc(first, second, **kwargs))


@implements_ufunc(None, "at")
def at(ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Apply a ufunc to some elements of an array, in place: each device does what falls on its tile."""
    target, key, *values = inputs
    operands = [target, *_leaves(key), *values]
    noted_as_one(f"{ufunc.__name__}.at", operands, lambda: _at(ufunc, target, key, values))


def _at(ufunc: np.ufunc, target: Any, key: Any, values: list[Any]) -> None:
    # Which elements and with what, each device has to know as a whole.
    key, values = _everywhere(key), [_everywhere(value) for value in values]
    if not isinstance(target, ShardedArray):
        ufunc.at(target, _of_device(key, None), *(_of_device(value, None) for value in values))
        return
    spaces, boxes = target._spaces_to_write(), target._layout.boxes(target.shape)
    done: set[tuple[int, ...]] = set()
    for device in target._layout.holders:
        space = spaces[device]
        bounds = (id(space), *(bound for s in boxes[device] for bound in (s.start, s.stop)))
        if space is None or bounds in done:
            continue
        done.add(bounds)
        arguments = (_of_device(key, device), *(_of_device(value, device) for value in values))
        if target._whole is not None:  # all boxes at once
            ufunc.at(space, *arguments)
            return
        _at_in_box(ufunc, space, boxes[device], *arguments)


def _at_in_box(ufunc: np.ufunc, space: Array, box: Box, key: Any, *values: Any) -> None:
    """Do what falls into a box of an array, in the order in which the whole array would have it done."""
    if not space.shape:  # of which there is one box
        ufunc.at(space, key, *values)
        return
    size = math.prod(space.shape)
    chosen = np.arange(size).reshape(space.shape)[key]
    places = np.unravel_index(chosen.ravel(), space.shape)
    inside = np.ones(chosen.size, bool)
    for place, extent in zip(places, box, strict=True):
        inside &= (place >= extent.start) & (place < extent.stop)
    index = tuple(place[inside] for place in places)
    ufunc.at(space, index, *(np.broadcast_to(v, chosen.shape).ravel()[inside] for v in values))


def _leaves(key: Any) -> list[Any]:
    return list(key) if isinstance(key, tuple) else [key]


def _everywhere(value: Any) -> Any:
    """An argument with all sharded arrays in it on each device."""
    if isinstance(value, tuple):
        return tuple(map(_everywhere, value))
    if not isinstance(value, ShardedArray):
        return value
    return redistribute(settled(value), Layout.replicated(value._layout.num_devices, value.ndim))


def _of_device(value: Any, device: int | None) -> Any:
    """What a device has of such an argument; a device of this process for None."""
    if isinstance(value, tuple):
        return tuple(_of_device(item, device) for item in value)
    if not isinstance(value, ShardedArray):
        return value
    return value._tile(value._group.local_devices[0] if device is None else device)
