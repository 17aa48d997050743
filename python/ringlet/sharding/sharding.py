"""Where the parts of a tensor are: on which logical devices, and in what tiles."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ringlet.errors import PartitionError
from ringlet.sharding.partition import whole_number

__all__ = ["Sharding"]

Kind = Literal["replicated", "maximal", "tiled"]
# The names that XLA's OpSharding has for them.
_TYPES: dict[Kind, str] = {"replicated": "REPLICATED", "maximal": "MAXIMAL", "tiled": "OTHER"}


@dataclass(frozen=True)
class Sharding:
    """How a tensor lies on the logical devices of a replica.

    Made by :meth:`tiled`, :meth:`maximal` and :meth:`replicated`.

    Attributes
    ----------
    kind : {"tiled", "maximal", "replicated"}
        In tiles, whole on one logical device, or whole on all of them.
    tile_assignment_dimensions : tuple of int
        Number of tiles along each dimension; ``(1,)`` on one device, ``()`` on all.
    tile_assignment_devices : tuple of int
        The logical device of each tile, row-major; ``()`` on all.
    num_devices : int
        Logical devices that there are.

    References
    ----------
    openxla/xla, ``xla/xla_data.proto``, ``OpSharding``: fields of the same names mean the same.

    Examples
    --------
    >>> print(Sharding.tiled((1, 2, 4, 1)))
    {devices=[1,2,4,1]0,1,2,3,4,5,6,7}
    """

    kind: Kind
    tile_assignment_dimensions: tuple[int, ...]
    tile_assignment_devices: tuple[int, ...]
    num_devices: int

    @classmethod
    def tiled(cls, partition_dimensions: Sequence[int]) -> Sharding:
        """Give the sharding in equal tiles, tile number d, row-major, on logical device d.

        Parameters
        ----------
        partition_dimensions : sequence of int
            Number of tiles along each dimension, at least 1.

        Raises
        ------
        PartitionError
            If they are something else.

        Examples
        --------
        >>> Sharding.tiled((2, 2)).tile_assignment
        array([[0, 1],
               [2, 3]])
        """
        parts = tuple(whole for part in partition_dimensions if (whole := whole_number(part)) is not None and whole > 0)
        if len(parts) != len(partition_dimensions):
            raise PartitionError(
                "a tensor is cut into 1 tile or more along each dimension, and the numbers of tiles are "
                f"{partition_dimensions}: write 1 where it is not cut"
            )
        return _tiled(parts)

    @classmethod
    def maximal(cls, logical_device_id: int, num_devices: int) -> Sharding:
        """Give the sharding of a tensor that is on one logical device.

        Examples
        --------
        >>> print(Sharding.maximal(3, 4))
        {maximal device=3}
        """
        return cls("maximal", (1,), (logical_device_id,), num_devices)

    @classmethod
    def replicated(cls, num_devices: int) -> Sharding:
        """Give the sharding of a tensor that is on all logical devices.

        Examples
        --------
        >>> print(Sharding.replicated(4))
        {replicated}
        """
        return cls("replicated", (), (), num_devices)

    @property
    def type(self) -> str:
        """XLA's name of the kind: ``"OTHER"`` is tiled."""
        return _TYPES[self.kind]

    @property
    def tile_assignment(self) -> NDArray[np.int64]:
        """The logical devices in the order of the tiles, an array with a dimension for each of the tensor's."""
        return np.array(self.tile_assignment_devices, np.int64).reshape(self.tile_assignment_dimensions)

    def slices(self, shape: Sequence[int | None]) -> list[tuple[slice, ...]]:
        """Tell which part of a tensor each logical device has that has one.

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
        >>> Sharding.tiled((2, 1)).slices((6, 3))
        [(slice(0, 3, None), slice(0, 3, None)), (slice(3, 6, None), slice(0, 3, None))]
        """
        if self.kind != "tiled":
            whole = tuple(slice(0, size) for size in shape)
            return [whole] * (self.num_devices if self.kind == "replicated" else 1)
        self.check_shape(shape)
        columns = [_cuts(size, count) for size, count in zip(shape, self.tile_assignment_dimensions, strict=True)]
        return list(itertools.product(*columns))

    def check_shape(self, shape: Sequence[int | None]) -> None:
        """Refuse a shape that is not cut into equal tiles.

        Parameters
        ----------
        shape : sequence of int or None
            Of the tensor; dimensions of a size that is not known are not checked.

        Raises
        ------
        PartitionError
            If there are more or fewer dimensions than the sharding is for, or one is not a multiple of its number of
            tiles.

        Examples
        --------
        >>> Sharding.tiled((2, 1)).check_shape((6, 3))
        """
        if self.kind != "tiled":
            return
        parts = self.tile_assignment_dimensions
        if len(parts) != len(shape):
            raise PartitionError(
                f"{self} is for tensors of {len(parts)} dimensions, and shape {tuple(shape)} has {len(shape)}. Give "
                "one number of tiles for each dimension, 1 where it is not cut"
            )
        for dimension, (size, count) in enumerate(zip(shape, parts, strict=True)):
            if size is not None and size % count:
                raise PartitionError(
                    f"{self} cuts dimension {dimension} of shape {tuple(shape)} into {count} equal tiles, and {size} "
                    f"is not a multiple of {count}. Choose a divisor of {size}, or pad the dimension to "
                    f"{-(-size // count) * count} first"
                )

    def __str__(self) -> str:
        if self.kind == "replicated":
            return "{replicated}"
        devices = ",".join(map(str, self.tile_assignment_devices))
        if self.kind == "maximal":
            return f"{{maximal device={devices}}}"
        return f"{{devices=[{','.join(map(str, self.tile_assignment_dimensions))}]{devices}}}"


@lru_cache(maxsize=256)  # a step function asks for the same one in each step
def _tiled(dimensions: tuple[int, ...]) -> Sharding:
    count = math.prod(dimensions)
    return Sharding("tiled", dimensions, tuple(range(count)), count)


def _cuts(size: int | None, count: int) -> list[slice]:
    if size is None:
        return [slice(None)] * count
    length = size // count
    return [slice(i * length, (i + 1) * length) for i in range(count)]
