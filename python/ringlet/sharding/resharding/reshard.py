"""Brings arrays from one layout to another."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ringlet.errors import ShardingError
from ringlet.sharding.explain import note, noted_as_one
from ringlet.sharding.layout.device_group import DeviceGroup
from ringlet.sharding.layout.layout import Layout
from ringlet.sharding.layout.layout_of import group_of, layout_of
from ringlet.sharding.resharding.collective_record import Collective, Message
from ringlet.sharding.resharding.device_buffers import empty, fresh, spaces_for
from ringlet.sharding.resharding.partial_combine import combine, identity
from ringlet.sharding.resharding.reshard_plan import Movement, Step, collectives_for, plan_movement
from ringlet.sharding.resharding.tile_transport import deliver, received, view_of
from ringlet.sharding.sharded_array import ShardedArray

if TYPE_CHECKING:
    from ringlet.sharding.layout.mesh import NamedSharding
    from ringlet.sharding.layout.sharding import Sharding

__all__ = ["redistribute", "reshard", "settled", "spaces_to_receive"]

Array = NDArray[Any]


def reshard(x: ShardedArray, sharding: Sharding | NamedSharding) -> ShardedArray:
    """Give the same values laid out in another way; :meth:`ShardedArray.reshard` is this function.

    Where devices share memory nothing is copied: the result reads the memory of `x` until either is written to.

    Parameters
    ----------
    x : ShardedArray
    sharding : Sharding or NamedSharding
        For arrays of as many dimensions, on the same devices.

    Returns
    -------
    ShardedArray

    Raises
    ------
    ShardingError
        If the sharding is not for this array, or its devices are others.

    Examples
    --------
    >>> import numpy as np
    >>> from ringlet.sharding import Sharding, explain, shard
    >>> x = shard(np.arange(8).reshape(2, 4), Sharding.tiled((2, 1)))
    >>> with explain() as report:
    ...     y = reshard(x, Sharding.tiled((1, 2)))
    >>> print(y.sharding, report.nbytes)
    {devices=[1,2]<=[2]} 32
    """
    layout = layout_of(sharding, x.ndim, x._group.num_devices)
    group = group_of(sharding, x._group.num_devices)
    if group not in (x._group, DeviceGroup.of(x._group.num_devices)):
        raise ShardingError(
            f"{sharding} is for {group}, and the array is on {x._group}: give a sharding of the same mesh, or take the "
            "values there, ringlet.sharding.shard(np.asarray(array), sharding)"
        )

    def work() -> ShardedArray:
        return redistribute(x, layout)._derive(_itself, layout, is_view=False)

    return noted_as_one("reshard", x, work)


def redistribute(x: ShardedArray, layout: Layout) -> ShardedArray:
    """Give the values of an array in another layout, and tell reports what is sent for that.

    Parameters
    ----------
    x : ShardedArray
    layout : Layout
        Of as many dimensions, for the same devices. A partial one keeps the parts of `x` if it has the same; else the
        first of its parts gets the values.

    Returns
    -------
    ShardedArray
        `x` itself if it is laid out like that. It shares memory with `x`, and is not to be written to.

    Examples
    --------
    >>> import numpy as np
    >>> from ringlet.sharding import Sharding, shard
    >>> x = shard(np.arange(4), Sharding.tiled((2,)))
    >>> redistribute(x, Layout.replicated(2, 1))._tile(1)
    array([0, 1, 2, 3])
    """
    source = x._layout
    if source == layout:
        return x
    if source.parts == layout.parts:
        return _moved(x, layout)
    if layout.is_partial:
        return _in_parts(settled(x), layout)
    if x._settled is None:
        x._settled = _combined(x, layout)
    return redistribute(x._settled, layout)


def settled(x: ShardedArray) -> ShardedArray:
    """Give an array whose values are known: `x` itself, unless it is partial; then its parts are combined, once.

    Parameters
    ----------
    x : ShardedArray

    Returns
    -------
    ShardedArray
        Not to be written to, if it is not `x`: others may have it too.

    Examples
    --------
    >>> import numpy as np
    >>> from ringlet.sharding import Sharding, shard
    >>> total = shard(np.arange(4), Sharding.tiled((2,))).sum()
    >>> print(total.sharding, settled(total).sharding)
    {unreduced} {replicated}
    """
    if not x._layout.is_partial:
        return x
    return x._settled if x._settled is not None else redistribute(x, x._layout.without_parts())


def _plan(x: ShardedArray, layout: Layout) -> Movement:
    group = x._group if x._group.assignment is not None else None
    return plan_movement(x.shape, x.dtype.itemsize, x._layout, layout, group=group, dtype=_name_of(x.dtype))


def _collectives(x: ShardedArray, layout: Layout) -> Sequence[Collective]:
    group = x._group if x._group.assignment is not None else None
    return collectives_for(x.shape, x.dtype.itemsize, x._layout, layout, group=group, dtype=_name_of(x.dtype))


@lru_cache(maxsize=256)
def _name_of(dtype: np.dtype[Any]) -> str:
    name: str = dtype.name  # which NumPy puts together each time
    return name


def _itself(space: Array) -> Array:
    return space


def _moved(x: ShardedArray, layout: Layout) -> ShardedArray:
    """The same values, or the same parts, in other tiles."""
    spaces, collectives = _received(x, layout)
    result = x._derive(_itself, layout)
    if x._whole is None:
        result._whole, result._spaces = None, tuple(spaces)
    if collectives:
        note("reshard", x, result, collectives)
    return result


def _received(x: ShardedArray, layout: Layout) -> tuple[Sequence[Array | None], Sequence[Collective]]:
    """The space of each device after a movement: its own, which has the whole's shape, if that can be written to."""
    if x._whole is not None:
        return (x._whole,) * layout.num_devices, _collectives(x, layout)
    spaces, movement = spaces_to_receive(x, layout), _plan(x, layout)
    for step in movement.steps:
        deliver(x._group, step.messages, spaces, spaces)
    return spaces, movement.collectives


def spaces_to_receive(x: ShardedArray, layout: Layout) -> list[Array | None]:
    """Give the space of each device, to receive what it lacks of an array into.

    Parameters
    ----------
    x : ShardedArray
    layout : Layout
        Says which devices are to have something.

    Returns
    -------
    list of ndarray or None
        Those of `x`, with their values, where they can be written to, else others with the same values; None for
        devices of other processes, and for those that have nothing and are to have nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from ringlet.sharding import Sharding, shard
    >>> x = shard(np.arange(4), Sharding.tiled((2,)))
    >>> spaces_to_receive(x, x._layout)[1] is x._space(1)
    True
    """
    boxes = x._layout.boxes(x.shape)
    spaces = [x._space(device) for device in range(layout.num_devices)]
    replaced: dict[int, Array] = {}
    for device, space in enumerate(spaces):
        if space is not None and not space.flags.writeable:
            made = replaced.get(id(space))
            if made is None:
                made = replaced[id(space)] = fresh(x.shape, x.dtype)
            made[boxes[device]] = space[boxes[device]]
            spaces[device] = made
    missing = [device for device in layout.holders if spaces[device] is None and x._group.has(device)]
    if missing:
        made_for = spaces_for(layout.without_parts(), x._group, lambda _: fresh(x.shape, x.dtype))
        for device in missing:
            spaces[device] = made_for[device]
    return spaces


def _combined(x: ShardedArray, layout: Layout) -> ShardedArray:
    """The values of a partial array."""
    result = empty(x.shape, x.dtype, layout, x._group)
    if result._whole is not None and x._has_one_space_per_part:
        collectives = _collectives(x, layout)
        of_part = dict(zip(x._layout.parts.tile, x._spaces or (), strict=True))
        combine([of_part[part] for part in range(len(of_part))], x._combine, result._whole)  # type: ignore[misc]
    else:
        movement = _plan(x, layout)
        collectives = movement.collectives
        spaces = [result._space(device) for device in range(layout.num_devices)]
        for step in movement.steps:
            _reduce(x, step, spaces)
            deliver(x._group, step.messages, spaces, spaces)
    note("settle", x, result, collectives)
    return result


def _reduce(x: ShardedArray, step: Step, spaces: Sequence[Array | None]) -> None:
    """Combine the boxes that devices of this process are to combine."""
    incoming = [Message(source, r.device, r.box) for r in step.reductions for source in r.sources]
    spaces_of_parts = [x._space(device) for device in range(x._group.num_devices)]
    values = iter(received(x._group, incoming, spaces_of_parts, f"parts for {x._combine.name}"))
    for reduction in step.reductions:
        parts = [next(values) for _ in reduction.sources]
        space = spaces[reduction.device]
        if space is not None:
            combine([part for part in parts if part is not None], x._combine, view_of(space, reduction.box))


def _in_parts(x: ShardedArray, layout: Layout) -> ShardedArray:
    """An array of which the first part has the values, and the others what changes nothing."""
    spaces, collectives = _received(x, layout)
    result = empty(x.shape, x.dtype, layout, x._group)
    result._combine = x._combine
    for device, box in enumerate(layout.boxes(x.shape)):
        target, space = result._space(device), spaces[device]
        if target is not None and space is not None:
            is_first = layout.parts.tile_of(device) == 0
            target[box] = space[box] if is_first else identity(x._combine, x.dtype)
    if collectives:
        note("reshard", x, result, collectives)
    return result
