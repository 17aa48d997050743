"""Device group: the logical devices that an array is divided over."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ringlet.collectives import Member
from ringlet.errors import ShardingError
from ringlet.tpu import DeviceAssignment

if TYPE_CHECKING:
    from ringlet.sharding.layout.mesh import Mesh


@dataclass(frozen=True)
class DeviceGroup:
    """Logical devices, numbered from 0, of one process (`member` is None) or of several.

    Operands of one operation must be on equal groups, or on groups that :meth:`joined` merges. `names` and `mesh` do
    not affect equality. `owner` is the rank of the process that owns each device.
    """

    num_devices: int
    names: tuple[str, ...] = field(compare=False)
    member: Member | None = None
    owner: tuple[int, ...] = ()
    assignment: DeviceAssignment | None = None
    replica: int = 0
    mesh: Mesh | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, num_devices: int) -> DeviceGroup:
        """Return the group of devices 0 to ``num_devices - 1`` of this process (cached)."""
        return _of(num_devices)

    def has(self, device: int) -> bool:
        """Return whether a device belongs to this process."""
        return self.member is None or self.owner[device] == self.member.rank

    @property
    def local_devices(self) -> tuple[int, ...]:
        """The devices of this process, in order."""
        return tuple(filter(self.has, range(self.num_devices)))

    def equals_but_for_replica(self, other: DeviceGroup) -> bool:
        """Return whether the groups are equal, or would be if they had the same replica."""
        return self == other or self == replace(other, replica=self.replica)

    def joined(self, other: DeviceGroup) -> DeviceGroup | None:
        """Return the group of an operation on arrays of both groups; None if such operations are not possible.

        Groups that are equal but for `replica` have a common group: `self` if it has a mesh, else `other`. So have two
        groups of one process with equal numbers of devices, unless both have topology positions: the group with
        positions, if any.
        """
        if self.equals_but_for_replica(other):
            return other if self.mesh is None else self
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
    """Return the common group of an operation's arrays; raise ShardingError if there is none."""
    first: DeviceGroup
    first, *others = (array._group for array in arrays)
    for other in others:
        if other is first:
            continue
        joined = first.joined(other)
        if joined is None:
            raise ShardingError(
                f"{function_name} was given arrays on different device groups: {first}, and {other}. Move one array to "
                "the devices of the other with ringlet.sharding.shard(np.asarray(array), other.sharding), or with "
                "mesh.sharding(...) if the other is on a mesh with member= or assignment="
            )
        first = joined
    return first
