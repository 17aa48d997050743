"""Tile table: the devices of each tile, as tables of rows and columns."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from ringlet.sharding.layout.layout import Layout, Shape, tile_bounds

Bounds = tuple[int, int]


@dataclass(frozen=True)
class Axis:
    """A dimension (None if the array has too few) and the bounds of its non-empty tiles, or of one empty tile."""

    dimension: int | None
    bounds: tuple[Bounds, ...]

    @property
    def heads(self) -> list[str]:
        """The range of each row or column, such as ``0:4``."""
        return ["" if self.dimension is None else f"{begin}:{end}" for begin, end in self.bounds]


@dataclass(frozen=True)
class Cell:
    """A tile and the devices that hold it."""

    devices: tuple[int, ...]

    @property
    def label(self) -> str:
        """Text on the tile."""
        return numbers_in_words(self.devices)

    def short_label(self, longest: int) -> str:
        """Return the label, truncated to a number of characters."""
        return self.label if len(self.label) <= longest else self.label[: longest - 1] + "…"


@dataclass(frozen=True)
class TileTable:
    """Tables of an array's tiles, with two dimensions as rows and columns; one table per tile of the other dimensions.

    A partial array has these tables for each part; every part has the size of the array. `combined` is the participle
    of the combining operation, such as "summed".
    """

    shape: Shape
    layout: Layout
    sharding: str
    combined: str = "summed"

    @property
    def title(self) -> str:
        """One-line title."""
        return f"shape {self.shape}: {self.sharding}"

    @property
    def _part(self) -> str:
        return "summand" if self.combined == "summed" else "part"

    @cached_property
    def _shown_dimensions(self) -> tuple[int | None, int | None]:
        """Return the dimensions of rows and columns: the last two divided dimensions, else adjacent dimensions."""
        ndim = len(self.shape)
        cut = [dimension for dimension in range(ndim) if self.layout.cuts[dimension].count > 1]
        if ndim < 2:
            return None, 0 if ndim else None
        if len(cut) == 1:
            row = min(cut[0], ndim - 2)
            return row, row + 1
        return (cut[-2], cut[-1]) if cut else (ndim - 2, ndim - 1)

    @property
    def rows(self) -> Axis:
        """The dimension drawn from top to bottom."""
        return self._axis(self._shown_dimensions[0])

    @property
    def columns(self) -> Axis:
        """The dimension drawn from left to right."""
        return self._axis(self._shown_dimensions[1])

    @cached_property
    def others(self) -> tuple[Axis, ...]:
        """The other divided dimensions."""
        cuts = enumerate(self.layout.cuts)
        return tuple(self._axis(d) for d, cut in cuts if cut.count > 1 and d not in self._shown_dimensions)

    def _axis(self, dimension: int | None) -> Axis:
        if dimension is None:
            return Axis(None, ((0, 1),))
        bounds = tile_bounds(self.shape[dimension], self.layout.cuts[dimension].count)
        return Axis(dimension, tuple(bound for bound in bounds if bound[0] < bound[1]) or bounds[:1])

    def tables(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Yield the title of each table, and the numbers of its part and of its tiles along the other dimensions."""
        count = self.layout.parts.count
        for part, *tiles in itertools.product(range(count), *(range(len(axis.bounds)) for axis in self.others)):
            places = [f"{self._part} {part + 1} of {count}"] if count > 1 else []
            places += [f"dimension {axis.dimension}, {begin}:{end}" for axis, (begin, end) in self._places(tiles)]
            yield "; ".join(places), (part, *tiles)

    def _places(self, tiles: Sequence[int]) -> Iterator[tuple[Axis, Bounds]]:
        return ((axis, axis.bounds[tile]) for axis, tile in zip(self.others, tiles, strict=True))

    def cell(self, tiles: tuple[int, ...], row: int, column: int) -> Cell:
        """Return a tile and its devices; `tiles` are numbers from :meth:`tables`."""
        place = (*tiles, row, column)
        return self._cells[place]

    @cached_property
    def _cells(self) -> dict[tuple[int, ...], Cell]:
        axes = [axis.dimension for axis in (*self.others, self.rows, self.columns)]
        found: dict[tuple[int, ...], list[int]] = {}
        for device in self.layout.holders:
            tiles = tuple(0 if axis is None else self.layout.cuts[axis].tile_of(device) for axis in axes)
            found.setdefault((self.layout.parts.tile_of(device), *tiles), []).append(device)
        return {tiles: Cell(tuple(devices)) for tiles, devices in found.items()}

    def legend(self) -> Iterator[str]:
        """Yield the lines of explanation below the tables."""
        names = ("rows", self.rows.dimension), ("columns", self.columns.dimension)
        yield "; ".join(["numbers: devices", *(f"{what}: dimension {d}" for what, d in names if d is not None)])
        cells = self._cells.values()
        if any(len(cell.devices) > 1 for cell in cells):
            yield "several devices in one tile: each holds the whole tile"
        if self.layout.is_partial:
            yield f"{self.layout.parts.count} {self._part}s, each as large as the array, have yet to be {self.combined}"
        axes = {axis.dimension for axis in (*self.others, self.rows, self.columns)}
        whole = [f"{d} (0:{size})" for d, size in enumerate(self.shape) if d not in axes]
        if whole:
            yield f"not divided: dimension{'s' * (len(whole) > 1)} {', '.join(whole)}"
        boxes = self.layout.boxes(self.shape)
        nothing = [d for d, box in enumerate(boxes) if any(cut.start == cut.stop for cut in box)]
        if self.layout.only is not None:
            nothing = [device for device in range(self.layout.num_devices) if device != self.layout.only]
        if nothing:
            yield f"without elements: device{'s' * (len(nothing) > 1)} {numbers_in_words(nothing)}"


def numbers_in_words(numbers: Iterable[int]) -> str:
    """Format ascending numbers; a run of three or more is written as its first and last number."""
    words: list[str] = []
    for _, run in itertools.groupby(enumerate(numbers), lambda item: item[1] - item[0]):
        found = [number for _, number in run]
        words += [f"{found[0]}-{found[-1]}"] if len(found) > 2 else map(str, found)
    return ", ".join(words)


def shown(count: int, most: int) -> list[int | None]:
    """Return the indices of items to show out of `count`: the first and the last, with None for omitted items."""
    if count <= most:
        return list(range(count))
    first = most // 2
    last = most - 1 - first
    return [*range(first), None, *range(count - last, count)]
