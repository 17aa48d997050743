"""Where the parts of a tensor are: on which logical devices, and in what tiles."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ringlet.errors import PartitionError, ShardingError
from ringlet.sharding.formats.iota import Iota
from ringlet.sharding.layout.layout import tile_bounds
from ringlet.sharding.layout.partition import whole_number
from ringlet.sharding.layout.tile_assignment import MOST_DEVICES, Subgroup, checked_devices, listed_items, normal_form

__all__ = ["TYPES", "Kind", "Sharding"]

Kind = Literal["replicated", "maximal", "tuple", "tiled", "manual", "unknown", "unreduced"]

# The names that XLA's OpSharding has for them, by their numbers there.
TYPES: dict[Kind, str] = {
    "replicated": "REPLICATED",
    "maximal": "MAXIMAL",
    "tuple": "TUPLE",
    "tiled": "OTHER",
    "manual": "MANUAL",
    "unknown": "UNKNOWN",
    "unreduced": "UNREDUCED",
}


@dataclass(frozen=True)
class Sharding:
    """How a tensor lies on logical devices.

    Made by :meth:`tiled`, :meth:`maximal`, :meth:`replicated` and their like, and read by :meth:`parse`. Equal if each
    device has the same, whichever way that is written, and whether or not it is said how many devices there are.

    Attributes
    ----------
    kind : str
        ``"tiled"``; ``"maximal"``, whole on one logical device; ``"replicated"``, whole on all of them;
        ``"unreduced"``, the sum of what all of them have; ``"tuple"``, for several tensors; ``"manual"`` or
        ``"unknown"``, where nothing is said.
    tile_assignment_dimensions : tuple of int
        Number of tiles along each dimension, and sizes of `last_tile_dims`; ``(1,)`` on one device, ``()`` on all.
    tile_assignment_devices : tuple of int
        The logical device of each tile, row-major; ``()`` on all.
    num_devices : int or None
        Logical devices that there are, if that is known. A text says it of tilings only.
    last_tile_dims : tuple of str
        What devices do with each other that have the same tile, for each dimension of the tile assignment beyond those
        of the tensor: they have equal values (``"replicated"``), terms of a sum (``"unreduced"``), or what their
        program says (``"manual"``).
    elements : tuple of Sharding
        Of a tuple.
    shard_group : tuple of (str, int), or None
        ``("as", 3)`` or ``("like", 3)``, which compilers use: tensors of group 3 are cut alike.
    lists_devices : bool
        Whether devices are written one by one, where they could be written as a grid too.
    unknown_fields : bytes
        What else the message said that it was read from.

    References
    ----------
    openxla/xla, ``xla/xla_data.proto``, ``OpSharding``: fields of the same names mean the same. The normal form is that
    of ``HloSharding``: no dimensions of size 1 in `last_tile_dims`, each of its types once, equal devices in order.

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
            raise ShardingError(f"the number of logical devices is 1 or more, or None, got {self.num_devices!r}")

    @classmethod
    def tiled(
        cls,
        partition_dimensions: Sequence[int],
        devices: Iterable[int] | None = None,
        *,
        last_tile_dims: Sequence[Subgroup] = (),
    ) -> Sharding:
        """Give the sharding in tiles of one size, on a logical device each.

        Parameters
        ----------
        partition_dimensions : sequence of int
            Number of tiles along each dimension, at least 1, and after them sizes of the groups of `last_tile_dims`.
        devices : iterable of int, optional
            The logical device of each tile, row-major; by default tile number d is on device d.
        last_tile_dims : sequence of {"replicated", "unreduced", "manual"}, optional
            What devices are to each other that differ in one of the last dimensions only.

        Raises
        ------
        PartitionError
            If numbers of tiles are something else.
        ShardingError
            If there are more or fewer devices than tiles, or one twice, or a group is of no such kind.
        TypeError
            If one of these is no list.

        Examples
        --------
        >>> Sharding.tiled((2, 2)).tile_assignment
        array([[0, 1],
               [2, 3]])
        >>> print(Sharding.tiled((2, 1, 4), last_tile_dims=["replicated"]))
        {devices=[2,1,4]<=[8] last_tile_dim_replicate}
        """
        given = listed_items(partition_dimensions, "the number of tiles along each dimension, (2, 1)")
        parts = tuple(whole for part in given if (whole := whole_number(part)) is not None and whole > 0)
        if len(parts) != len(given):
            raise PartitionError(
                "a tensor is cut into 1 tile or more along each dimension, and the numbers of tiles are "
                f"{partition_dimensions}: write 1 where it is not cut"
            )
        if math.prod(parts) > MOST_DEVICES:
            raise ShardingError(f"these are {math.prod(parts)} tiles, {list(parts)}: there are up to {MOST_DEVICES}")
        listed = None if devices is None else listed_items(devices, "the device of each tile, (1, 0)")
        return _tiled(parts, listed, listed_items(last_tile_dims, "kinds of groups"))

    @classmethod
    def maximal(cls, logical_device_id: int, num_devices: int | None = None) -> Sharding:
        """Give the sharding of a tensor that is on one logical device.

        Raises
        ------
        ShardingError
            If there is no such device.

        Examples
        --------
        >>> print(Sharding.maximal(3, 4))
        {maximal device=3}
        """
        device = whole_number(logical_device_id)
        if device is None or device < 0 or (num_devices is not None and device >= num_devices):
            last = "" if num_devices is None else f" to {num_devices - 1}"
            raise ShardingError(f"there is no device {logical_device_id!r}: expected the number of one, 0{last}")
        return cls("maximal", (1,), (device,), num_devices)

    @classmethod
    def replicated(cls, num_devices: int | None = None) -> Sharding:
        """Give the sharding of a tensor that is on all logical devices.

        Examples
        --------
        >>> print(Sharding.replicated(4))
        {replicated}
        """
        return cls("replicated", num_devices=num_devices)

    @classmethod
    def unreduced(cls, num_devices: int | None = None) -> Sharding:
        """Give the sharding of a tensor that is the sum of what all logical devices have.

        Examples
        --------
        >>> print(Sharding.unreduced(4))
        {unreduced}
        """
        return cls("unreduced", num_devices=num_devices)

    @classmethod
    def manual(cls, num_devices: int | None = None) -> Sharding:
        """Give the sharding of a tensor that each logical device's program cuts for itself.

        Examples
        --------
        >>> print(Sharding.manual(4))
        {manual}
        """
        return cls("manual", num_devices=num_devices)

    @classmethod
    def unknown(cls, num_devices: int | None = None) -> Sharding:
        """Give the sharding that says nothing.

        Examples
        --------
        >>> print(Sharding.unknown())
        {unknown}
        """
        return cls("unknown", num_devices=num_devices)

    @classmethod
    def of_tuple(cls, elements: Iterable[Sharding]) -> Sharding:
        """Give the sharding of several tensors.

        Raises
        ------
        ShardingError
            If one of them is for several tensors itself: those of all tensors are listed in one tuple.
        TypeError
            If one is no sharding.

        Examples
        --------
        >>> print(Sharding.of_tuple([Sharding.replicated(2), Sharding.tiled((2,))]))
        {{replicated}, {devices=[2]<=[2]}}
        """
        listed = listed_items(elements, "shardings")
        for element in listed:
            if not isinstance(element, cls):
                raise TypeError(f"expected shardings, got {element!r} of type {type(element).__name__} among them")
            if element.kind == "tuple":
                raise ShardingError(f"a tuple has the sharding of each of its tensors, got {element!r} for one of them")
        return cls("tuple", elements=listed)

    @classmethod
    def parse(cls, text: str, num_devices: int | None = None) -> Sharding:
        """Read a sharding as XLA's programs write it.

        Parameters
        ----------
        text : str
            With the devices in a list, ``{devices=[2,2]0,2,1,3}``, or as a grid, ``{devices=[2,2]<=[2,2]T(1,0)}``.
        num_devices : int, optional
            Logical devices that there are, which only texts of tilings say.

        Returns
        -------
        Sharding
            In normal form, but a list of devices stays one.

        Raises
        ------
        ShardingError
            If the text is not of this form, or lists a device twice, or not as many as there are tiles. XLA's own
            reader lets some of these pass. The message shows the place.

        Examples
        --------
        >>> print(Sharding.parse("{devices=[2,4,1]<=[2,2,2]T(1,0,2) last_tile_dim_replicate}"))
        {devices=[2,4]<=[2,2,2]T(1,0,2)}
        >>> Sharding.parse("{devices=[2,2]0,1,1,3}")
        Traceback (most recent call last):
        ringlet.errors.ShardingError: this is no text of a sharding: at position 18 device 1 is listed for a second time
          {devices=[2,2]0,1,1,3}
                            ^
        """
        from ringlet.sharding.formats import hlo_text

        return hlo_text.parse(text, num_devices)

    @classmethod
    def from_serialized(cls, data: bytes, num_devices: int | None = None) -> Sharding:
        """Read the bytes of an ``OpSharding`` message.

        Parameters
        ----------
        data : bytes
        num_devices : int, optional
            As for :meth:`parse`.

        Raises
        ------
        ShardingError
            If they are no such message, or it makes no sense.

        Examples
        --------
        >>> print(Sharding.from_serialized(bytes.fromhex("08031a0202014a0102520100")))
        {devices=[2,1]<=[2]}
        """
        from ringlet.sharding.formats import sharding_proto

        return sharding_proto.parse(data, num_devices)

    def serialized(self) -> bytes:
        """Give the bytes of an ``OpSharding`` message, with what it said besides if it was read from one.

        Examples
        --------
        >>> Sharding.tiled((2, 1)).serialized().hex()
        '08031a0202014a0102520100'
        """
        from ringlet.sharding.formats import sharding_proto

        return sharding_proto.serialize(self)

    @property
    def type(self) -> str:
        """XLA's name of the kind: ``"OTHER"`` is tiled."""
        return TYPES[self.kind]

    @property
    def ndim(self) -> int | None:
        """Dimensions of the tensors that it is for; None if it is for any."""
        return len(self.tile_assignment_dimensions) - len(self.last_tile_dims) if self.kind == "tiled" else None

    @property
    def tile_assignment(self) -> NDArray[np.int64]:
        """The logical devices in the order of the tiles, with the dimensions of the tile assignment; none on all."""
        devices = np.array(self.tile_assignment_devices, np.int64)
        return devices.reshape(self.tile_assignment_dimensions) if devices.size else devices

    @cached_property
    def iota(self) -> Iota | None:
        """The grid whose axes give the devices in their order, if there is one."""
        return Iota.of(self.tile_assignment_devices) if self.kind == "tiled" else None

    def slices(self, shape: Sequence[int | None]) -> list[tuple[slice, ...]]:
        """Tell which part of a tensor each logical device has that has one.

        Tiles have the same length but the last ones of a dimension, which are shorter where it is no multiple of their
        number, or empty.

        Parameters
        ----------
        shape : sequence of int or None
            Of the tensor; dimensions of a size that is not known are whole.

        Returns
        -------
        list of tuple of slice
            One for each device of :attr:`tile_assignment_devices`, in order of the tiles; for each device if they all
            have the whole.

        Raises
        ------
        PartitionError
            As by :meth:`check_shape`.

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
        """Refuse a shape of more or fewer dimensions than the sharding is for.

        Raises
        ------
        PartitionError
            If that is so.

        Examples
        --------
        >>> Sharding.tiled((2, 1)).check_shape((6, 3))
        """
        if self.ndim not in (None, len(shape)):
            raise PartitionError(
                f"{self} is for tensors of {self.ndim} dimensions, and shape {tuple(shape)} has {len(shape)}. Give "
                "one number of tiles for each dimension, 1 where it is not cut"
            )

    def __str__(self) -> str:
        from ringlet.sharding.formats import hlo_text

        return hlo_text.write(self)

    def __repr__(self) -> str:
        return f"Sharding({self})"


@lru_cache(maxsize=256)  # a step function asks for the same one in each step
def _tiled(dimensions: tuple[int, ...], devices: tuple[int, ...] | None, types: tuple[Subgroup, ...]) -> Sharding:
    listed = tuple(range(math.prod(dimensions))) if devices is None else checked_devices(devices, dimensions)
    shape, listed, groups = normal_form(dimensions, listed, types)
    if len(listed) == 1 and not (shape and listed == (0,)):
        return Sharding.maximal(listed[0]) if any(listed) else Sharding.replicated(1)
    if len(groups) == 1 and math.prod(shape[:-1]) == 1:
        return Sharding(groups[0], num_devices=len(listed))
    are_all = max(listed) == len(listed) - 1
    return Sharding("tiled", shape, listed, len(listed) if are_all else None, groups)
