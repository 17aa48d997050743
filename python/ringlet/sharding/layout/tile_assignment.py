"""Tile assignment: the table of devices by tile, its checks and its normal form."""

from __future__ import annotations

import collections
import math
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from ringlet.collectives.argument_parsing import shortened
from ringlet.errors import ShardingError
from ringlet.sharding.layout.partition import whole_number

Subgroup = Literal["manual", "unreduced", "replicated"]
# Maximum number of devices: more than any machine has, but few enough that a short text cannot exhaust memory.
MOST_DEVICES = 1 << 20
# Kinds of trailing dimensions, in XLA's order, by which `normal_form` sorts them.
SUBGROUPS: tuple[Subgroup, ...] = ("manual", "unreduced", "replicated")


class TileAssignment(NamedTuple):
    """Tiles along each dimension, the device of each tile in row-major order, and the kinds of trailing dimensions."""

    dimensions: tuple[int, ...]
    devices: tuple[int, ...]
    groups: tuple[Subgroup, ...]


def normal_form(dimensions: tuple[int, ...], devices: tuple[int, ...], groups: tuple[Subgroup, ...]) -> TileAssignment:
    """Return the normal form of a tile assignment; equivalent assignments have the same normal form.

    Of the trailing dimensions, whose kinds are `groups`, those of size 1 are dropped, those of the same kind are
    merged, and kinds are in the order of `SUBGROUPS`; devices with equal values are sorted (openxla/xla,
    ``xla/hlo/ir/hlo_sharding.h``, ``HloSharding::Subgroup``).
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
    """Return the items of an iterable other than a string; `expected` describes them in the error."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TypeError(f"expected a list of {expected}, got {shortened(given)}")
    return tuple(given)


def checked_devices(devices: Sequence[int], dimensions: Sequence[int]) -> tuple[int, ...]:
    """Return the devices as integers; raise ShardingError unless each tile has one device, and each device one tile."""
    numbers = tuple(whole for device in devices if (whole := whole_number(device)) is not None and whole >= 0)
    if len(numbers) != len(devices):
        raise ShardingError(f"devices are {list(devices)}: expected device numbers of 0 or more")
    if len(numbers) != math.prod(dimensions):
        raise ShardingError(
            f"there are {len(numbers)} devices for {math.prod(dimensions)} tiles, {list(dimensions)}: expected one for "
            "each tile"
        )
    if len(set(numbers)) != len(numbers):
        twice = collections.Counter(numbers).most_common(1)[0][0]
        raise ShardingError(f"device {twice} is listed {numbers.count(twice)} times: assign one tile to each device")
    return numbers
