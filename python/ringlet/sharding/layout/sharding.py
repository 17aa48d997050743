"""Sharding: how a tensor is divided into tiles over logical devices."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ringlet.collectives.argument_parsing import shortened
from ringlet.errors import PartitionError, ShardingError
from ringlet.errors.exception_notes import without
from ringlet.sharding.formats.iota import Iota
from ringlet.sharding.layout.layout import tile_bounds
from ringlet.sharding.layout.partition import whole_number
from ringlet.sharding.layout.tile_assignment import MOST_DEVICES, Subgroup, checked_devices, listed_items, normal_form

Kind = Literal["replicated", "maximal", "tuple", "tiled", "manual", "unknown", "unreduced"]

# XLA's OpSharding types, in the order of their numbers, which encoding relies on.
TYPES: dict[Kind, str] = {
    "replicated": "REPLICATED",
    "maximal": "MAXIMAL",
    "tuple": "TUPLE",
    "tiled": "OTHER",
    "manual": "MANUAL",
    "unknown": "UNKNOWN",
    "unreduced": "UNREDUCED",
}


@without(mesh="array.mesh", spec="array.spec, which has the names of axes")
@dataclass(frozen=True)
class Sharding:
    """Division of a tensor over logical devices.

    Created by :meth:`tiled`, :meth:`maximal`, :meth:`replicated` and similar methods, and parsed by :meth:`parse`.
    Shardings are equal if their normal forms are, regardless of spelling and of whether the number of devices is
    recorded.

    Attributes
    ----------
    kind : str
        ``"tiled"``; ``"maximal"``, whole on one logical device; ``"replicated"``, whole on all of them;
        ``"unreduced"``, the sum of the devices' arrays; ``"tuple"``, for several tensors; ``"manual"`` or
        ``"unknown"``, undefined.
    tile_assignment_dimensions : tuple of int
        Number of tiles along each dimension, and sizes of `last_tile_dims`; ``(1,)`` if maximal, ``()`` if not divided.
    tile_assignment_devices : tuple of int
        The logical device of each tile, row-major; ``()`` if not divided.
    num_devices : int or None
        Number of logical devices, if known. Only the text of a tiling records it.
    last_tile_dims : tuple of str
        Relation of devices with the same tile, for each dimension of the tile assignment beyond those of the tensor:
        equal values (``"replicated"``), terms of a sum (``"unreduced"``), or defined by their program (``"manual"``).
    elements : tuple of Sharding
        Shardings of the elements of a tuple.
    shard_group : tuple of (str, int), or None
        ``("as", 3)`` or ``("like", 3)``, used by compilers: tensors of group 3 have the same division.
    lists_devices : bool
        Whether devices are written one by one, although they form a grid.
    unknown_fields : bytes
        Unknown fields of the message that the sharding was parsed from.

    References
    ----------
    openxla/xla, ``xla/xla_data.proto``, ``OpSharding``: fields of the same names have the same meaning. The normal form
    is that of ``HloSharding``: in `last_tile_dims`, no dimension has size 1 and each type occurs once; equivalent
    devices are sorted.

    Examples
    --------
    >>> print(Sharding.tiled((1, 2, 4, 1)))
    {devices=[1,2,4,1]<=[8]}
    >>> Sharding.parse("{devices=[2,2]<=[2,2]T(1,0)}") == Sharding.tiled((2, 2), [0, 2, 1, 3])
    True
    """

    kind: Kind
    tile_assignment_dimensions: tuple[int, ...] = ()
    tile_assignment_devices: tuple[int, ...] = ()
    num_devices: int | None = field(default=None, compare=False)
    last_tile_dims: tuple[Subgroup, ...] = ()
    elements: tuple[Sharding, ...] = ()
    shard_group: tuple[Literal["as", "like"], int] | None = None
    lists_devices: bool = field(default=False, compare=False)
    unknown_fields: bytes = field(default=b"", compare=False)

    def __post_init__(self) -> None:
        if self.num_devices is not None and (whole_number(self.num_devices) or 0) < 1:
            raise ShardingError(f"the number of logical devices must be 1 or more, or None, got {self.num_devices!r}")

    @classmethod
    def tiled(
        cls,
        partition_dimensions: Sequence[int],
        devices: Iterable[int] | None = None,
        *,
        last_tile_dims: Sequence[Subgroup] = (),
    ) -> Sharding:
        """Return the sharding with given numbers of tiles along each dimension.

        Parameters
        ----------
        partition_dimensions : sequence of int
            Number of tiles along each dimension, at least 1, followed by the sizes of the groups of `last_tile_dims`.
        devices : iterable of int, optional
            The logical device of each tile, row-major; by default tile number d is on device d.
        last_tile_dims : sequence of {"replicated", "unreduced", "manual"}, optional
            Relation of devices that differ in one of the last dimensions only.

        Raises
        ------
        PartitionError
            If a number of tiles is not an integer of at least 1.
        ShardingError
            If the number of devices differs from the number of tiles, a device is listed twice, or a group has an
            unknown kind.
        TypeError
            If an argument is not iterable, or is a string.

        Examples
        --------
        >>> Sharding.tiled((2, 2)).tile_assignment
        array([[0, 1],
               [2, 3]])
        >>> print(Sharding.tiled((2, 1, 4), last_tile_dims=["replicated"]))
        {devices=[2,1,4]<=[8] last_tile_dim_replicate}
        """
        given = listed_items(partition_dimensions, "the number of tiles along each dimension, such as (2, 1)")
        parts = tuple(whole for part in given if (whole := whole_number(part)) is not None and whole > 0)
        if len(parts) != len(given):
            raise PartitionError(
                f"the numbers of tiles are {partition_dimensions}: expected 1 or more along each dimension. Write 1 "
                "for a dimension that is not divided"
            )
        if math.prod(parts) > MOST_DEVICES:
            raise ShardingError(f"{list(parts)} gives {math.prod(parts)} tiles: expected at most {MOST_DEVICES}")
        listed = None if devices is None else listed_items(devices, "the device of each tile, such as (1, 0)")
        return _tiled(parts, listed, listed_items(last_tile_dims, "kinds of subgroups, such as 'replicated'"))

    @classmethod
    def maximal(cls, logical_device_id: int, num_devices: int | None = None) -> Sharding:
        """Return the sharding of a tensor that is whole on one logical device.

        Raises
        ------
        ShardingError
            If the device does not exist.

        Examples
        --------
        >>> print(Sharding.maximal(3, 4))
        {maximal device=3}
        """
        device = whole_number(logical_device_id)
        if device is None or device < 0 or (num_devices is not None and device >= num_devices):
            numbers = "of 0 or more" if num_devices is None else f"from 0 to {num_devices - 1}"
            raise ShardingError(f"device {logical_device_id!r} does not exist: expected a number {numbers}")
        return cls("maximal", (1,), (device,), num_devices)

    @classmethod
    def replicated(cls, num_devices: int | None = None) -> Sharding:
        """Return the sharding of a tensor that is whole on all logical devices.

        Examples
        --------
        >>> print(Sharding.replicated(4))
        {replicated}
        """
        return cls("replicated", num_devices=num_devices)

    @classmethod
    def unreduced(cls, num_devices: int | None = None) -> Sharding:
        """Return the sharding of a tensor that is the sum of the logical devices' arrays.

        Examples
        --------
        >>> print(Sharding.unreduced(4))
        {unreduced}
        """
        return cls("unreduced", num_devices=num_devices)

    @classmethod
    def manual(cls, num_devices: int | None = None) -> Sharding:
        """Return the sharding of a tensor that the programs of the logical devices divide.

        Examples
        --------
        >>> print(Sharding.manual(4))
        {manual}
        """
        return cls("manual", num_devices=num_devices)

    @classmethod
    def unknown(cls, num_devices: int | None = None) -> Sharding:
        """Return the undefined sharding.

        Examples
        --------
        >>> print(Sharding.unknown())
        {unknown}
        """
        return cls("unknown", num_devices=num_devices)

    @classmethod
    def of_tuple(cls, elements: Iterable[Sharding]) -> Sharding:
        """Return the sharding of several tensors.

        Raises
        ------
        ShardingError
            If an element is a tuple itself: list the shardings of all tensors in one tuple.
        TypeError
            If an element is not a sharding.

        Examples
        --------
        >>> print(Sharding.of_tuple([Sharding.replicated(2), Sharding.tiled((2,))]))
        {{replicated}, {devices=[2]<=[2]}}
        """
        listed = listed_items(elements, "shardings")
        for element in listed:
            if not isinstance(element, cls):
                raise TypeError(
                    f"expected shardings, got the element {shortened(element)} of type {type(element).__name__}"
                )
            if element.kind == "tuple":
                raise ShardingError(
                    f"a tuple cannot contain the tuple {shortened(element)}: list the shardings of all tensors in one "
                    "tuple"
                )
        return cls("tuple", elements=listed)

    @classmethod
    def parse(cls, text: str, num_devices: int | None = None) -> Sharding:
        """Parse a sharding in the syntax of XLA's programs.

        Parameters
        ----------
        text : str
            With the devices in a list, ``{devices=[2,2]0,2,1,3}``, or as a grid, ``{devices=[2,2]<=[2,2]T(1,0)}``.
        num_devices : int, optional
            Number of logical devices, which only texts of tilings record.

        Returns
        -------
        Sharding
            In normal form, except that a list of devices stays a list.

        Raises
        ------
        ShardingError
            If the text is malformed, lists a device twice, or does not list one device for each tile. XLA's parser
            accepts some of these texts. The message shows the position.

        Examples
        --------
        >>> print(Sharding.parse("{devices=[2,4,1]<=[2,2,2]T(1,0,2) last_tile_dim_replicate}"))
        {devices=[2,4]<=[2,2,2]T(1,0,2)}
        >>> Sharding.parse("{devices=[2,2]0,1,1,3}")
        Traceback (most recent call last):
        ringlet.errors.ShardingError: the text of a sharding is invalid at position 18: device 1 is listed twice
          {devices=[2,2]0,1,1,3}
                            ^
        """
        from ringlet.sharding.formats import hlo_text

        return hlo_text.parse(text, num_devices)

    @classmethod
    def from_serialized(cls, data: bytes, num_devices: int | None = None) -> Sharding:
        """Parse the bytes of an ``OpSharding`` message.

        Parameters
        ----------
        data : bytes
        num_devices : int, optional
            As for :meth:`parse`.

        Raises
        ------
        ShardingError
            If the bytes are not an ``OpSharding`` message, or the message is inconsistent.

        Examples
        --------
        >>> print(Sharding.from_serialized(bytes.fromhex("08031a0202014a0102520100")))
        {devices=[2,1]<=[2]}
        """
        from ringlet.sharding.formats import sharding_proto

        return sharding_proto.parse(data, num_devices)

    def serialized(self) -> bytes:
        """Return the bytes of an ``OpSharding`` message, including unknown fields of a parsed message.

        Examples
        --------
        >>> Sharding.tiled((2, 1)).serialized().hex()
        '08031a0202014a0102520100'
        """
        from ringlet.sharding.formats import sharding_proto

        return sharding_proto.serialize(self)

    @property
    def type(self) -> str:
        """XLA's name for the kind: ``"OTHER"`` means tiled."""
        return TYPES[self.kind]

    @property
    def ndim(self) -> int | None:
        """Number of dimensions of the sharded tensors; None for any number."""
        return len(self.tile_assignment_dimensions) - len(self.last_tile_dims) if self.kind == "tiled" else None

    @property
    def tile_assignment(self) -> NDArray[np.int64]:
        """The logical devices in tile order, with the dimensions of the tile assignment; empty if there is none."""
        devices = np.array(self.tile_assignment_devices, np.int64)
        return devices.reshape(self.tile_assignment_dimensions) if devices.size else devices

    @cached_property
    def iota(self) -> Iota | None:
        """The devices as a grid and the order of its axes; None if they do not have this form."""
        return Iota.of(self.tile_assignment_devices) if self.kind == "tiled" else None

    def slices(self, shape: Sequence[int | None]) -> list[tuple[slice, ...]]:
        """Return the slices of a tensor that the logical devices hold.

        Tiles have equal lengths, except that the last tiles of a dimension are shorter or empty if its size is not a
        multiple of the number of tiles.

        Parameters
        ----------
        shape : sequence of int or None
            Shape of the tensor; dimensions of unknown size are whole.

        Returns
        -------
        list of tuple of slice
            The bounds of each tile, in the order of :attr:`tile_assignment_devices`. Without tiles, the bounds of the
            whole tensor for each device, or once if the number of devices is unknown.

        Raises
        ------
        PartitionError
            As for :meth:`check_shape`.

        Examples
        --------
        >>> Sharding.tiled((2, 1)).slices((5, 3))
        [(slice(0, 3, None), slice(0, 3, None)), (slice(3, 5, None), slice(0, 3, None))]
        """
        if self.kind != "tiled":
            whole = tuple(slice(0, size) for size in shape)
            return [whole] * (1 if self.kind == "maximal" else self.num_devices or 1)
        self.check_shape(shape)
        columns = [
            [slice(None)] * count if size is None else [slice(*bound) for bound in tile_bounds(size, count)]
            for size, count in zip(shape, self.tile_assignment_dimensions, strict=False)
        ]
        copies = math.prod(self.tile_assignment_dimensions[len(shape) :])
        return [tile for tile in itertools.product(*columns) for _ in range(copies)]

    def check_shape(self, shape: Sequence[int | None]) -> None:
        """Check that a shape has the number of dimensions of the sharding.

        Raises
        ------
        PartitionError
            If the numbers of dimensions differ.

        Examples
        --------
        >>> Sharding.tiled((2, 1)).check_shape((6, 3))
        """
        if self.ndim not in (None, len(shape)):
            raise PartitionError(
                f"{self} is for tensors of {self.ndim} dimensions, but shape {tuple(shape)} has {len(shape)}. Pass one "
                "number of tiles for each dimension, 1 for one that is not divided"
            )

    def __str__(self) -> str:
        from ringlet.sharding.formats import hlo_text

        return hlo_text.write(self)

    def __repr__(self) -> str:
        return f"Sharding({self})"


@lru_cache(maxsize=256)  # a step function requests the same sharding in each step
def _tiled(dimensions: tuple[int, ...], devices: tuple[int, ...] | None, types: tuple[Subgroup, ...]) -> Sharding:
    listed = tuple(range(math.prod(dimensions))) if devices is None else checked_devices(devices, dimensions)
    shape, listed, groups = normal_form(dimensions, listed, types)
    if len(listed) == 1 and not (shape and listed == (0,)):
        return Sharding.maximal(listed[0]) if any(listed) else Sharding.replicated(1)
    if len(groups) == 1 and math.prod(shape[:-1]) == 1:
        return Sharding(groups[0], num_devices=len(listed))
    are_all = max(listed) == len(listed) - 1
    return Sharding("tiled", shape, listed, len(listed) if are_all else None, groups)
