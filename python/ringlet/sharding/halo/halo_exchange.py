"""Halo exchange: messages that send each tile the elements that it needs from other tiles."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ringlet.sharding.explain_operations import record_operation
from ringlet.sharding.halo.windows import Needs
from ringlet.sharding.layout.device_group import DeviceGroup
from ringlet.sharding.layout.layout import Box, Layout, Shape, tile_bounds
from ringlet.sharding.resharding.collective_record import Collective, Message
from ringlet.sharding.resharding.reshard import receive_buffers
from ringlet.sharding.resharding.reshard_time import timed
from ringlet.sharding.resharding.tile_transport import deliver
from ringlet.sharding.resharding.transfers import box_size, tile_holders
from ringlet.sharding.sharded_array import ShardedArray


@dataclass(frozen=True)
class Exchange:
    """Plan of a halo exchange: the box around the elements that each device needs, and rounds of messages.

    Each round may forward elements received in earlier rounds; `collectives` has one entry for each dimension and
    distance.
    """

    boxes: tuple[Box, ...]
    rounds: tuple[tuple[Message, ...], ...]
    collectives: tuple[Collective, ...]


@lru_cache(maxsize=1024)
def plan_exchange(
    shape: Shape,
    dtype: np.dtype[Any],
    layout: Layout,
    needs: Needs,
    group: DeviceGroup,
    *,
    held_layout: Layout | None = None,
) -> Exchange:
    """Plan a halo exchange, dimension by dimension.

    Elements received along one dimension are forwarded along the next, so that corners need no separate messages.
    Each device receives from the corresponding holder of another tile (in a partial array, of the same part).
    `held_layout`, if given, has the boxes that devices already hold, which contain the boxes of `layout`.
    """
    has = held_layout.boxes(shape) if held_layout is not None else (None,) * layout.num_devices
    # [device][dimension]: ranges held so far
    sides: list[list[tuple[slice, ...]]] = [[(side,) for side in box] for box in layout.boxes(shape)]
    rounds, collectives = [], []
    for dimension, ranges in enumerate(needs):
        if ranges is None:
            continue
        by_distance: dict[int, list[Message]] = {}
        for distance, (source, target, whole) in _messages(shape, layout, sides, dimension, ranges):
            parts = [Message(source, target, box) for box in _difference(whole, has[target])]
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
    shape: Shape, layout: Layout, sides: list[list[tuple[slice, ...]]], dimension: int, ranges: Any
) -> Iterator[tuple[int, Message]]:
    holders, tiles = tile_holders(layout)
    owned = tile_bounds(shape[dimension], layout.cuts[dimension].count)
    place = dimension + 1  # index 0 of a tile is its part number
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


def _difference(box: Box, has: Box | None) -> list[Box]:
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


def exchange_halo(
    x: Any, layout: Layout, needs: Needs, group: DeviceGroup, given: Any = None
) -> tuple[Sequence[Any], tuple[Box, ...]]:
    """Send each device the elements of an array that it needs; nothing is sent if memory is shared.

    Return, for each device, an array of the whole array's shape with values in its box, not to be written to (None on
    other processes), and the boxes. `given` is `x` before it was resharded: devices may already hold larger boxes of
    `given`, which are then not sent again.
    """
    if not isinstance(x, ShardedArray):
        return (x,) * group.num_devices, plan_exchange(x.shape, x.dtype, layout, needs, group).boxes
    source = given if isinstance(given, ShardedArray) and _has_parts(given._layout, layout, x.shape) else x
    held_layout = None if source._layout == layout else source._layout
    plan = plan_exchange(x.shape, x.dtype, layout, needs, group, held_layout=held_layout)
    record_operation("halo", x, x, plan.collectives)
    if x._whole is not None:
        return (x._whole,) * group.num_devices, plan.boxes
    buffers = receive_buffers(source, layout)
    for messages in plan.rounds:
        deliver(group, messages, buffers, buffers)
    return buffers, plan.boxes


@lru_cache(maxsize=1024)
def _has_parts(held_layout: Layout, layout: Layout, shape: Shape) -> bool:
    return (
        held_layout.parts == layout.parts
        and {*layout.holders} <= {*held_layout.holders}
        and all(map(_within, layout.boxes(shape), held_layout.boxes(shape)))
    )
