"""Sharded arrays where collectives, strategies, variables and checkpoints meet them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringlet.collectives.adapters.array_adapters import ArrayKind
from ringlet.errors import InvalidArgumentError
from ringlet.sharding.creation import place
from ringlet.sharding.layout.device_group import DeviceGroup
from ringlet.sharding.layout.layout import WHOLE, Layout
from ringlet.sharding.sharded_array import ShardedArray

__all__ = ["ShardedKind"]

Array = NDArray[Any]


class ShardedKind(ArrayKind):
    """Sharded arrays: each device combines its tile with those of the same device of other replicas.

    So a result lies as the arrays that were given do, and nothing moves between the devices of a replica. As everywhere
    replicas share the memory of results, which cannot be written to.
    """

    name = "ShardedArray"
    is_mutable = False

    def as_ndarray(self, value: Any, name: str = "the array") -> Array:
        """Give the values, once they are combined; in the memory of the tiles where that is one array.

        Raises
        ------
        InvalidArgumentError
            If other processes have some of them.
        """
        if value._group.member is not None:
            raise InvalidArgumentError(
                f"{name} is a ShardedArray on {value._group}: this process has not got all of it. Give np.asarray(x), "
                "which gathers it"
            )
        whole: Array = value._gathered()
        return whole

    def from_ndarray(self, array: Array, like: Any) -> Any:
        """Give a sharded array on the same devices, cut along the same dimensions, of which there may be fewer.

        It may be written to if `array` may, and is in memory of its own if that is the memory of `like`.
        """
        if like._whole is not None and np.may_share_memory(array, like._whole):
            array = array.copy()
            array.flags.writeable = False
        return _placed(like._layout, like._group, array)

    def reader(self, value: Any) -> Callable[[Array], Any]:
        """Variables that begin with a sharded array have its layout."""
        return functools.partial(_placed, value._layout, value._group)


def _placed(layout: Layout, group: DeviceGroup, array: Array) -> ShardedArray:
    made = place(array.view(np.ndarray), _fitted(layout, array.ndim), group)
    for device in group.local_devices:
        space = made._space(device)
        if space is not None:
            space.flags.writeable = array.flags.writeable
    return made


def _fitted(layout: Layout, ndim: int) -> Layout:
    """The layout that an array has once it is whole: dimensions are lost, and added, in front."""
    layout = layout.without_parts()
    if ndim == layout.ndim:
        return layout
    return layout.with_cuts((*(WHOLE,) * (ndim - layout.ndim), *layout.cuts[max(layout.ndim - ndim, 0) :]))
