"""Conversion of shardings to layouts, which operations compute with, and back."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from ringlet.collectives.argument_parsing import shortened
from ringlet.errors import PartitionError, ShardingError
from ringlet.sharding.layout.device_group import DeviceGroup
from ringlet.sharding.layout.layout import WHOLE, Cut, Layout, shared
from ringlet.sharding.layout.mesh import NamedSharding
from ringlet.sharding.layout.sharding import Sharding
from ringlet.sharding.layout.tile_assignment import Subgroup


def layout_of(sharding: Sharding | NamedSharding, ndim: int, num_devices: int | None = None) -> Layout:
    """Return the layout of a sharding; `num_devices` is required if the sharding does not record it."""
    found = _for_ndim(sharding, ndim)
    return shared(_layout(found, ndim, _count(found, num_devices)))


def group_of(sharding: Sharding | NamedSharding, num_devices: int | None = None) -> DeviceGroup:
    """Return the devices of a sharding: the devices of its mesh, or the first devices of this process."""
    if isinstance(sharding, NamedSharding):
        return sharding.mesh.group
    return DeviceGroup.of(_count(_for_ndim(sharding, 0), num_devices))


def _for_ndim(sharding: Sharding | NamedSharding, ndim: int) -> Sharding:
    if isinstance(sharding, NamedSharding):
        return sharding.for_ndim(ndim)
    if not isinstance(sharding, Sharding):
        raise TypeError(
            "expected a Sharding, such as Sharding.tiled((2, 1)) or Sharding.parse(text), or a mesh and its axes, as "
            f"in mesh.sharding('x', None) or NamedSharding(mesh, PartitionSpec('x', None)), got {shortened(sharding)} "
            f"of type {type(sharding).__name__}"
        )
    return sharding


@lru_cache(maxsize=4096)
def _layout(sharding: Sharding, ndim: int, count: int) -> Layout:
    whole = (WHOLE,) * ndim
    if sharding.kind == "replicated":
        return Layout(count, whole)
    if sharding.kind == "maximal":
        return Layout(count, whole, only=sharding.tile_assignment_devices[0])
    if sharding.kind == "unreduced":
        return Layout(count, whole, _cut(count, range(count)))
    if sharding.ndim != ndim:
        raise PartitionError(
            f"{sharding} is for arrays of {sharding.ndim} dimensions, but this array has {ndim}: pass one number of "
            "tiles for each dimension"
        )
    cuts = _axis_cuts(sharding)
    parts = dict(zip(sharding.last_tile_dims, cuts[ndim:], strict=True))
    return Layout(count, cuts[:ndim], parts.get("unreduced", WHOLE))


def _count(sharding: Sharding, num_devices: int | None) -> int:
    if sharding.kind in ("manual", "unknown", "tuple") or "manual" in sharding.last_tile_dims:
        raise ShardingError(
            f"{sharding} does not define which part of an array each device holds"
            + (": pass one of its elements" if sharding.kind == "tuple" else ". Use a tiled or a replicated sharding")
        )
    count = sharding.num_devices if num_devices is None else num_devices
    if count is None:
        raise ShardingError(f"{sharding} does not record the number of devices: pass num_devices=")
    if sharding.num_devices not in (None, count):
        raise ShardingError(
            f"{sharding} is for {sharding.num_devices} devices, but there are {count}: pass another sharding"
        )
    highest = max(sharding.tile_assignment_devices, default=0)
    if highest >= count:
        raise ShardingError(f"{sharding} uses device {highest}, but there are {count} devices, 0 to {count - 1}")
    if sharding.kind == "tiled" and len(sharding.tile_assignment_devices) != count:
        raise ShardingError(
            f"{sharding} has tiles for {len(sharding.tile_assignment_devices)} of {count} devices: assign a tile to "
            "each device"
        )
    return count


def _cut(count: int, tile: range | tuple[int, ...]) -> Cut:
    return Cut(count, tuple(tile)) if count > 1 else WHOLE


def _axis_cuts(sharding: Sharding) -> tuple[Cut, ...]:
    dimensions = sharding.tile_assignment_dimensions
    if not dimensions:  # np.indices fails without dimensions
        return ()
    places = np.argsort(sharding.tile_assignment_devices)
    indices = np.unravel_index(places, dimensions)
    return tuple(_cut(size, tuple(index.tolist())) for size, index in zip(dimensions, indices, strict=True))


@lru_cache(maxsize=4096)
def sharding_of(layout: Layout) -> Sharding:
    """Return the sharding of a layout; raise ShardingError if its tiles have different numbers of copies."""
    count = layout.num_devices
    if layout.only is not None:
        return Sharding.maximal(layout.only, count)
    if layout.is_replicated:
        return Sharding.replicated(count)
    axes = [*layout.cuts, layout.parts]
    sizes = tuple(axis.count for axis in axes)
    copies = count // math.prod(sizes)
    keys = [tuple(axis.tile_of(device) for axis in axes) for device in range(count)]
    devices = sorted(range(count), key=keys.__getitem__)  # stable sort: copies of a tile stay in order
    tiles = [keys[device] for device in devices]
    if copies == 0 or len({*tiles}) * copies != count or any(tiles[i] != tiles[i - i % copies] for i in range(count)):
        raise ShardingError(
            f"no sharding describes the tiles {keys} of devices 0 to {count - 1}, which have different numbers of "
            "copies: reshard the array so that every tile is on the same number of devices"
        )
    subgroups: list[Subgroup] = ["unreduced", "replicated"]
    return Sharding.tiled((*sizes, copies), devices, last_tile_dims=subgroups)
