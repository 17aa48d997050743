"""Which device combines which box of a partial array, so that few bytes move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ringlet.sharding.layout.layout import Box, Layout, tile_bounds
from ringlet.sharding.resharding.collective_record import Message
from ringlet.sharding.resharding.transfers import tile_holders, wanted_boxes

__all__ = ["Reduction", "ReductionPlan", "plan_reduction"]


class Reduction(NamedTuple):
    """A box that one device combines: ``sources[part]`` is the device that it has that part from."""

    device: int
    box: Box
    sources: tuple[int, ...]


@dataclass(frozen=True)
class ReductionPlan:
    """How a partial array gets its values.

    Attributes
    ----------
    reductions : tuple of Reduction
        First, boxes are combined, each by one device.
    messages : tuple of Message
        Then they are sent to the other devices that want them.
    groups : tuple of tuple of int
        Devices whose parts are combined.
    kind : {"all-reduce", "reduce-scatter"} or None
        What both together are called: an all-reduce if all devices of a group want what they combine, a reduce-scatter
        if each wants something else. None for a reduce-scatter that an all-gather follows.
    """

    reductions: tuple[Reduction, ...]
    messages: tuple[Message, ...]
    groups: tuple[tuple[int, ...], ...]
    kind: Literal["all-reduce", "reduce-scatter"] | None


def plan_reduction(shape: tuple[int, ...], source: Layout, target: Layout) -> ReductionPlan:
    """Plan how the parts of an array are combined where they are wanted.

    Of what several devices want, each combines a piece, and sends it to the others: also to those of other groups,
    which have copies of the same parts and would combine them to the same. If each has a part of it, for p parts and r
    devices (p - 1) + (r - 1) times its bytes move: it cannot be done with fewer.

    Parameters
    ----------
    shape : tuple of int
    source : Layout
        A partial one.
    target : Layout
        One that is not.

    Returns
    -------
    ReductionPlan

    Examples
    --------
    >>> from ringlet.sharding.layout.layout import Cut, WHOLE
    >>> partial = Layout(2, (WHOLE,), parts=Cut(2, (0, 1)))
    >>> plan = plan_reduction((4,), partial, Layout.replicated(2, 1))
    >>> plan.reductions[1]
    Reduction(device=1, box=(slice(2, 4, None),), sources=(0, 1))
    >>> plan.messages[1]
    Message(source=1, target=0, box=(slice(2, 4, None),))
    """
    holders, _ = tile_holders(source)
    reductions: list[Reduction] = []
    messages: list[Message] = []
    groups: set[tuple[int, ...]] = set()
    is_all_reduce = is_scatter = True
    for (tile, bounds), devices in _receivers(shape, source, target).items():
        copies = [holders[key] for key in ((part, *tile) for part in range(source.parts.count))]
        having = {device for held in copies for device in held}
        teams = {device: _team(copies, device) for device in devices}
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


def _team(copies: Sequence[Sequence[int]], device: int) -> tuple[int, ...]:
    """The devices that a device has parts from: of the copies of each those that are in its own place among them."""
    rank = next((held.index(device) for held in copies if device in held), device)
    return tuple(held[rank % len(held)] for held in copies)


Bounds = tuple[tuple[int, int], ...]
Cell = tuple[tuple[int, ...], Bounds]


def _receivers(shape: tuple[int, ...], source: Layout, target: Layout) -> dict[Cell, list[int]]:
    """The devices that want each box within a tile of the source."""
    receivers: dict[Cell, list[int]] = {}
    for device, box in enumerate(wanted_boxes(target, shape)):
        if box is not None:
            for cell in _cells(shape, source, box):
                receivers.setdefault(cell, []).append(device)
    return receivers


def _cells(shape: tuple[int, ...], source: Layout, box: Box) -> list[Cell]:
    """Tiles of a layout that meet a box, and what of them is in it."""
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
    """Cut a box into pieces along its longest side; None for those that would be empty."""
    if not box:
        return [box, *[None] * (count - 1)]
    lengths = [side.stop - side.start for side in box]
    axis = lengths.index(max(lengths))
    start = box[axis].start
    return [
        (*box[:axis], slice(start + begin, start + end), *box[axis + 1 :]) if begin < end else None
        for begin, end in tile_bounds(lengths[axis], count)
    ]
