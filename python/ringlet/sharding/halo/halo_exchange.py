"""What tiles need of their neighbours: which messages bring it, and how results there are added back."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringlet.sharding.explain import note
from ringlet.sharding.halo.windows import Needs
from ringlet.sharding.layout.device_group import DeviceGroup
from ringlet.sharding.layout.layout import Box, Layout, tile_bounds
from ringlet.sharding.resharding.collective_record import Collective, Message
from ringlet.sharding.resharding.reshard import spaces_to_receive
from ringlet.sharding.resharding.reshard_time import timed
from ringlet.sharding.resharding.tile_transport import deliver
from ringlet.sharding.resharding.transfers import box_size, tile_holders
from ringlet.sharding.sharded_array import ShardedArray

__all__ = ["Exchange", "plan_exchange", "with_neighbours"]

Array = NDArray[Any]


@dataclass(frozen=True)
class Exchange:
    """How devices come to have what they need of an array.

    Attributes
    ----------
    boxes : tuple of Box
        What each device needs: the smallest box around it.
    rounds : tuple of tuple of Message
        One after another: each sends on what the one before has brought.
    collectives : tuple of Collective
        The same as reports show it: one for each dimension and distance.
    """

    boxes: tuple[Box, ...]
    rounds: tuple[tuple[Message, ...], ...]
    collectives: tuple[Collective, ...]


@lru_cache(maxsize=1024)
def plan_exchange(
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    layout: Layout,
    needs: Needs,
    group: DeviceGroup,
    *,
    held: Layout | None = None,
) -> Exchange:
    """Plan how tiles come to have what they need, dimension by dimension.

    What has come along one dimension is sent on along the next, so that corners need no messages of their own. Devices
    get it from those that are to another tile what they are to their own: of a partial array, from the same part.

    Parameters
    ----------
    shape, dtype
        Of the array.
    layout : Layout
        Where it is.
    needs : tuple of (tuple of ranges or None)
    group : DeviceGroup
    held : Layout, optional
        What devices have already, if that is more than `layout` says.

    Examples
    --------
    Windows of three rows: the neighbours' nearest.

    >>> from ringlet.sharding.layout.layout import Cut
    >>> halves, needs = Layout(2, (Cut(2, (0, 1)), Cut(1, ()))), ((((0, 5),), ((3, 8),)), None)
    >>> plan = plan_exchange((8, 2), np.dtype("int8"), halves, needs, DeviceGroup.of(2))
    >>> [(c.kind, c.shape, c.pairs) for c in plan.collectives]
    [('collective-permute', (1, 2), ((0, 1),)), ('collective-permute', (1, 2), ((1, 0),))]
    """
    has = held.boxes(shape) if held is not None else (None,) * layout.num_devices
    # [device][dimension]: ranges that it has by now
    sides: list[list[tuple[slice, ...]]] = [[(side,) for side in box] for box in layout.boxes(shape)]
    rounds, collectives = [], []
    for dimension, ranges in enumerate(needs):
        if ranges is None:
            continue
        by_distance: dict[int, list[Message]] = {}
        for distance, (source, target, whole) in _messages(shape, layout, sides, dimension, ranges):
            parts = [Message(source, target, box) for box in _lacking(whole, has[target])]
            if parts:
                by_distance.setdefault(distance, []).extend(parts)
        rounds.append(tuple(message for messages in by_distance.values() for message in messages))
        collectives += [_permute(messages, dtype, group) for _, messages in sorted(by_distance.items(), reverse=True)]
        for device in layout.holders:
            index = layout.cuts[dimension].tile_of(device)
            sides[device][dimension] = tuple(slice(*bounds) for bounds in ranges[index])
    boxes = tuple(tuple(slice(side[0].start, side[-1].stop) for side in each) for each in sides)
    return Exchange(boxes, tuple(rounds), tuple(collectives))


def _messages(
    shape: tuple[int, ...], layout: Layout, sides: list[list[tuple[slice, ...]]], dimension: int, ranges: Any
) -> Iterator[tuple[int, Message]]:
    """Give what goes from tile to tile along one dimension, with the distance."""
    holders, tiles = tile_holders(layout)
    owned = tile_bounds(shape[dimension], layout.cuts[dimension].count)
    place = dimension + 1  # the part comes first
    for device in layout.holders:
        tile = tiles[device]
        assert tile is not None
        rank, index = holders[tile].index(device), tile[place]
        for (start, stop), (other, (begin, end)) in itertools.product(ranges[index], enumerate(owned)):
            there = slice(max(start, begin), min(stop, end))
            if other == index or there.start >= there.stop:
                continue
            senders = holders[tuple(other if axis == place else at for axis, at in enumerate(tile))]
            for box in itertools.product(*sides[device][:dimension], [there], *sides[device][place:]):
                if box_size(box):
                    yield index - other, Message(senders[rank % len(senders)], device, box)


def _permute(messages: Sequence[Message], dtype: np.dtype[Any], group: DeviceGroup) -> Collective:
    sizes = [tuple(side.stop - side.start for side in message.box) for message in messages]
    permute = Collective(
        "collective-permute",
        tuple(map(max, zip(*sizes, strict=True))),
        str(dtype),
        pairs=tuple(dict.fromkeys((message.source, message.target) for message in messages)),
        nbytes=sum(box_size(message.box) for message in messages) * dtype.itemsize,
    )
    return timed(permute, group)


def _lacking(box: Box, has: Box | None) -> list[Box]:
    """Give the parts of a box that are not in another."""
    if has is None:
        return [box]
    bounds = [
        (side.start, *(min(max(bound, side.start), side.stop) for bound in (there.start, there.stop)), side.stop)
        for side, there in zip(box, has, strict=True)
    ]
    pieces = [[slice(*pair) for pair in itertools.pairwise(each) if pair[0] < pair[1]] for each in bounds]
    return [part for part in itertools.product(*pieces) if not _within(part, has)]


def _within(box: Box, other: Box) -> bool:
    return all(o.start <= side.start and side.stop <= o.stop for side, o in zip(box, other, strict=True))


def with_neighbours(
    x: Any, layout: Layout, needs: Needs, group: DeviceGroup, given: Any = None
) -> tuple[Sequence[Any], tuple[Box, ...]]:
    """Bring to each device what it needs of an array; nothing moves where memory is shared.

    Parameters
    ----------
    x : ShardedArray or ndarray
        A plain one is on each device.
    layout : Layout
        Which part of it each device has, or is to use.
    needs : tuple of (tuple of ranges or None)
    group : DeviceGroup
    given : ShardedArray or ndarray, optional
        What `x` was brought from. If each device had its part in what it had of that, it has more than its part.

    Returns
    -------
    spaces : sequence of (ndarray or None)
        For each device of this process an array of the whole's shape that has the values there, not to be written to.
    boxes : tuple of Box
        What each device needs of it.

    Examples
    --------
    >>> from ringlet.sharding import Sharding, shard
    >>> x = shard(np.arange(8), Sharding.tiled((2,)))
    >>> spaces, boxes = with_neighbours(x, x._layout, ((((0, 5),), ((3, 8),)),), x._group)
    >>> spaces[1][boxes[1]]
    array([3, 4, 5, 6, 7])
    """
    if not isinstance(x, ShardedArray):
        return (x,) * group.num_devices, plan_exchange(x.shape, x.dtype, layout, needs, group).boxes
    source = given if isinstance(given, ShardedArray) and _has_parts(given._layout, layout, x.shape) else x
    held = None if source._layout == layout else source._layout
    plan = plan_exchange(x.shape, x.dtype, layout, needs, group, held=held)
    note("halo", x, x, plan.collectives)
    if x._whole is not None:
        return (x._whole,) * group.num_devices, plan.boxes
    spaces = spaces_to_receive(source, layout)
    for messages in plan.rounds:
        deliver(group, messages, spaces, spaces)
    return spaces, plan.boxes


@lru_cache(maxsize=1024)
def _has_parts(held: Layout, layout: Layout, shape: tuple[int, ...]) -> bool:
    """Tell whether devices that have something in a layout have at least that in the one they hold."""
    return (
        held.parts == layout.parts
        and {*layout.holders} <= {*held.holders}
        and all(map(_within, layout.boxes(shape), held.boxes(shape)))
    )
