"""Messages that complete the boxes of a layout, and their sizes in bytes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ringlet.sharding.layout.layout import Box, Layout, Shape, joint
from ringlet.sharding.resharding.collective_record import Message

# Distances between devices, indexed [source][target]; None if all are equal.
Hops = Sequence[Sequence[int]] | None
Tile = tuple[int, ...]


def box_size(box: Box) -> int:
    """Return the number of elements of a box."""
    return math.prod([side.stop - side.start for side in box])


def needed_boxes(layout: Layout, shape: Shape) -> tuple[Box | None, ...]:
    """Return the box of each device; None for devices without values."""
    boxes = layout.boxes(shape)
    return (
        boxes
        if layout.only is None
        else tuple(box if device == layout.only else None for device, box in enumerate(boxes))
    )


def tile_holders(layout: Layout) -> tuple[dict[Tile, list[int]], list[Tile | None]]:
    """Return the devices that have each tile, and the tile of each device.

    A tile is given as its part, followed by its number along each dimension.
    """
    axes = (layout.parts, *layout.cuts)
    tiles: list[Tile | None] = [None] * layout.num_devices
    holders: dict[Tile, list[int]] = {}
    for device in layout.holders:
        tile = tiles[device] = tuple(axis.tile_of(device) for axis in axes)
        holders.setdefault(tile, []).append(device)
    return holders, tiles


def messages_for(shape: Shape, source: Layout, wanted: Sequence[Box | None], hops: Hops = None) -> tuple[Message, ...]:
    """Plan messages that complete the box of each device, sending every missing value once.

    The nearest holder of a tile sends it; among equally near holders, the sender and the receiver have the same index
    among the holders of their tiles, so that groups of devices exchange among themselves. Boxes are in global
    coordinates; in a partial array, each device receives elements of its own part.
    """
    holders, tiles = tile_holders(source)
    lengths = [-(-size // cut.count) for size, cut in zip(shape, source.cuts, strict=True)]
    messages = []
    pieces: dict[Tile, list[tuple[Tile, Box]]] = {}  # by part and box, because several devices may need a box
    for device, box in enumerate(wanted):
        if box is None or box_size(box) == 0:
            continue
        own = tiles[device]
        rank = holders[own].index(device) if own is not None else device
        key = (source.parts.tile_of(device), *itertools.chain.from_iterable((side.start, side.stop) for side in box))
        if key not in pieces:
            pieces[key] = _pieces(key[0], box, lengths)
        for tile, piece in pieces[key]:
            if tile != own:
                messages.append(Message(_nearest(holders[tile], device, rank, hops), device, piece))
    return tuple(messages)


def _pieces(part: int, box: Box, lengths: Sequence[int]) -> list[tuple[Tile, Box]]:
    overlaps = (_overlaps(side.start, side.stop, length) for side, length in zip(box, lengths, strict=True))
    return [
        ((part, *(index for index, _ in found)), tuple(side for _, side in found))
        for found in itertools.product(*overlaps)
    ]


@lru_cache(maxsize=4096)
def _overlaps(start: int, stop: int, length: int) -> tuple[tuple[int, slice], ...]:
    return tuple(
        (index, slice(max(start, index * length), min(stop, (index + 1) * length)))
        for index in range(start // length, (stop - 1) // length + 1)
    )


def _nearest(senders: Sequence[int], device: int, rank: int, hops: Hops) -> int:
    if len(senders) == 1:
        return senders[0]
    if hops is not None:
        least = min(hops[sender][device] for sender in senders)
        senders = [sender for sender in senders if hops[sender][device] == least]
    return senders[rank % len(senders)]


def components(pairs: Iterable[tuple[int, int]]) -> tuple[tuple[int, ...], ...]:
    """Return the groups of devices connected by pairs, in order."""
    group_of: dict[int, set[int]] = {}
    for first, second in pairs:
        one, other = group_of.setdefault(first, {first}), group_of.setdefault(second, {second})
        if one is not other:
            small, large = sorted((one, other), key=len)
            large |= small
            group_of.update(dict.fromkeys(small, large))
    return tuple(sorted({tuple(sorted(group)) for group in group_of.values()}))


Integers = NDArray[np.int64]


@lru_cache(maxsize=16384)
def moved_bytes(shape: Shape, itemsize: int, source: Layout, target: Layout) -> int:
    """Return the number of bytes that devices receive to complete their tiles.

    Combining parts costs the bytes of a reduce-scatter and, if several devices need the result, of an all-gather.
    """
    if source == target:
        return 0
    starts, stops = _bounds(target, shape)
    receivers = list(target.holders)
    wanted = int((stops - starts).prod(axis=0)[receivers].sum())
    known = _held_elements(shape, source, target)[receivers]
    if not source.is_partial or target.is_partial:
        return (wanted - int(known.sum())) * itemsize
    # With p parts and r receivers, each element is sent (p - 1) + (r - 1) times, and once more if no receiver has a
    # part.
    size = math.prod(shape)
    tiles = _tiles(target) * source.num_devices + _tiles(source)
    _, first = np.unique(tiles[receivers], return_index=True)
    return (size * (source.parts.count - 2) + wanted + size - int(known[first].sum())) * itemsize


def _held_elements(shape: Shape, source: Layout, target: Layout) -> Integers:
    starts, stops = _bounds(target, shape)
    others_start, others_stop = _bounds(source, shape)
    sides = np.minimum(stops, others_stop) - np.maximum(starts, others_start)
    overlaps: Integers = np.maximum(sides, 0).prod(axis=0)
    if source.only is not None:
        overlaps[np.arange(source.num_devices) != source.only] = 0
    return overlaps


def _tiles(layout: Layout) -> Integers:
    return np.array(joint(layout.cuts).tile or (0,) * layout.num_devices)


@lru_cache(maxsize=1024)
def _bounds(layout: Layout, shape: Shape) -> tuple[Integers, Integers]:
    """Return the bounds of each device's box, [dimension, device]; `layout.only` is ignored."""
    sizes = np.array(shape, np.int64).reshape(-1, 1)
    lengths = -(-sizes // np.array([cut.count for cut in layout.cuts], np.int64).reshape(-1, 1))
    tiles = [cut.tile or (0,) * layout.num_devices for cut in layout.cuts]
    starts = np.array(tiles, np.int64).reshape(-1, layout.num_devices) * lengths
    return np.minimum(starts, sizes), np.minimum(starts + lengths, sizes)
