"""Meshes: grids of devices with named axes, and shardings written with these names."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ringlet.collectives import Member
from ringlet.collectives.argument_parsing import shortened
from ringlet.errors import ShardingError
from ringlet.errors.exception_notes import with_usage
from ringlet.sharding.layout.device_group import DeviceGroup
from ringlet.sharding.layout.partition import whole_number
from ringlet.sharding.layout.partition_spec import SPEC_NAMES, Entry, PartitionSpec
from ringlet.sharding.layout.sharding import Sharding
from ringlet.sharding.layout.tile_assignment import MOST_DEVICES
from ringlet.tpu import DeviceAssignment


class Mesh:
    """Logical devices in a grid with named axes.

    Meshes with the same axes, devices, processes and positions in a topology are equal.

    Parameters
    ----------
    axes : mapping of str to int, or array_like of int
        Size of each axis by its name, slowest-varying first; or, as in JAX, an array of logical devices whose
        dimensions are the axes.
    devices : array_like of int, or names
        Logical devices in row-major order, by default 0, 1, 2, …; if `axes` is an array, the names of the axes.
    axis_names : str or sequence of str, optional
        JAX's keyword for the names of the axes if `axes` is an array; replaces `devices`.
    member : Member, optional
        Membership of this process in the group of processes that own the devices. Every process of the group must make
        the same mesh. By default this process owns all devices.
    owner : iterable of int, optional
        Rank of the process that owns each device, by device number. By default the processes own equal numbers of
        devices in order of their ranks.
    assignment : DeviceAssignment, optional
        Positions of the devices in a topology: logical device i is logical core i of `replica`. Enables predicted times
        in reports.
    replica : int, default 0
        Replica of `assignment` whose cores are used.

    Raises
    ------
    ShardingError
        If an axis size is below 1, the mesh has too many devices, or `devices`, `owner`, `assignment` or `replica` does
        not fit it, or `owner` is given without `member`.

    References
    ----------
    jax-ml/jax, ``jax.sharding.Mesh``: the same concept, but devices are numbers here.

    Examples
    --------
    >>> mesh = Mesh({"x": 4, "y": 2})
    >>> mesh
    Mesh({'x': 4, 'y': 2})
    >>> mesh == Mesh(np.arange(8).reshape(4, 2), ("x", "y"))
    True
    >>> print(mesh.sharding("y", None).for_ndim(2))
    {devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}
    """

    @with_usage("Mesh({'x': 4, 'y': 2})")
    def __init__(
        self,
        axes: Mapping[str, int] | ArrayLike,
        devices: ArrayLike | str | Sequence[str] | None = None,
        *,
        axis_names: str | Sequence[str] | None = None,
        member: Member | None = None,
        owner: Iterable[int] | None = None,
        assignment: DeviceAssignment | None = None,
        replica: int = 0,
    ) -> None:
        axes, devices = _by_name(axes, devices if axis_names is None else axis_names)
        self._names, self._sizes = _checked_axes(axes)
        count = math.prod(self._sizes)
        if count > MOST_DEVICES:
            raise ShardingError(
                f"a mesh has at most {MOST_DEVICES} devices, but axes {self.shape} have {count}: pass smaller axes"
            )
        self._devices = _checked_devices(devices, count)
        owners = () if member is None else _owners(owner, member.num_ranks, count)
        if owner is not None and member is None:
            raise ShardingError("owner= requires member=, this process's member of the group: pass both")
        if assignment is not None and assignment.num_cores_per_replica != count:
            raise ShardingError(
                f"the assignment has {assignment.num_cores_per_replica} logical cores in a replica, but {self} has "
                f"{count} devices: use as many devices as logical cores"
            )
        if assignment is not None and replica not in range(assignment.num_replicas):
            raise ShardingError(
                f"replica={replica!r} does not exist: the assignment has replicas 0 to {assignment.num_replicas - 1}"
            )
        self._member, self._owners, self._assignment, self._replica = member, owners, assignment, replica

    @property
    def shape(self) -> dict[str, int]:
        """Size of each axis by its name."""
        return dict(zip(self._names, self._sizes, strict=True))

    @property
    def axis_names(self) -> tuple[str, ...]:
        """The names of the axes, as in JAX."""
        return self._names

    @property
    def size(self) -> int:
        """The number of devices."""
        return len(self._devices)

    @property
    def devices(self) -> NDArray[np.int64]:
        """The logical devices, with a dimension for each axis."""
        return np.array(self._devices).reshape(self._sizes)

    @cached_property
    def group(self) -> DeviceGroup:
        """The devices as a group; one operation can combine arrays on different meshes with equal groups."""
        return replace(
            DeviceGroup.of(math.prod(self._sizes)),
            member=self._member,
            owner=self._owners,
            assignment=self._assignment,
            replica=self._replica,
            mesh=self,
        )

    def sharding(self, *entries: Entry, unreduced: Iterable[str] = ()) -> NamedSharding:
        """Return a sharding that names the axes of each dimension; see :class:`PartitionSpec`.

        Raises
        ------
        ShardingError
            If the mesh does not have an axis, or an axis is named twice.

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

    def __str__(self) -> str:
        sizes = ", ".join(f"{name}={size}" for name, size in self.shape.items())
        is_moved = self._devices != tuple(range(len(self._devices)))
        return f"Mesh({sizes}{f', devices={self.devices.tolist()}' * is_moved})"

    def _repr_html_(self) -> str:
        from ringlet.values.notebook_repr import facts_table

        return facts_table("Mesh", {**self.shape, "devices": self.devices.tolist()})

    def __repr__(self) -> str:
        devices = "" if self._devices == tuple(range(len(self._devices))) else f", {self.devices.tolist()}"
        return f"Mesh({self.shape}{devices})"


@dataclass(frozen=True, repr=False)
class NamedSharding:
    """Division of arrays along named axes of a mesh, for any number of dimensions.

    Functions of sharded arrays accept it in place of a :class:`Sharding`.

    Parameters
    ----------
    mesh : Mesh
    spec : PartitionSpec
        JAX's PartitionSpec is also accepted.

    Raises
    ------
    ShardingError
        If the mesh does not have an axis of the specification.
    TypeError
        If an argument has the wrong type.

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
        spec: Any = self.spec
        if type(spec).__name__ in SPEC_NAMES and not isinstance(spec, PartitionSpec):  # JAX's PartitionSpec
            if getattr(spec, "reduced", ()):
                raise ShardingError(f"{spec} has reduced axes, which only JAX supports: omit reduced=")
            # JAX refuses to iterate over a PartitionSpec with unreduced axes.
            spec = PartitionSpec(*getattr(spec, "partitions", spec), unreduced=getattr(spec, "unreduced", ()))
            object.__setattr__(self, "spec", spec)
        if not isinstance(mesh, Mesh) or not isinstance(spec, PartitionSpec):
            raise TypeError(
                "expected a mesh and a PartitionSpec, as in NamedSharding(mesh, PartitionSpec('x', None)), got "
                f"{self.mesh!r} and {self.spec!r}"
            )
        for axis in self.spec.axes:
            if axis not in self.mesh.shape:
                raise ShardingError(
                    f"{self.spec} names the axis {axis!r}, which {self.mesh} does not have: name one of "
                    f"{', '.join(map(repr, self.mesh.shape))}"
                )

    def for_ndim(self, ndim: int) -> Sharding:
        """Return the sharding of arrays of `ndim` dimensions.

        Raises
        ------
        ShardingError
            If the specification has more than `ndim` entries.
        """
        return _for_ndim(self, ndim)

    def __repr__(self) -> str:
        return f"{self.mesh!r}.sharding{repr(self.spec).removeprefix('PartitionSpec')}"


@lru_cache(maxsize=1024)
def _for_ndim(named: NamedSharding, ndim: int) -> Sharding:
    spec, shape = named.spec, named.mesh.shape
    if len(spec.entries) > ndim:
        raise ShardingError(
            f"{spec} is for arrays of {len(spec.entries)} dimensions or more, but this array has {ndim}: pass one "
            "entry for each dimension"
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


def _by_name(axes: Any, second: Any) -> tuple[Any, Any]:
    """Return the axes by name and the devices; also accept JAX's form, a grid of devices and the names of its axes."""
    if isinstance(axes, Mapping) and isinstance(second, Mapping):
        raise ShardingError(
            f"a mesh was given two mappings of axes, {shortened(axes)} and {shortened(second)}: expected one, as in "
            f"Mesh({ {**axes, **second} })"
        )
    names = (second,) if isinstance(second, str) else tuple(second) if isinstance(second, Sequence) else ()
    if isinstance(axes, Mapping) and not (names and all(isinstance(name, str) for name in names)):
        return axes, second
    grid = np.asarray(() if isinstance(axes, Mapping) else axes)
    is_grid = grid.dtype.kind in "iu" and grid.ndim == len(names) == len(set(names)) > 0 and grid.size > 0
    if is_grid and all(isinstance(name, str) for name in names):
        return dict(zip(names, grid.shape, strict=True)), grid
    sizes = grid.tolist() if grid.ndim == 1 and grid.dtype.kind in "iu" and grid.size == len(names) > 0 else [4, 2]
    names = names if len(sizes) == len(names) else ("x", "y")
    written = ", ".join(map(str, sizes))
    raise ShardingError(
        f"a mesh was given axes {shortened(axes)} and {shortened(second)}: expected the size of each axis by its name, "
        f"or a grid of device numbers and the name of each of its axes. Write "
        f"Mesh({dict(zip(names, sizes, strict=True))}) "
        f"or Mesh(np.arange({math.prod(sizes)}).reshape({written}), {names})"
    )


def _checked_axes(axes: object) -> tuple[tuple[str, ...], tuple[int, ...]]:
    given: dict[Any, Any] = dict(axes) if isinstance(axes, Mapping) else {}
    names = tuple(given)
    sizes = tuple(whole_number(size) or 0 for size in given.values())
    wrong = [name for name, size in zip(names, sizes, strict=True) if size < 1 or not isinstance(name, str)]
    if not names or wrong:
        where = f" with {wrong[0]!r}: a name is a string, and a size an integer of at least 1" if wrong else ""
        raise ShardingError(
            f'the axes of a mesh must map names to sizes, such as {{"x": 4, "y": 2}}, got {shortened(axes)}{where}'
        )
    return names, sizes


def _checked_devices(devices: ArrayLike | None, count: int) -> tuple[int, ...]:
    given = np.arange(count) if devices is None else np.asarray(devices).reshape(-1)
    if sorted(given.tolist()) != list(range(count)):
        raise ShardingError(f"the devices of this mesh must be 0 to {count - 1}, each once, got {given.tolist()}")
    return tuple(map(int, given))


def _owners(owner: Iterable[int] | None, num_ranks: int, count: int) -> tuple[int, ...]:
    if owner is None and count % num_ranks:
        raise ShardingError(f"{count} devices cannot be divided equally among {num_ranks} processes: pass owner=")
    owners = tuple(owner) if owner is not None else tuple(device * num_ranks // count for device in range(count))
    if len(owners) != count or not set(owners) <= set(range(num_ranks)):
        raise ShardingError(
            f"owner= must list the ranks, 0 to {num_ranks - 1}, of the processes that own the {count} devices, got "
            f"{owners}"
        )
    return owners
