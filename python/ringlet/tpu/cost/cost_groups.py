"""Groups of devices in a collective, and whether they form boxes of the torus."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ringlet.tpu.cost.link_traffic import IntArray, Network

#: Axes over which a collective of an assignment can run.
AXES = ("replica", "core", "all")


def groups_of(num_replicas: int, num_cores: int, axis: str, groups: Any = None) -> IntArray:
    """Return the devices [group, member], numbered ``replica * num_cores + logical_core``.

    `groups`, if any, replaces `axis` and is checked.
    """
    devices = np.arange(num_replicas * num_cores, dtype=np.int64).reshape(num_replicas, num_cores)
    if groups is not None:
        return _checked(groups, devices.size)
    if axis not in AXES:
        raise ValueError(
            "axis must be 'replica' (over the replicas of each logical core), 'core' (over the logical cores of each "
            f"replica) or 'all', got {axis!r}. For other groups of devices, pass groups="
        )
    by_axis: dict[str, IntArray] = {"replica": devices.T, "core": devices, "all": devices.reshape(1, -1)}
    return by_axis[axis]


def _checked(groups: Sequence[Sequence[int]], num_devices: int) -> IntArray:
    lengths = sorted({len(group) for group in groups})
    if len(lengths) != 1 or lengths[0] == 0:
        sizes = f"groups of {' and '.join(map(str, lengths))} devices" if lengths else "no groups"
        raise ValueError(f"groups must be one or more non-empty lists of devices of equal length, got {sizes}")
    found = np.asarray(groups)
    if found.ndim != 2 or found.dtype.kind not in "iu":
        raise ValueError(
            "groups must be lists of device numbers (replica * cores per replica + logical core), got an array of "
            f"{found.dtype} and shape {found.shape}"
        )
    if (found < 0).any() or (found >= num_devices).any():
        wrong = int(found[(found < 0) | (found >= num_devices)][0])
        raise ValueError(f"groups name device {wrong}, but devices are numbered 0 to {num_devices - 1}")
    if len(np.unique(found)) != found.size:
        numbers, counts = np.unique(found, return_counts=True)
        raise ValueError(f"groups name device {int(numbers[counts > 1][0])} twice: list each device in one group")
    return found.astype(np.int64)


@dataclass(frozen=True, eq=False)
class Box:
    """Groups of equal size, each the Cartesian product of coordinates; `devices` has dimensions group, x, y, z, core.

    Coordinates ascend. An axis is closed if its members form a ring: evenly spaced on a wrapped axis of the slice.
    """

    devices: IntArray
    closed: tuple[bool, bool, bool, bool]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of members along x, y, z and core."""
        _, *sizes = self.devices.shape
        return tuple(sizes)

    def rows(self, axis: int) -> IntArray:
        """Return the members along one axis, a row per group and combination of the other coordinates."""
        rows: IntArray = np.moveaxis(self.devices, 1 + axis, -1).reshape(-1, self.sizes[axis])
        return rows


def box_of(groups: IntArray, coordinates: IntArray, network: Network) -> Box | None:
    """Return groups [group, member] as boxes of equal size, or None if they are not."""
    count, size = groups.shape
    where = coordinates[groups]  # dimensions: group, member, axis
    ordered = np.sort(where, axis=1)
    distinct = 1 + (np.diff(ordered, axis=1) != 0).sum(1)  # dimensions: group, axis
    sizes = tuple(int(n) for n in distinct[0])
    if (distinct != distinct[0]).any() or np.prod(sizes) != size:
        return None
    order = np.lexsort(tuple(where[..., axis] for axis in (3, 2, 1, 0)), axis=-1)
    devices = np.take_along_axis(groups, order, 1).reshape(count, *sizes)
    placed = coordinates[devices]  # dimensions: group, x, y, z, core, axis
    closed = []
    for axis in range(4):
        # In a box each coordinate depends only on the position along its own axis.
        along = np.moveaxis(placed[..., axis], 1 + axis, 1).reshape(count, sizes[axis], -1)
        if (along != along[..., :1]).any():
            return None
        closed.append(axis < 3 and network.wrap[axis] and _is_spread(along[..., 0], network.shape[axis]))
    x, y, z, core = closed
    return Box(devices, (x, y, z, core))


def _is_spread(positions: IntArray, length: int) -> bool:
    """Return whether positions [group, member] are evenly spaced on a ring."""
    size = positions.shape[1]
    steps = np.diff(positions, axis=1, append=positions[:, :1] + length)
    return size > 1 and length % size == 0 and bool((steps == length // size).all())
