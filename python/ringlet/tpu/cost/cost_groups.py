"""Which devices take part in a collective together, and whether they form a box of the torus."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ringlet.tpu.cost.link_traffic import IntArray, Network

__all__ = ["AXES", "Box", "box_of", "groups_of"]

#: Along what a collective of an assignment can go.
AXES = ("replica", "core", "all")


def groups_of(num_replicas: int, num_cores: int, axis: str, groups: Any = None) -> IntArray:
    """Give the devices of each group; device ``replica * num_cores + logical_core`` is that logical core.

    Parameters
    ----------
    num_replicas, num_cores : int
    axis : {"replica", "core", "all"}
        All replicas of one logical core, all logical cores of one replica, or all devices together.
    groups : array of int, shape (groups, members), optional
        The groups themselves, in the place of `axis`.

    Returns
    -------
    ndarray of int64, shape (groups, members)

    Raises
    ------
    ValueError
        If the axis has another name, or the groups are not equally long, name a device that is not there, or name one
        twice.

    Examples
    --------
    >>> groups_of(3, 2, "replica").tolist()
    [[0, 2, 4], [1, 3, 5]]
    """
    devices = np.arange(num_replicas * num_cores, dtype=np.int64).reshape(num_replicas, num_cores)
    if groups is not None:
        return _checked(groups, devices.size)
    if axis not in AXES:
        raise ValueError(
            f"axis is 'replica' (over the replicas of each logical core), 'core' (over the logical cores of each "
            f"replica) or 'all', got {axis!r}. For other groups of devices give groups="
        )
    by_axis: dict[str, IntArray] = {"replica": devices.T, "core": devices, "all": devices.reshape(1, -1)}
    return by_axis[axis]


def _checked(groups: Sequence[Sequence[int]], num_devices: int) -> IntArray:
    lengths = sorted({len(group) for group in groups})
    if len(lengths) != 1 or lengths[0] == 0:
        raise ValueError(f"groups have {lengths or 'no'} members: all groups need equally many devices, at least one")
    found = np.asarray(groups)
    if found.ndim != 2 or found.dtype.kind not in "iu":
        raise ValueError("groups is a list of lists of device numbers (replica * cores per replica + logical core)")
    if (found < 0).any() or (found >= num_devices).any():
        wrong = int(found[(found < 0) | (found >= num_devices)][0])
        raise ValueError(f"groups name device {wrong}, but devices are numbered 0 to {num_devices - 1}")
    if len(np.unique(found)) != found.size:
        numbers, counts = np.unique(found, return_counts=True)
        raise ValueError(f"groups name device {int(numbers[counts > 1][0])} twice: a device is in one group")
    return found.astype(np.int64)


@dataclass(frozen=True, eq=False)
class Box:
    """Groups whose devices sit at every combination of a few coordinates along x, y, z and core.

    Attributes
    ----------
    devices : ndarray, [group, x, y, z, core]
        Ordered by coordinate along each axis.
    closed : tuple of 4 bools
        Whether the members along an axis form a ring: they are evenly spread over an axis of the slice that is one.
    """

    devices: IntArray
    closed: tuple[bool, bool, bool, bool]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Members along x, y, z and core."""
        _, *sizes = self.devices.shape
        return tuple(sizes)

    def rows(self, axis: int) -> IntArray:
        """Give the members along one axis, one row for each combination of the other coordinates and each group."""
        rows: IntArray = np.moveaxis(self.devices, 1 + axis, -1).reshape(-1, self.sizes[axis])
        return rows


def box_of(groups: IntArray, coordinates: IntArray, network: Network) -> Box | None:
    """Give the groups as boxes of equal size, or None if one of them is no box.

    Parameters
    ----------
    groups : ndarray, [group, member]
    coordinates : ndarray, [device, axis]
        x, y, z and core.
    network : Network

    Returns
    -------
    Box or None
    """
    count, size = groups.shape
    where = coordinates[groups]  # [group, member, axis]
    ordered = np.sort(where, axis=1)
    distinct = 1 + (np.diff(ordered, axis=1) != 0).sum(1)  # [group, axis]
    sizes = tuple(int(n) for n in distinct[0])
    if (distinct != distinct[0]).any() or np.prod(sizes) != size:
        return None
    order = np.lexsort(tuple(where[..., axis] for axis in (3, 2, 1, 0)), axis=-1)
    devices = np.take_along_axis(groups, order, 1).reshape(count, *sizes)
    placed = coordinates[devices]  # [group, x, y, z, core, axis]
    closed = []
    for axis in range(4):
        # In a box each coordinate depends on the place along its own axis only.
        along = np.moveaxis(placed[..., axis], 1 + axis, 1).reshape(count, sizes[axis], -1)
        if (along != along[..., :1]).any():
            return None
        closed.append(axis < 3 and network.wrap[axis] and _is_spread(along[..., 0], network.shape[axis]))
    x, y, z, core = closed
    return Box(devices, (x, y, z, core))


def _is_spread(positions: IntArray, length: int) -> bool:
    """Whether positions [group, member] are evenly spread over a ring."""
    size = positions.shape[1]
    steps = np.diff(positions, axis=1, append=positions[:, :1] + length)
    return size > 1 and length % size == 0 and bool((steps == length // size).all())
