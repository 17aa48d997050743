"""Layout: the tile of each device along each dimension, as integers from which operations are planned."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import EllipsisType
from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
Box = tuple[slice, ...]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Cut:
    """Division of one dimension into `count` tiles, and the tile of each device; `tile` is empty if `count` is 1."""

    count: int
    tile: tuple[int, ...]

    def tile_of(self, device: int) -> int:
        """Return the index of a device's tile."""
        return self.tile[device] if self.count > 1 else 0


WHOLE = Cut(1, ())


@dataclass(frozen=True)
class Layout:
    """The box of an array that each device holds, derived from a sharding.

    Layouts are compared by their fields, regardless of the text or mesh that they come from, so plans are cached by
    layout. Each combination of tiles is on some device. A partial array is a combination, usually a sum, of
    `parts.count` arrays in the same tiles; `parts` records which of these arrays each device has. `only` is the device
    that holds the whole array alone, if there is one (XLA's maximal sharding).
    """

    num_devices: int
    cuts: tuple[Cut, ...]
    parts: Cut = WHOLE
    only: int | None = None

    def __post_init__(self) -> None:
        # Cached because each operation looks up its plan by layout. All fields are integers, so the hash is the same in
        # all processes.
        only = -1 if self.only is None else self.only
        object.__setattr__(self, "_hash", hash((self.num_devices, self.cuts, self.parts, only)))
        is_whole = self.only is None and self.parts.count == 1 and all(cut.count == 1 for cut in self.cuts)
        object.__setattr__(self, "_is_replicated", is_whole)

    def __hash__(self) -> int:
        return self._hash  # type: ignore[attr-defined, no-any-return]

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Layout) and hash(self) == hash(other) and self.__dict__ == other.__dict__

    @classmethod
    def replicated(cls, num_devices: int, ndim: int) -> Layout:
        """Return the layout of an array that is whole on each device."""
        return cls(num_devices, (WHOLE,) * ndim)

    @property
    def ndim(self) -> int:
        """Number of dimensions of the array."""
        return len(self.cuts)

    @property
    def is_partial(self) -> bool:
        """Return whether the values have yet to be combined."""
        return self.parts.count > 1

    @property
    def is_replicated(self) -> bool:
        """Return whether each device has the whole array with combined values."""
        return self._is_replicated  # type: ignore[attr-defined, no-any-return]

    @property
    def holders(self) -> Sequence[int]:
        """Devices that hold values, in order."""
        return range(self.num_devices) if self.only is None else (self.only,)

    def boxes(self, shape: tuple[int, ...]) -> tuple[Box, ...]:
        """Return each device's box of an array with this shape; slices are empty on devices without values."""
        return _boxes(self, shape)

    def tiles(self, shape: tuple[int, ...]) -> tuple[tuple[int, Box | EllipsisType, bool], ...]:
        """Return each device with values, its box as an index (``...`` if 0-d), and whether others have that box."""
        return _tiles(self, shape)

    def first_holders(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the first device of each distinct (box, part): the devices that compute if memory is shared."""
        return _first_holders(self, shape)

    def without_parts(self) -> Layout:
        """Return the layout with the same tiles and combined values."""
        return self if self.parts.count == 1 else _without_parts(self)

    def with_cuts(self, cuts: Sequence[Cut]) -> Layout:
        """Return this layout with other cuts, on the same devices and with the same parts."""
        return _with_cuts(self, tuple(cuts))


def tile_bounds(size: int, count: int) -> tuple[tuple[int, int], ...]:
    """Return the bounds of tiles of equal length, rounded up; the last tiles may be shorter or empty."""
    length = -(-size // count)
    return tuple((min(i * length, size), min((i + 1) * length, size)) for i in range(count))


@lru_cache(maxsize=4096)
def shared(layout: Layout) -> Layout:
    """Return one object for all equal layouts, so that plan lookups compare them quickly."""
    return layout


@lru_cache(maxsize=4096)
def _without_parts(layout: Layout) -> Layout:
    return shared(replace(layout, parts=WHOLE))


@lru_cache(maxsize=4096)
def _with_cuts(layout: Layout, cuts: tuple[Cut, ...]) -> Layout:
    return shared(replace(layout, cuts=cuts))


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
def _tiles(layout: Layout, shape: tuple[int, ...]) -> tuple[tuple[int, Box | EllipsisType, bool], ...]:
    boxes = layout.boxes(shape)
    bounds = [tuple((s.start, s.stop) for s in box) for box in boxes]
    return tuple(
        # `...` makes NumPy return a 0-d array instead of a scalar.
        (device, boxes[device] or ..., layout.only is None and bounds.count(bounds[device]) > 1)
        for device in layout.holders
    )


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


@lru_cache(maxsize=4096)
def joint(cuts: tuple[Cut, ...]) -> Cut:
    """Return the cut of several dimensions merged into one, in row-major order."""
    cut_ones = [cut for cut in cuts if cut.count > 1]
    if len(cut_ones) < 2:
        return cut_ones[0] if cut_ones else WHOLE
    first, *rest = cut_ones
    minor = joint(tuple(rest))
    tile = tuple(i * minor.count + j for i, j in zip(first.tile, minor.tile, strict=True))
    return Cut(first.count * minor.count, tile)


@lru_cache(maxsize=4096)
def covers(cuts: tuple[Cut, ...]) -> bool:
    """Return whether each combination of tiles is on some device, as an operation requires."""
    together = joint(cuts)
    return len(set(together.tile) or {0}) == math.prod(cut.count for cut in cuts)


@lru_cache(maxsize=4096)
def coarser(cut: Cut, count: int) -> Cut:
    """Return the cut into `count` tiles, each made of consecutive tiles of `cut`; `count` divides ``cut.count``."""
    merged = cut.count // count
    return Cut(count, tuple(tile // merged for tile in cut.tile)) if count > 1 else WHOLE


def divisors(number: int) -> Iterable[int]:
    """Return the divisors of a number in descending order."""
    return (d for d in range(number, 0, -1) if number % d == 0)
