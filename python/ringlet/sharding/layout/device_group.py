"""The logical devices that arrays lie on together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from ringlet.collectives import Member
from ringlet.errors import ShardingError
from ringlet.tpu import DeviceAssignment

__all__ = ["DeviceGroup", "common_group"]


@dataclass(frozen=True)
class DeviceGroup:
    """Logical devices, numbered from 0, of one process or of several.

    Arrays that meet in an operation are on equal groups, or one says more than the other; see :meth:`joined`. Names and
    replicas make no difference: reports alone have them.

    Attributes
    ----------
    num_devices : int
    names : tuple of str, length ``num_devices``
        What reports call them.
    member : Member or None
        This process's part in the group of processes that have the devices; None if this process has them all.
    owner : tuple of int, length ``num_devices``
        Rank of the process that has each device; ``()`` where there is no `member`.
    assignment : DeviceAssignment or None
        Their places in a topology, from which times are predicted.
    replica : int
        Which of the assignment's replicas they are the logical devices of.

    Examples
    --------
    >>> DeviceGroup.of(2).names
    ('device 0', 'device 1')
    """

    num_devices: int
    names: tuple[str, ...] = field(compare=False)
    member: Member | None = None
    owner: tuple[int, ...] = ()
    assignment: DeviceAssignment | None = None
    replica: int = field(default=0, compare=False)

    @classmethod
    def of(cls, num_devices: int) -> DeviceGroup:
        """Give the group of the first devices of this process; the same object each time."""
        return _of(num_devices)

    def has(self, device: int) -> bool:
        """Tell whether a device is of this process."""
        return self.member is None or self.owner[device] == self.member.rank

    @property
    def local_devices(self) -> tuple[int, ...]:
        """The devices of this process, in order."""
        return tuple(filter(self.has, range(self.num_devices)))

    def joined(self, other: DeviceGroup) -> DeviceGroup | None:
        """Give the group that arrays on either are on together; None if they are not.

        A group of as many devices of this process goes with one that has places in a topology besides.
        """
        if self == other:
            return self
        if self.num_devices != other.num_devices or self.member is not None or other.member is not None:
            return None
        if self.assignment is None:
            return other
        return self if other.assignment is None else None

    def __str__(self) -> str:
        processes = len(set(self.owner))
        where = "" if self.member is None else f" of {processes} process{'es' * (processes != 1)}"
        placed = "" if self.assignment is None else f", replica {self.replica} of a device assignment"
        return f"{self.num_devices} devices{where}{placed}"


@lru_cache(maxsize=64)
def _of(num_devices: int) -> DeviceGroup:
    return DeviceGroup(num_devices, tuple(f"device {device}" for device in range(num_devices)))


def common_group(function_name: str, arrays: Iterable[Any]) -> DeviceGroup:
    """Give the group that the arrays of an operation are on.

    Parameters
    ----------
    function_name : str
        What is called, for the message.
    arrays : iterable of ShardedArray
        At least one.

    Raises
    ------
    ShardingError
        If they are on different groups.

    Examples
    --------
    >>> import numpy as np, ringlet
    >>> x = ringlet.sharding.ShardedArray(np.zeros(4), ringlet.sharding.Sharding.tiled((2,)))
    >>> print(common_group("add", [x, x]))
    2 devices
    """
    first: DeviceGroup
    first, *others = (array._group for array in arrays)
    for other in others:
        if other is first:
            continue
        joined = first.joined(other)
        if joined is None:
            raise ShardingError(
                f"{function_name} was given arrays on different device groups: {first}, and {other}. Move one to the "
                "devices of the other: ringlet.sharding.shard(np.asarray(array), other.sharding), or with "
                "mesh.sharding(...) where the other is on a mesh of processes or places"
            )
        first = joined
    return first
