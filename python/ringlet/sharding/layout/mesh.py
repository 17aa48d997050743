"""Devices in a grid whose axes have names, and shardings that are written with these."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ringlet.collectives import Member
from ringlet.errors import ShardingError
from ringlet.sharding.layout.device_group import DeviceGroup
from ringlet.sharding.layout.partition import whole_number
from ringlet.sharding.layout.partition_spec import Entry, PartitionSpec
from ringlet.sharding.layout.sharding import Sharding
from ringlet.sharding.layout.tile_assignment import MOST_DEVICES
from ringlet.tpu import DeviceAssignment

__all__ = ["Mesh", "NamedSharding"]


class Mesh:
    """Logical devices in a grid with named axes.

    Meshes of the same axes, devices, processes and places are equal.

    Parameters
    ----------
    axes : mapping of str to int
        Size of each axis by its name, the slowest first.
    devices : array_like of int, optional
        The logical devices, row-major; by default 0, 1, 2, …
    member : Member, optional
        This process's part in the group of processes that have the devices, each of which makes the same mesh. By
        default this process has them all.
    owner : iterable of int, optional
        Rank of the process that has each device, by number of the device. By default all processes have as many, those
        of rank 0 the first.
    assignment : DeviceAssignment, optional
        Places of the devices in a topology: logical device i is logical core i of `replica`. With it, reports predict
        times.
    replica : int, default 0

    Raises
    ------
    ShardingError
        If the axes have no sizes of at least 1, or devices, owners or cores are not as many as the mesh has places.

    References
    ----------
    jax-ml/jax, ``jax.sharding.Mesh``: the same idea; here devices are numbers.

    Examples
    --------
    >>> mesh = Mesh({"x": 4, "y": 2})
    >>> mesh
    Mesh({'x': 4, 'y': 2})
    >>> print(mesh.sharding("y", None).for_ndim(2))
    {devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}
    """

    def __init__(
        self,
        axes: Mapping[str, int],
        devices: ArrayLike | None = None,
        *,
        member: Member | None = None,
        owner: Iterable[int] | None = None,
        assignment: DeviceAssignment | None = None,
        replica: int = 0,
    ) -> None:
        self._names, self._sizes = _checked_axes(axes)
        count = math.prod(self._sizes)
        if count > MOST_DEVICES:
            raise ShardingError(f"a mesh has up to {MOST_DEVICES} devices, and {axes} are {count}")
        self._devices = _checked_devices(devices, count)
        owners = () if member is None else _owners(owner, member.num_ranks, count)
        if owner is not None and member is None:
            raise ShardingError("owner= says which process has a device: give member=, this process's part, too")
        if assignment is not None and assignment.num_cores_per_replica != count:
            raise ShardingError(
                f"the assignment has {assignment.num_cores_per_replica} logical cores in a replica, and {self} has "
                f"{count} devices"
            )
        if assignment is not None and replica not in range(assignment.num_replicas):
            raise ShardingError(
                f"the assignment has replicas 0 to {assignment.num_replicas - 1}, got replica={replica!r}"
            )
        self._member, self._owners, self._assignment, self._replica = member, owners, assignment, replica

    @property
    def shape(self) -> dict[str, int]:
        """Size of each axis by its name."""
        return dict(zip(self._names, self._sizes, strict=True))

    @property
    def devices(self) -> NDArray[np.int64]:
        """The logical devices, with a dimension for each axis."""
        return np.array(self._devices).reshape(self._sizes)

    @cached_property
    def group(self) -> DeviceGroup:
        """The devices, without the grid: arrays of all meshes over one group can meet."""
        group = DeviceGroup.of(math.prod(self._sizes))
        if self._member is None and self._assignment is None:
            return group
        return replace(
            group, member=self._member, owner=self._owners, assignment=self._assignment, replica=self._replica
        )

    def sharding(self, *entries: Entry, unreduced: Iterable[str] = ()) -> NamedSharding:
        """Say which axes cut the dimensions of an array; see :class:`PartitionSpec`.

        Raises
        ------
        ShardingError
            If the mesh has no such axis, or one is named twice.

        Examples
        --------
        >>> Mesh({"x": 4, "y": 2}).sharding("x", None)
        Mesh({'x': 4, 'y': 2}).sharding('x', None)
        """
        return NamedSharding(self, PartitionSpec(*entries, unreduced=unreduced))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mesh) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @cached_property
    def _key(self) -> tuple[object, ...]:
        placed = (self._member, self._owners, self._assignment, self._replica)
        return (self._names, self._sizes, self._devices, placed)

    def __repr__(self) -> str:
        devices = "" if self._devices == tuple(range(len(self._devices))) else f", {self.devices.tolist()}"
        return f"Mesh({self.shape}{devices})"


@dataclass(frozen=True, repr=False)
class NamedSharding:
    """A way to cut arrays of any rank, by the names of a mesh's axes.

    Whatever takes a :class:`Sharding` takes one of these.

    Parameters
    ----------
    mesh : Mesh
    spec : PartitionSpec

    Raises
    ------
    ShardingError
        If the mesh has no axis that the specification names.
    TypeError
        If they are something else.

    Examples
    --------
    >>> sharding = NamedSharding(Mesh({"x": 2, "y": 2}), PartitionSpec(None, "x"))
    >>> print(sharding.for_ndim(3))
    {devices=[1,2,1,2]<=[4] last_tile_dim_replicate}
    """

    mesh: Mesh
    spec: PartitionSpec

    def __post_init__(self) -> None:
        mesh: object = self.mesh
        spec: object = self.spec
        if not isinstance(mesh, Mesh) or not isinstance(spec, PartitionSpec):
            raise TypeError(
                "expected a mesh and a PartitionSpec, NamedSharding(mesh, PartitionSpec('x', None)), got "
                f"{self.mesh!r} and {self.spec!r}"
            )
        for axis in self.spec.axes:
            if axis not in self.mesh.shape:
                raise ShardingError(f"{self.spec} names the axis {axis!r}, and {self.mesh} has no such axis")

    def for_ndim(self, ndim: int) -> Sharding:
        """Give the sharding of arrays of so many dimensions.

        Raises
        ------
        ShardingError
            If the specification has entries for more.
        """
        return _for_ndim(self, ndim)

    def __repr__(self) -> str:
        return f"{self.mesh!r}.sharding{repr(self.spec).removeprefix('PartitionSpec')}"


@lru_cache(maxsize=1024)
def _for_ndim(named: NamedSharding, ndim: int) -> Sharding:
    spec, shape = named.spec, named.mesh.shape
    if len(spec.entries) > ndim:
        raise ShardingError(
            f"{spec} is for arrays of {len(spec.entries)} dimensions or more, and this one has {ndim}: give one entry "
            "for each dimension"
        )
    names = list(shape)
    copied = tuple(axis for axis in names if axis not in spec.axes)
    unreduced = tuple(axis for axis in names if axis in spec.unreduced)
    groups = [*spec.entries, *((),) * (ndim - len(spec.entries)), unreduced, copied]
    sizes = [math.prod(shape[axis] for axis in axes) for axes in groups]
    if math.prod(sizes[:-1]) == 1:
        return Sharding.replicated(math.prod(sizes))
    devices = named.mesh.devices.transpose([names.index(axis) for axes in groups for axis in axes])
    return Sharding.tiled(sizes, devices.reshape(-1).tolist(), last_tile_dims=["unreduced", "replicated"])


def _checked_axes(axes: object) -> tuple[tuple[str, ...], tuple[int, ...]]:
    given: dict[Any, Any] = dict(axes) if isinstance(axes, Mapping) else {}
    names = tuple(given)
    sizes = tuple(whole_number(size) or 0 for size in given.values())
    if not names or min(sizes) < 1 or not all(isinstance(name, str) for name in names):
        raise ShardingError(f'a mesh has the size of each axis by its name, such as {{"x": 4, "y": 2}}, got {axes!r}')
    return names, sizes


def _checked_devices(devices: ArrayLike | None, count: int) -> tuple[int, ...]:
    given = np.arange(count) if devices is None else np.asarray(devices).reshape(-1)
    if sorted(given.tolist()) != list(range(count)):
        raise ShardingError(f"the devices of this mesh are 0 to {count - 1}, each once, got {given.tolist()}")
    return tuple(map(int, given))


def _owners(owner: Iterable[int] | None, num_ranks: int, count: int) -> tuple[int, ...]:
    if owner is None and count % num_ranks:
        raise ShardingError(f"{count} devices are not shared equally by {num_ranks} processes: give owner=")
    owners = tuple(owner) if owner is not None else tuple(device * num_ranks // count for device in range(count))
    if len(owners) != count or not set(owners) <= set(range(num_ranks)):
        raise ShardingError(
            f"owner= has the rank, 0 to {num_ranks - 1}, of the process that has each of {count} devices, got {owners}"
        )
    return owners
