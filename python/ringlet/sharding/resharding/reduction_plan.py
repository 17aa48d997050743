"""Reduction plan: which device combines which box of a partial array, with the fewest bytes sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ringlet.sharding.layout.layout import Box, Layout, Shape, tile_bounds
from ringlet.sharding.resharding.collective_record import Message
from ringlet.sharding.resharding.transfers import needed_boxes, tile_holders


class Reduction(NamedTuple):
    """A box that one device combines: ``sources[part]`` is the device that sends that part."""

    device: int
    box: Box
    sources: tuple[int, ...]


@dataclass(frozen=True)
class ReductionPlan:
    """Boxes of a partial array, each combined by one device, then messages to other devices that need the results.

    `kind` is the collective of both steps: all-reduce if all devices of a group need the same result, reduce-scatter if
    each needs a different result, None for a reduce-scatter followed by an all-gather.
    """

    reductions: tuple[Reduction, ...]
    messages: tuple[Message, ...]
    groups: tuple[tuple[int, ...], ...]
    kind: Literal["all-reduce", "reduce-scatter"] | None


def plan_reduction(shape: Shape, source: Layout, target: Layout) -> ReductionPlan:
    """Plan which devices combine the parts of an array.

    If several devices need a box, each device combines a piece of the box and sends it to the other devices, including
    devices of other groups, which hold copies of the same parts. If each device has a part, p parts and r receivers
    send (p - 1) + (r - 1) times the box's bytes, which is the minimum.
    """
    holders, _ = tile_holders(source)
    reductions: list[Reduction] = []
    messages: list[Message] = []
    groups: set[tuple[int, ...]] = set()
    is_all_reduce = is_scatter = True
    for (tile, bounds), devices in _receivers(shape, source, target).items():
        copies = [holders[key] for key in ((part, *tile) for part in range(source.parts.count))]
        having = {device for owners in copies for device in owners}
        teams = {device: _part_holders(copies, device) for device in devices}
        groups.update(tuple(sorted(team)) for team in teams.values())
        is_all_reduce &= having == {*devices}
        is_scatter &= having >= {*devices} and len({*teams.values()}) == len(devices)
        members = [device for device in devices if device in having] or devices
        box = tuple(slice(*bound) for bound in bounds)
        for device, piece in zip(members, _pieces(box, len(members)), strict=True):
            if piece is not None:
                reductions.append(Reduction(device, piece, teams[device]))
                messages.extend(Message(device, other, piece) for other in devices if other != device)
    kind: Literal["all-reduce", "reduce-scatter"] | None = "reduce-scatter" if is_scatter else None
    return ReductionPlan(
        tuple(reductions), tuple(messages), tuple(sorted(groups)), "all-reduce" if is_all_reduce else kind
    )


def _part_holders(copies: Sequence[Sequence[int]], device: int) -> tuple[int, ...]:
    """Return, for each part, the device that sends the part to `device`.

    The i-th holder of a part receives each part from the i-th holder of that part, modulo the number of holders; a
    device that holds no part uses its own number as i. This spreads the load over the holders.
    """
    rank = next((owners.index(device) for owners in copies if device in owners), device)
    return tuple(owners[rank % len(owners)] for owners in copies)


Bounds = tuple[tuple[int, int], ...]
Cell = tuple[tuple[int, ...], Bounds]


def _receivers(shape: Shape, source: Layout, target: Layout) -> dict[Cell, list[int]]:
    receivers: dict[Cell, list[int]] = {}
    for device, box in enumerate(needed_boxes(target, shape)):
        if box is not None:
            for cell in _cells(shape, source, box):
                receivers.setdefault(cell, []).append(device)
    return receivers


def _cells(shape: Shape, source: Layout, box: Box) -> list[Cell]:
    found: list[Cell] = [((), ())]
    for size, cut, side in zip(shape, source.cuts, box, strict=True):
        bounds = [(max(begin, side.start), min(end, side.stop)) for begin, end in tile_bounds(size, cut.count)]
        found = [
            ((*tile, index), (*before, bound))
            for tile, before in found
            for index, bound in enumerate(bounds)
            if bound[0] < bound[1]
        ]
    return found


def _pieces(box: Box, count: int) -> Sequence[Box | None]:
    """Divide a box along its longest side; None in place of empty pieces."""
    if not box:
        return [box, *[None] * (count - 1)]
    lengths = [side.stop - side.start for side in box]
    axis = lengths.index(max(lengths))
    start = box[axis].start
    return [
        (*box[:axis], slice(start + begin, start + end), *box[axis + 1 :]) if begin < end else None
        for begin, end in tile_bounds(lengths[axis], count)
    ]
