"""Methods ``at`` and ``outer`` of NumPy's ufuncs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ringlet.sharding.execution.array_function_table import gathered
from ringlet.sharding.execution.ufunc_table import implements_ufunc
from ringlet.sharding.explain_operations import recorded_as_one
from ringlet.sharding.layout.device_group import common_group
from ringlet.sharding.layout.layout import Array, Box, Layout
from ringlet.sharding.ops.ufunc_at import cost_of_gathering, is_in_bounds, scatter, scatter_of, update_at
from ringlet.sharding.resharding.reshard import materialized, redistribute
from ringlet.sharding.sharded_array import ShardedArray


@implements_ufunc(None, "outer")
def outer(ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Apply a ufunc to all pairs of elements: elementwise, with dimensions of size 1 appended to the first operand."""
    if ufunc.signature is not None or ufunc.nin != 2 or len(inputs) != 2:
        return NotImplemented
    first, second = (x if isinstance(x, ShardedArray) else np.asarray(x) for x in inputs)
    if second.ndim:
        first = first[(...,) + (None,) * second.ndim]
    return recorded_as_one(f"{ufunc.__name__}.outer", inputs, lambda: ufunc(first, second, **kwargs))


@implements_ufunc(None, "at")
def at(ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Apply a ufunc to some elements of an array, in place.

    Each device updates its tile of the array with all indices and values. If their order matters only for rounding and
    this sends fewer bytes, it instead applies its own indices and values to a temporary array, and the temporary arrays
    are combined.
    """
    target, key, *values = inputs
    operands = [target, *_leaves(key), *values]

    def work() -> Any:
        _at(ufunc, target, key, values)
        return target

    recorded_as_one(f"{ufunc.__name__}.at", operands, work)


def _at(ufunc: np.ufunc, target: Any, key: Any, values: list[Any]) -> None:
    if isinstance(target, ShardedArray):
        target._writable_buffers()
    key, values = _materialized(key), [_materialized(value) for value in values]
    arrays = [x for x in (target, *_leaves(key), *values) if isinstance(x, ShardedArray)]
    common_group(f"{ufunc.__name__}.at", arrays)
    cost = cost_of_gathering([*_leaves(key), *values])
    call = scatter_of(ufunc, target, key, values) if cost else None
    if call is not None and call.nbytes < cost and is_in_bounds(call):
        scatter(call)
        return
    if call is None and not isinstance(target, ShardedArray):  # the target has no tiles
        name = f"np.{ufunc.__name__}.at"
        update_at(ufunc, target, gathered(name, key), *gathered(name, values))
        return
    key, values = _everywhere(key), [_everywhere(value) for value in values]
    if not isinstance(target, ShardedArray):
        update_at(ufunc, target, _of_device(key, None), *(_of_device(value, None) for value in values))
        return
    buffers, boxes = target._writable_buffers(), target._layout.boxes(target.shape)
    done: set[tuple[int, ...]] = set()
    for device in target._layout.holders:
        buffer = buffers[device]
        bounds = (id(buffer), *(bound for s in boxes[device] for bound in (s.start, s.stop)))
        if buffer is None or bounds in done:
            continue
        done.add(bounds)
        arguments = (_of_device(key, device), *(_of_device(value, device) for value in values))
        if target._whole is not None:  # updates all boxes with one call
            update_at(ufunc, buffer, *arguments)
            return
        _at_in_box(ufunc, buffer, boxes[device], *arguments)


def _at_in_box(ufunc: np.ufunc, buffer: Array, box: Box, key: Any, *values: Any) -> None:
    """Apply the updates of ``ufunc.at`` to elements in a box of an array, in the order of the whole call."""
    if not buffer.shape:  # a 0-d array has a single box
        ufunc.at(buffer, key, *values)
        return
    size = math.prod(buffer.shape)
    chosen = np.arange(size).reshape(buffer.shape)[key]
    places = np.unravel_index(chosen.ravel(), buffer.shape)
    inside = np.ones(chosen.size, bool)
    for place, extent in zip(places, box, strict=True):
        inside &= (place >= extent.start) & (place < extent.stop)
    index = tuple(place[inside] for place in places)
    ufunc.at(buffer, index, *(np.broadcast_to(v, chosen.shape).ravel()[inside] for v in values))


def _leaves(key: Any) -> list[Any]:
    return list(key) if isinstance(key, tuple) else [key]


def _materialized(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_materialized, value))
    return materialized(value) if isinstance(value, ShardedArray) else value


def _everywhere(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_everywhere, value))
    if not isinstance(value, ShardedArray):
        return value
    return redistribute(value, Layout.replicated(value._layout.num_devices, value.ndim))


def _of_device(value: Any, device: int | None) -> Any:
    """Return a device's part of an argument; for None, the part of the first device of this process."""
    if isinstance(value, tuple):
        return tuple(_of_device(item, device) for item in value)
    if not isinstance(value, ShardedArray):
        return value
    return value._tile(value._group.local_devices[0] if device is None else device)
