"""Which boxes devices send each other, so that each has what it wants."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from functools import lru_cache

from ringlet.sharding.layout.layout import Box, Layout
from ringlet.sharding.resharding.collective_record import Message

__all__ = ["Hops", "box_size", "components", "messages_for", "tile_holders", "wanted_boxes"]

# How far apart devices are, [source][target]; None where all are equally far.
Hops = Sequence[Sequence[int]] | None
Tile = tuple[int, ...]


def box_size(box: Box) -> int:
    """Count the elements of a box.

    Examples
    --------
    >>> box_size((slice(2, 5), slice(0, 2)))
    6
    """
    return math.prod([side.stop - side.start for side in box])


def wanted_boxes(layout: Layout, shape: tuple[int, ...]) -> tuple[Box | None, ...]:
    """Give the box of each device, and None for those that have nothing.

    Examples
    --------
    >>> wanted_boxes(Layout(2, (), only=1), ())
    (None, ())
    """
    boxes = layout.boxes(shape)
    return (
        boxes
        if layout.only is None
        else tuple(box if device == layout.only else None for device, box in enumerate(boxes))
    )


def tile_holders(layout: Layout) -> tuple[dict[Tile, list[int]], list[Tile | None]]:
    """Tell which devices have each tile, and which tile each device has.

    Parameters
    ----------
    layout : Layout

    Returns
    -------
    holders : dict of tuple of int to list of int
        By part and tile along each dimension; devices are in order.
    tiles : list of tuple of int or None
        For each device; None if it has nothing.

    Examples
    --------
    >>> tile_holders(Layout.replicated(2, 1))
    ({(0, 0): [0, 1]}, [(0, 0), (0, 0)])
    """
    axes = (layout.parts, *layout.cuts)
    tiles: list[Tile | None] = [None] * layout.num_devices
    holders: dict[Tile, list[int]] = {}
    for device in layout.holders:
        tile = tiles[device] = tuple(axis.tile_of(device) for axis in axes)
        holders.setdefault(tile, []).append(device)
    return holders, tiles


def messages_for(
    shape: tuple[int, ...], source: Layout, wanted: Sequence[Box | None], hops: Hops = None
) -> tuple[Message, ...]:
    """Plan the messages after which each device has the box that it wants: every value that it lacks is sent once.

    Of several devices that have a tile, the nearest sends it; of those that are equally near, the one that is to the
    tile's holders what the receiver is to those of its own: groups of devices then stay among themselves.

    Parameters
    ----------
    shape : tuple of int
        Of the array.
    source : Layout
        How it lies.
    wanted : sequence of tuple of slice or None
        The box for each device, in coordinates of the whole; may be empty. Of a partial array it gets its own part.
    hops : sequence of sequence of int, optional
        How far apart devices are.

    Returns
    -------
    tuple of Message

    Examples
    --------
    >>> from ringlet.sharding.layout.layout import Cut
    >>> messages_for((4,), Layout(2, (Cut(2, (0, 1)),)), [(slice(0, 3),), (slice(2, 4),)])
    (Message(source=1, target=0, box=(slice(2, 3, None),)),)
    """
    holders, tiles = tile_holders(source)
    lengths = [-(-size // cut.count) for size, cut in zip(shape, source.cuts, strict=True)]
    messages = []
    pieces: dict[Tile, list[tuple[Tile, Box]]] = {}  # of each box that is wanted, on as many devices as it may be
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
    """What a box has of each tile of a part."""
    overlaps = (_overlaps(side.start, side.stop, length) for side, length in zip(box, lengths, strict=True))
    return [
        ((part, *(index for index, _ in found)), tuple(side for _, side in found))
        for found in itertools.product(*overlaps)
    ]


@lru_cache(maxsize=4096)
def _overlaps(start: int, stop: int, length: int) -> tuple[tuple[int, slice], ...]:
    """Which tiles a range meets, and where."""
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
    """Give the groups of devices that pairs join, in order.

    Examples
    --------
    >>> components([(0, 2), (3, 1), (2, 4)])
    ((0, 2, 4), (1, 3))
    """
    group_of: dict[int, set[int]] = {}
    for first, second in pairs:
        one, other = group_of.setdefault(first, {first}), group_of.setdefault(second, {second})
        if one is not other:
            small, large = sorted((one, other), key=len)
            large |= small
            group_of.update(dict.fromkeys(small, large))
    return tuple(sorted({tuple(sorted(group)) for group in group_of.values()}))
