"""Where the tiles of an array are, as integers that operations compute with."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

__all__ = ["WHOLE", "Box", "Cut", "Layout", "tile_bounds"]

Box = tuple[slice, ...]


@dataclass(frozen=True)
class Cut:
    """How one dimension lies on the devices.

    Attributes
    ----------
    count : int
        Tiles that the dimension is cut into.
    tile : tuple of int
        Which of them each device has; empty where `count` is 1.

    Examples
    --------
    >>> Cut(2, (0, 0, 1, 1)).tile[3]
    1
    """

    count: int
    tile: tuple[int, ...]

    def tile_of(self, device: int) -> int:
        """Which tile a device has."""
        return self.tile[device] if self.count > 1 else 0


WHOLE = Cut(1, ())


@dataclass(frozen=True)
class Layout:
    """Which box of an array each of some devices has: a sharding without its spelling.

    Equal layouts compare equal, whatever text or mesh they came from, so plans are cached by them.

    Attributes
    ----------
    num_devices : int
        Devices are numbered from 0.
    cuts : tuple of Cut
        One for each dimension of the array. Joint cuts cover the array: each combination of tiles is on some device.
    parts : Cut
        The values of a partial array are those of `parts.count` arrays combined (summed, most often), each laid out in
        the same tiles: this says which of them each device has. ``WHOLE`` for an array that has its values.
    only : int or None
        The one device that has the array, whole, if the others have nothing (XLA's maximal sharding).

    Examples
    --------
    >>> layout = Layout(4, (Cut(2, (0, 0, 1, 1)), WHOLE))
    >>> layout.boxes((5, 3))[2]
    (slice(3, 5, None), slice(0, 3, None))
    """

    num_devices: int
    cuts: tuple[Cut, ...]
    parts: Cut = WHOLE
    only: int | None = None

    def __post_init__(self) -> None:
        # Plans are looked up by layouts in each operation. Of numbers alone, so that other processes count the same.
        only = -1 if self.only is None else self.only
        object.__setattr__(self, "_hash", hash((self.num_devices, self.cuts, self.parts, only)))

    def __hash__(self) -> int:
        return self._hash  # type: ignore[attr-defined, no-any-return]

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Layout) and hash(self) == hash(other) and self.__dict__ == other.__dict__

    @classmethod
    def replicated(cls, num_devices: int, ndim: int) -> Layout:
        """Give the layout of an array that is whole on each device."""
        return cls(num_devices, (WHOLE,) * ndim)

    @property
    def ndim(self) -> int:
        """Dimensions of the arrays that it is for."""
        return len(self.cuts)

    @property
    def is_partial(self) -> bool:
        """Whether the values are still to be combined."""
        return self.parts.count > 1

    @property
    def is_replicated(self) -> bool:
        """Whether each device has the whole array, and its values."""
        return self.only is None and self.parts.count == 1 and all(cut.count == 1 for cut in self.cuts)

    @property
    def holders(self) -> Sequence[int]:
        """Devices that have something, in order."""
        return range(self.num_devices) if self.only is None else (self.only,)

    def boxes(self, shape: tuple[int, ...]) -> tuple[Box, ...]:
        """Tell which part of an array of a shape each device has; empty slices on devices that have nothing."""
        return _boxes(self, shape)

    def first_holders(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Give the first device of each distinct (box, part): those that compute where memory is shared."""
        return _first_holders(self, shape)

    def without_parts(self) -> Layout:
        """Give the layout that the same tiles have once their values are combined."""
        return self if self.parts.count == 1 else replace(self, parts=WHOLE)

    def with_cuts(self, cuts: Sequence[Cut]) -> Layout:
        """Give the layout of an array of other dimensions on the same devices, partial as this one is."""
        return replace(self, cuts=tuple(cuts))


def tile_bounds(size: int, count: int) -> tuple[tuple[int, int], ...]:
    """Tell where tiles begin and end: all of the same length, rounded up, but the last ones, which may be empty.

    Examples
    --------
    >>> tile_bounds(9, 4)
    ((0, 3), (3, 6), (6, 9), (9, 9))
    """
    length = -(-size // count)
    return tuple((min(i * length, size), min((i + 1) * length, size)) for i in range(count))


@lru_cache(maxsize=4096)
def _boxes(layout: Layout, shape: tuple[int, ...]) -> tuple[Box, ...]:
    if layout.only is not None:
        whole = tuple(slice(0, size) for size in shape)
        nothing = tuple(slice(0, 0) for _ in shape)
        return tuple(whole if device == layout.only else nothing for device in range(layout.num_devices))
    columns = []
    for size, cut in zip(shape, layout.cuts, strict=True):
        bounds = [slice(*bound) for bound in tile_bounds(size, cut.count)]
        columns.append([bounds[cut.tile_of(device)] for device in range(layout.num_devices)])
    return tuple(zip(*columns, strict=True)) if columns else ((),) * layout.num_devices


@lru_cache(maxsize=4096)
def _first_holders(layout: Layout, shape: tuple[int, ...]) -> tuple[int, ...]:
    if layout.only is not None:
        return (layout.only,)
    boxes = layout.boxes(shape)
    seen: dict[tuple[int, ...], int] = {}
    for device in range(layout.num_devices):
        bounds = itertools.chain.from_iterable((s.start, s.stop) for s in boxes[device])
        seen.setdefault((layout.parts.tile_of(device), *bounds), device)
    return tuple(seen.values())
