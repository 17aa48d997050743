"""Adapter of sharded arrays for collectives, strategies, variables and checkpoints."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ringlet.collectives.adapters.array_adapters import ArrayAdapter
from ringlet.errors import InvalidArgumentError
from ringlet.sharding.layout.device_group import DeviceGroup
from ringlet.sharding.layout.layout import WHOLE, Array, Layout

if TYPE_CHECKING:
    from ringlet.sharding.sharded_array import ShardedArray


class ShardedKind(ArrayAdapter):
    """Adapter of sharded arrays: collectives combine the values of whole arrays.

    A result has the layout of the given array, without parts. Results that share memory are read-only.
    """

    name = "ShardedArray"
    is_mutable = False

    def as_ndarray(self, value: Any, name: str = "the array") -> Array:
        """Return the combined values, in the memory of the tiles if they are in one array."""
        if value._group.member is not None:
            raise InvalidArgumentError(
                f"{name} is a ShardedArray on {value._group}, of which this process holds only a part: pass "
                "np.asarray(x), which gathers it"
            )
        whole: Array = value._gathered()
        return whole

    def from_ndarray(self, array: Array, like: Any) -> Any:
        """Return a sharded array on the same devices, divided along the same trailing dimensions.

        The result is writable if `array` is; if `array` shares memory with `like`, the result is a
        read-only copy.
        """
        if like._whole is not None and np.may_share_memory(array, like._whole):
            array = array.copy()
            array.flags.writeable = False
        return _with_layout(like._layout, like._group, array)

    def reader(self, value: Any) -> Callable[[Array], Any]:
        """Return the function that converts a variable's ndarray to the layout of `value`, its initial value."""
        return functools.partial(_with_layout, value._layout, value._group)


def _with_layout(layout: Layout, group: DeviceGroup, array: Array) -> ShardedArray:
    made: ShardedArray = _place()(array.view(np.ndarray), _fitted(layout, array.ndim), group)
    for device in group.local_devices:
        buffer = made._buffer(device)
        if buffer is not None:
            buffer.flags.writeable = array.flags.writeable
    return made


@functools.cache
def _place() -> Callable[..., Any]:
    from ringlet.sharding.creation import place  # imported here because `creation` imports this module

    return place


def _fitted(layout: Layout, ndim: int) -> Layout:
    """Return the layout without parts, for `ndim` dimensions: dimensions are removed or added in front."""
    layout = layout.without_parts()
    if ndim == layout.ndim:
        return layout
    return layout.with_cuts((*(WHOLE,) * (ndim - layout.ndim), *layout.cuts[max(layout.ndim - ndim, 0) :]))
