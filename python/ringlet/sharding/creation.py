"""Sharded arrays of plain ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ringlet.sharding.layout.device_group import DeviceGroup
from ringlet.sharding.layout.layout import Layout
from ringlet.sharding.layout.layout_of import group_of, layout_of
from ringlet.sharding.layout.mesh import NamedSharding
from ringlet.sharding.layout.sharding import Sharding
from ringlet.sharding.memory_modes import current_mode
from ringlet.sharding.resharding.device_buffers import fresh, spaces_for
from ringlet.sharding.sharded_array import ShardedArray

__all__ = ["place", "placed_with", "shard"]

Array = NDArray[Any]

_IS_BEFORE_2 = np.lib.NumpyVersion(np.__version__) < "2.0.0"


def shard(array: ArrayLike, sharding: Sharding | NamedSharding, num_devices: int | None = None) -> ShardedArray:
    """Lay out an array on logical devices.

    Parameters
    ----------
    array : array-like
        An ndarray is not copied, as far as devices share memory: what is written to it and to the result is the same.
        Over several processes each gives the same array, and keeps the part of its devices. One that is sharded
        already is laid out anew.
    sharding : Sharding or NamedSharding
        For as many dimensions. Trailing tiles are short, or empty, where sizes are no multiples.
    num_devices : int, optional
        Devices that there are, for a sharding that does not say it.

    Returns
    -------
    ShardedArray

    Raises
    ------
    ShardingError
        If the sharding is not for such an array, or does not say where values are.
    TypeError
        If `array` is masked.

    Examples
    --------
    >>> array = np.arange(5)
    >>> x = shard(array, Sharding.tiled((2,)))
    >>> x.shards
    [array([0, 1, 2]), array([3, 4])]
    >>> x[-1] = 7
    >>> array
    array([0, 1, 2, 3, 7])
    """
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError("a masked array would lose its mask: give array.filled(0), or shard array.data and array.mask")
    group = group_of(sharding, num_devices)
    if isinstance(array, ShardedArray) and array._group.joined(group) is not None:
        return array.reshard(sharding)
    whole = np.asarray(array)
    return place(whole, layout_of(sharding, whole.ndim, num_devices), group)


def place(whole: Array, layout: Layout, group: DeviceGroup) -> ShardedArray:
    """Give an array of which each device has its box of a plain one: a view of it, as far as devices share memory.

    Parameters
    ----------
    whole : ndarray
    layout : Layout
        The first part of a partial one has the values, the others zeros.
    group : DeviceGroup

    Examples
    --------
    >>> place(np.arange(3), Layout.replicated(2, 1), DeviceGroup.of(2)).shards
    [array([0, 1, 2]), array([0, 1, 2])]
    """
    if _IS_BEFORE_2:
        raise ImportError(
            "sharded arrays need NumPy 2.0 or later, where the dtypes of results do not depend on values, and this is "
            f"{np.__version__}: pip install 'numpy>=2'"
        )
    if current_mode() == "shared" and not layout.is_partial and group.member is None:
        return ShardedArray._of_whole(whole, layout, group)
    boxes = layout.boxes(whole.shape)
    is_own = current_mode() == "copy"
    # As they are in memory, which the orders "A" and "K" tell; processes may have been given other ones.
    axes = range(whole.ndim) if group.member else sorted(range(whole.ndim), key=lambda d: -abs(whole.strides[d]))
    shape = [whole.shape[axis] for axis in axes]

    def space(device: int) -> Array:
        made: Array = fresh(shape, whole.dtype).transpose(np.argsort(axes))
        part = layout.parts.tile_of(device)
        for other in (device,) if is_own else group.local_devices:
            if layout.parts.tile_of(other) == part:
                made[boxes[other]] = whole[boxes[other]] if part == 0 else 0
        return made

    return ShardedArray._build(spaces_for(layout, group, space), layout, group)


def placed_with(out: Any, operands: Sequence[Any]) -> Sequence[Any]:
    """Return operands, the first array whole on each device of `out` if nothing but `out` is sharded.

    Examples
    --------
    >>> out = place(np.zeros(2), Layout.replicated(2, 1), DeviceGroup.of(2))
    >>> [type(x).__name__ for x in placed_with(out, [1.5, np.ones(2), np.ones(2)])]
    ['float', 'ShardedArray', 'ndarray']
    """
    if not isinstance(out, ShardedArray) or any(isinstance(x, ShardedArray) for x in operands):
        return operands
    first = next((n for n, x in enumerate(operands) if isinstance(x, np.ndarray)), 0)
    whole = np.asarray(operands[first])
    placed = place(whole, Layout.replicated(out._layout.num_devices, whole.ndim), out._group)
    return [*operands[:first], placed, *operands[first + 1 :]]
