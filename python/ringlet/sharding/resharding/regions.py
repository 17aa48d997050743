"""Arrays assembled from regions of other arrays: which device copies which box from which device."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ringlet.sharding.layout.layout import Box, Layout, Shape
from ringlet.sharding.resharding.collective_record import Collective

Bounds = tuple[tuple[int, int], ...]


class IndexRange(NamedTuple):
    """Indices at equal distances along one dimension: ``start + step * i`` for each i below `length`.

    Negative steps descend; a step of 0 repeats one index `length` times.
    """

    start: int
    step: int
    length: int

    def within(self, begin: int, end: int) -> tuple[int, int]:
        """Return the range of positions whose indices are in ``[begin, end)``."""
        if self.step == 0:
            return (0, self.length) if begin <= self.start < end else (0, 0)
        if self.step > 0:
            low, high = -((self.start - begin) // self.step), -((self.start - end) // self.step)
        else:
            low, high = (self.start - end) // -self.step + 1, (self.start - begin) // -self.step + 1
        low, high = max(low, 0), min(high, self.length)
        return (low, high) if low < high else (0, 0)

    @property
    def key(self) -> slice:
        """Slice that takes the indices; with a step of 0, at most one of them."""
        if self.step == 0:
            return slice(self.start, self.start + min(self.length, 1))
        stop = self.start + self.step * self.length
        return slice(self.start, stop if stop >= 0 else None, self.step) if self.length else slice(0, 0)


class Region(NamedTuple):
    """A box of a result, at `offset`, whose values come from `ranges` of one operand."""

    operand: int
    offset: tuple[int, ...]
    ranges: tuple[IndexRange, ...]


class DeviceBoxes(NamedTuple):
    """Bounds of a region in the result on each device, and each device's part of a partial array.

    The part is -1 for devices without a box: bounds cannot express this, because a 0-d box is never empty.
    """

    boxes: tuple[Bounds, ...]
    parts: tuple[int, ...]


class Copy(NamedTuple):
    """A box of the result, and the device and region that one device copies it from."""

    region: int
    source: int
    target: int
    box: Box


class CopyPlan(NamedTuple):
    """The copies of each device, and the copies between devices with the collectives that report them."""

    of_device: tuple[tuple[Copy, ...], ...]
    messages: tuple[Copy, ...]
    collectives: tuple[Collective, ...]

    @property
    def nbytes(self) -> int:
        """Bytes sent by all devices."""
        return sum(collective.nbytes for collective in self.collectives)


class ArraySpec(NamedTuple):
    """Shape, dtype and layout of an array."""

    shape: Shape
    dtype: np.dtype[Any]
    layout: Layout


@lru_cache(maxsize=4096)
def device_boxes(layout: Layout, shape: Shape) -> DeviceBoxes:
    """Return each device's box of an array."""
    boxes = tuple(tuple((side.start, side.stop) for side in box) for box in layout.boxes(shape))
    devices = range(layout.num_devices)
    return DeviceBoxes(
        boxes, tuple(layout.parts.tile_of(device) if device in layout.holders else -1 for device in devices)
    )


def region_boxes(layout: Layout, shape: Shape, region: Region) -> DeviceBoxes:
    """Return each device's box of a region of an array, in the coordinates of the result."""
    whole = device_boxes(layout, shape)
    boxes = []
    for bounds in whole.boxes:
        sides = [index_range.within(*bound) for index_range, bound in zip(region.ranges, bounds, strict=True)]
        boxes.append(tuple((a + at, b + at) for at, (a, b) in zip(region.offset, sides, strict=True)))
    return DeviceBoxes(tuple(boxes), whole.parts)


Layouts = tuple[Layout, ...]
Shapes = tuple[tuple[int, ...], ...]


@lru_cache(maxsize=4096)
def plan_regions(regions: tuple[Region, ...], layouts: Layouts, shapes: Shapes, spec: ArraySpec) -> CopyPlan:
    """Plan the copies for an array assembled from regions."""
    sources = [region_boxes(layouts[region.operand], shapes[region.operand], region) for region in regions]
    return copies_between(sources, device_boxes(spec.layout, spec.shape), spec.dtype)


@lru_cache(maxsize=4096)
def plan_assignment(
    value: Region, given: ArraySpec, target: Region, written: ArraySpec
) -> tuple[DeviceBoxes, CopyPlan]:
    """Plan the copies for an assignment to a region; return also the boxes of the destination on each device.

    `given` describes the assigned array, `written` the destination.
    """
    places = region_boxes(written.layout, written.shape, target)
    return places, copies_between([region_boxes(given.layout, given.shape, value)], places, given.dtype)


def copies_between(sources: Sequence[DeviceBoxes], target: DeviceBoxes, dtype: np.dtype[Any]) -> CopyPlan:
    """Plan copies: a device uses its own values if it has them; else sources alternate between the holders.

    The boxes of `sources` are disjoint, or equal.
    """
    cells = [_cells(source) for source in sources]
    wanted = _holders(target)
    of_device: list[tuple[Copy, ...]] = []
    for device, (bounds, part) in enumerate(zip(target.boxes, target.parts, strict=True)):
        rank = wanted[bounds, part].index(device) if (bounds, part) in wanted else 0
        copies = []
        for number, cells_of in enumerate(cells):
            for box, holders in _intersections(cells_of.get(part, {}), bounds):
                source = device if device in holders else holders[rank % len(holders)]
                copies.append(Copy(number, source, device, box))
        of_device.append(tuple(copies))
    messages = tuple(copy for copies in of_device for copy in copies if copy.source != copy.target)
    return CopyPlan(tuple(of_device), messages, collectives_of(messages, dtype))


def _holders(device_boxes: DeviceBoxes) -> dict[tuple[Bounds, int], list[int]]:
    holders: dict[tuple[Bounds, int], list[int]] = {}
    for device, (bounds, part) in enumerate(zip(device_boxes.boxes, device_boxes.parts, strict=True)):
        if part >= 0 and all(begin < end for begin, end in bounds):
            holders.setdefault((bounds, part), []).append(device)
    return holders


# The boxes of a part as a tree: bounds along the first dimension, then the next, with the holders as leaves.
Cells = dict[Any, Any]


def _cells(device_boxes: DeviceBoxes) -> Cells:
    cells: Cells = {}
    for (bounds, part), holders in _holders(device_boxes).items():
        place, key = cells, part
        for side in bounds:
            place, key = place.setdefault(key, {}), side  # type: ignore[assignment]
        place[key] = holders
    return cells


def _intersections(cells: Any, bounds: Bounds, sides: Box = ()) -> Iterator[tuple[Box, list[int]]]:
    if not bounds:
        if cells:
            yield sides, cells
        return
    (begin, end), *rest = bounds
    for (start, stop), deeper in cells.items():
        if start < end and begin < stop:
            yield from _intersections(deeper, tuple(rest), (*sides, slice(max(begin, start), min(end, stop))))


def collectives_of(messages: Iterable[Copy], dtype: np.dtype[Any]) -> tuple[Collective, ...]:
    """Describe messages as collectives: broadcasts of boxes that several devices need, and permutations."""
    targets: dict[tuple[int, Bounds], list[Copy]] = {}
    for copy in messages:
        bounds = tuple((side.start, side.stop) for side in copy.box)
        targets.setdefault((copy.source, bounds), []).append(copy)
    several = [copies for copies in targets.values() if len(copies) > 1]
    made = []
    if several:
        groups = tuple((copies[0].source, *(copy.target for copy in copies)) for copies in several)
        sent = [copy for copies in several for copy in copies]
        made.append(Collective("broadcast", _shape(sent), str(dtype), groups, (), _nbytes(sent, dtype)))
    for sent in _permutations(copies[0] for copies in targets.values() if len(copies) == 1):
        pairs = tuple((copy.source, copy.target) for copy in sent)
        made.append(Collective("collective-permute", _shape(sent), str(dtype), (), pairs, _nbytes(sent, dtype)))
    return tuple(made)


def _permutations(messages: Iterable[Copy]) -> list[list[Copy]]:
    """Group messages into rounds in which no device sends or receives twice."""
    rounds: list[list[Copy]] = []
    for copy in messages:
        for sent in rounds:
            if all(copy.source != other.source and copy.target != other.target for other in sent):
                sent.append(copy)
                break
        else:
            rounds.append([copy])
    return rounds


def _shape(copies: Sequence[Copy]) -> tuple[int, ...]:
    columns = zip(*(copy.box for copy in copies), strict=True)
    return tuple(max(side.stop - side.start for side in column) for column in columns)


def _nbytes(copies: Sequence[Copy], dtype: np.dtype[Any]) -> int:
    elements: int = sum(math.prod(side.stop - side.start for side in copy.box) for copy in copies)
    return elements * dtype.itemsize
