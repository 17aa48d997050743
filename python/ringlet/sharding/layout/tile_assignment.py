"""Which device has which tile: the checks of such a table, and its normal form."""

from __future__ import annotations

import collections
import math
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from ringlet.errors import ShardingError
from ringlet.sharding.layout.partition import whole_number

__all__ = ["MOST_DEVICES", "SUBGROUPS", "Subgroup", "TileAssignment", "checked_devices", "listed_items", "normal_form"]

Subgroup = Literal["manual", "unreduced", "replicated"]
# No machine has more, and a few letters must not ask for all memory.
MOST_DEVICES = 1 << 20
# In the order that XLA gives them.
SUBGROUPS: tuple[Subgroup, ...] = ("manual", "unreduced", "replicated")


class TileAssignment(NamedTuple):
    """Numbers of tiles, the device of each, row-major, and what the last of the dimensions are about."""

    dimensions: tuple[int, ...]
    devices: tuple[int, ...]
    groups: tuple[Subgroup, ...]


def normal_form(dimensions: tuple[int, ...], devices: tuple[int, ...], groups: tuple[Subgroup, ...]) -> TileAssignment:
    """Give the table that all tables become which say the same.

    Groups have no dimension of size 1, each kind has one dimension, they come in one order, and devices with equal
    values are sorted.

    Raises
    ------
    ShardingError
        If there is a group of another kind, or there are more of them than dimensions.

    References
    ----------
    openxla/xla, ``xla/hlo/ir/hlo_sharding.h``, ``HloSharding::Subgroup``.

    Examples
    --------
    >>> normal_form((1, 2, 2, 1), (3, 2, 1, 0), ("replicated", "manual"))
    TileAssignment(dimensions=(1, 2, 2), devices=(2, 3, 0, 1), groups=('replicated',))
    """
    if not groups:
        return TileAssignment(dimensions, devices, ())
    if len(groups) > len(dimensions) or not set(groups) <= set(SUBGROUPS):
        raise ShardingError(
            f"last_tile_dims are {list(groups)} for a tile assignment of {list(dimensions)}: expected one of "
            f"{', '.join(map(repr, SUBGROUPS))} for each dimension beyond those of the tensor"
        )
    ndim = len(dimensions) - len(groups)
    order = sorted(range(len(groups)), key=lambda i: SUBGROUPS.index(groups[i]))
    sizes = {kind: math.prod(dimensions[ndim + i] for i in order if groups[i] == kind) for kind in SUBGROUPS}
    table = np.array(devices).reshape(dimensions).transpose(*range(ndim), *(ndim + i for i in order))
    table = np.sort(table.reshape(*dimensions[:ndim], *sizes.values()), axis=-1)
    kept = tuple(kind for kind, size in sizes.items() if size > 1)
    return TileAssignment(
        (*dimensions[:ndim], *(sizes[kind] for kind in kept)), tuple(table.reshape(-1).tolist()), kept
    )


def listed_items(given: object, expected: str) -> tuple[Any, ...]:
    """Give the items of a list, of which an error says what they were expected to be.

    Raises
    ------
    TypeError
        If it is no list, or a text.
    """
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TypeError(f"expected a list of {expected}, got {given!r}")
    return tuple(given)


def checked_devices(devices: Sequence[int], dimensions: Sequence[int]) -> tuple[int, ...]:
    """Refuse devices that are not one for each tile.

    Raises
    ------
    ShardingError
        If one is no number from 0 on, or listed twice, or there are more or fewer than tiles.
    """
    numbers = tuple(whole for device in devices if (whole := whole_number(device)) is not None and whole >= 0)
    if len(numbers) != len(devices):
        raise ShardingError(f"devices are {list(devices)}: expected their numbers, from 0 on")
    if len(numbers) != math.prod(dimensions):
        raise ShardingError(
            f"there are {len(numbers)} devices for {math.prod(dimensions)} tiles, {list(dimensions)}: expected one for "
            "each tile"
        )
    if len(set(numbers)) != len(numbers):
        twice = collections.Counter(numbers).most_common(1)[0][0]
        raise ShardingError(f"device {twice} is listed {numbers.count(twice)} times: each device has one tile")
    return numbers
