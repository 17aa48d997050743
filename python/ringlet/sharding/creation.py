"""Creation of sharded arrays from plain arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ringlet.sharding.layout.device_group import DeviceGroup
from ringlet.sharding.layout.layout import Array, Layout
from ringlet.sharding.layout.layout_of import group_of, layout_of
from ringlet.sharding.layout.mesh import NamedSharding
from ringlet.sharding.layout.sharding import Sharding
from ringlet.sharding.memory_modes import current_mode
from ringlet.sharding.resharding.device_buffers import buffers_for, fresh, fresh_like
from ringlet.sharding.sharded_array import ShardedArray

_IS_BEFORE_2 = np.lib.NumpyVersion(np.__version__) < "2.0.0"


def shard(array: ArrayLike, sharding: Sharding | NamedSharding, num_devices: int | None = None) -> ShardedArray:
    """Divide an array over logical devices.

    Parameters
    ----------
    array : array-like
        If devices share memory, an ndarray is not copied, unless the result is unreduced: writes to the ndarray and to
        the result are visible in both.
        With several processes, every process passes the same array and keeps the tiles of its own devices. A sharded
        array is resharded, or gathered if its devices are different ones.
    sharding : Sharding or NamedSharding
        Must match the array's number of dimensions. The last tiles of a dimension are shorter or empty if its size is
        not a multiple of the number of tiles.
    num_devices : int, optional
        Number of devices, required if the sharding does not record it.

    Returns
    -------
    ShardedArray

    Raises
    ------
    ShardingError, PartitionError
        If the sharding does not fit the array, or does not define the devices' tiles.
    TypeError
        If `array` is masked or sparse, or a dict of arrays, or `sharding` is not a sharding.

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
        raise TypeError("a masked array would lose its mask: pass array.filled(0), or shard array.data and array.mask")
    if isinstance(array, Mapping):
        raise TypeError(
            f"expected one array, got a {type(array).__name__} of {len(array)} values: shard each value, as in "
            "{name: shard(array, sharding) for name, array in arrays.items()}"
        )
    refuse_sparse(array)
    group = group_of(sharding, num_devices)
    if isinstance(array, ShardedArray) and array._group.joined(group) is not None:
        return array.reshard(sharding)
    whole = np.asarray(array)
    return place(whole, layout_of(sharding, whole.ndim, num_devices), group)


device_put = shard  # JAX's name for this function


def refuse_sparse(value: Any) -> None:
    """Raise TypeError for a sparse array, which NumPy converts to one object."""
    if hasattr(type(value), "toarray"):
        raise TypeError(
            f"sharded arrays are dense, got a sparse {type(value).__name__}: write array.toarray(), or sparse @ x"
        )


def place(whole: Array, layout: Layout, group: DeviceGroup) -> ShardedArray:
    """Return an array whose devices hold their boxes of a plain array.

    The boxes are views if devices of one process share memory and `layout` is not partial, else copies. In a partial
    array, the first part holds the values and the other parts are zero.
    """
    if _IS_BEFORE_2:
        raise ImportError(
            "sharded arrays require NumPy 2.0 or later, in which result dtypes do not depend on values, got "
            f"{np.__version__}: pip install 'numpy>=2'"
        )
    if current_mode() != "copy" and not layout.is_partial and group.member is None:
        return ShardedArray._of_whole(whole, layout, group)
    boxes = layout.boxes(whole.shape)
    is_own = current_mode() == "copy"

    def buffer(device: int) -> Array:
        # Between processes, buffers are in C order, because the memory order of `whole` may differ between processes.
        made = fresh(whole.shape, whole.dtype) if group.member else fresh_like(whole)
        part = layout.parts.tile_of(device)
        for other in (device,) if is_own else group.local_devices:
            if layout.parts.tile_of(other) == part:
                made[boxes[other]] = whole[boxes[other]] if part == 0 else 0
        return made

    return ShardedArray._build(buffers_for(layout, group, buffer), layout, group)


def replicated_with(out: Any, operands: Sequence[Any]) -> Sequence[Any]:
    """Return the operands; if only `out` is sharded, the first array is replicated on the devices of `out`."""
    if not isinstance(out, ShardedArray) or any(isinstance(x, ShardedArray) for x in operands):
        return operands
    first = next((n for n, x in enumerate(operands) if isinstance(x, np.ndarray)), 0)
    whole = np.asarray(operands[first])
    placed = place(whole, Layout.replicated(out._layout.num_devices, whole.ndim), out._group)
    return [*operands[:first], placed, *operands[first + 1 :]]
