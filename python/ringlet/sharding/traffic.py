"""How many bytes it takes to bring an array from one layout to another, whatever carries them."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from ringlet.sharding.layout import Box, Layout

__all__ = ["moved_bytes"]


@lru_cache(maxsize=16384)
def moved_bytes(shape: tuple[int, ...], itemsize: int, source: Layout, target: Layout) -> int:
    """Count the bytes that devices have to be sent: of their tile, what they do not have yet.

    Parts that are combined cost what a reduce-scatter and, where several devices want the result, an all-gather send.

    Examples
    --------
    >>> from ringlet.sharding.layout import WHOLE, Cut
    >>> rows = Layout(2, (Cut(2, (0, 1)), WHOLE))
    >>> moved_bytes((4, 4), 8, rows, Layout.replicated(2, 2))
    128
    >>> moved_bytes((4, 4), 8, Layout(2, (WHOLE, WHOLE), Cut(2, (0, 1))), rows)
    128
    """
    if source == target:
        return 0
    wanted = target.boxes(shape)
    if source.is_partial and not target.is_partial:
        volumes = {_key(wanted[device]): _volume(wanted[device]) for device in target.holders}
        combined = sum(volumes.values()) * (source.parts.count - 1)
        copies = sum(_volume(wanted[device]) for device in target.holders) - sum(volumes.values())
        return (combined + copies + _unknown_to_receivers(shape, source, target)) * itemsize
    held = source.boxes(shape)
    have_values = frozenset(source.holders)
    missing = 0
    for device in target.holders:
        missing += _volume(wanted[device])
        if device in have_values:
            missing -= _overlap(wanted[device], held[device])
    return missing * itemsize


def _unknown_to_receivers(shape: tuple[int, ...], source: Layout, target: Layout) -> int:
    """Count the elements of which none of the devices that want their combined value has a part: one sends it more."""
    wanted, held = target.boxes(shape), source.boxes(shape)
    known: dict[Any, dict[Any, int]] = {}
    for device in target.holders:
        tiles = known.setdefault(_key(wanted[device]), {})
        tiles[_key(held[device])] = _overlap(wanted[device], held[device])
    volumes = {_key(wanted[device]): _volume(wanted[device]) for device in target.holders}
    return sum(volumes[box] - sum(tiles.values()) for box, tiles in known.items())


def _key(box: Box) -> tuple[tuple[int, int], ...]:
    return tuple((side.start, side.stop) for side in box)


def _volume(box: Box) -> int:
    return math.prod(side.stop - side.start for side in box)


def _overlap(a: Box, b: Box) -> int:
    return math.prod(max(0, min(i.stop, j.stop) - max(i.start, j.start)) for i, j in zip(a, b, strict=True))
