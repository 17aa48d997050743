"""Reshard plan: the steps between two layouts, with the fewest bytes or in the least time."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ringlet.sharding.layout.device_group import DeviceGroup
from ringlet.sharding.layout.layout import Box, Layout, Shape, covers
from ringlet.sharding.resharding.collective_record import Collective, Kind, Message
from ringlet.sharding.resharding.reduction_plan import Reduction, plan_reduction
from ringlet.sharding.resharding.reshard_time import hops_of, timed
from ringlet.sharding.resharding.transfers import Hops, box_size, components, messages_for, needed_boxes, tile_holders


@dataclass(frozen=True)
class Step:
    """A step: boxes of a partial array are combined, then boxes are sent; `collectives` report both."""

    reductions: tuple[Reduction, ...]
    messages: tuple[Message, ...]
    collectives: tuple[Collective, ...]


@dataclass(frozen=True)
class ReshardPlan:
    """Steps from one layout of an array to another."""

    steps: tuple[Step, ...]

    @property
    def collectives(self) -> tuple[Collective, ...]:
        """Reported collectives, in order."""
        return tuple(collective for step in self.steps for collective in step.collectives)

    @property
    def nbytes(self) -> int:
        """Bytes sent by all devices."""
        return sum(collective.nbytes for collective in self.collectives)

    @property
    def seconds(self) -> float:
        """Predicted time in seconds; 0 if unknown."""
        return sum(collective.seconds or 0.0 for collective in self.collectives)


@lru_cache(maxsize=1024)
def plan_reshard(
    shape: Shape, itemsize: int, source: Layout, target: Layout, *, group: DeviceGroup | None = None, dtype: str = ""
) -> ReshardPlan:
    """Plan the steps from one layout of an array to another.

    Each device receives exactly the elements of its new tile that it lacks, which is the minimum number of bytes. If
    `group` has positions in a topology, nearer senders are preferred, and the plan with the shortest predicted time is
    chosen among this plan, plans that change one dimension after another, and a plan via the whole array on each
    device. A partial target gets the values in its first part, unless `source` has the same parts.
    """
    return _planned(_Planner(shape, itemsize, dtype, group), source, target)


@lru_cache(maxsize=4096)
def collectives_for(
    shape: Shape, itemsize: int, source: Layout, target: Layout, *, group: DeviceGroup | None = None, dtype: str = ""
) -> tuple[Collective, ...]:
    """Return the collectives of :func:`plan_reshard`.

    The messages, up to a million for an all-to-all of a thousand devices, are not cached.
    """
    return _planned(_Planner(shape, itemsize, dtype, group), source, target).collectives


def _planned(planner: _Planner, source: Layout, target: Layout) -> ReshardPlan:
    if source.parts == target.parts or not source.is_partial:
        ways = planner.ways(source, target)
    elif not target.is_partial:
        ways = planner.ways_of_parts(source, target)
    else:
        values = source.without_parts()
        ways = iter([ReshardPlan(_planned(planner, source, values).steps + _planned(planner, values, target).steps)])
    return min(ways, key=lambda movement: movement.seconds) if planner.is_placed else next(ways)


class _Planner:
    def __init__(self, shape: Shape, itemsize: int, dtype: str, group: DeviceGroup | None) -> None:
        self._shape = shape
        self._itemsize = itemsize
        self._dtype = dtype
        self._group = group
        self.is_placed = group is not None and group.assignment is not None
        self._hops: Hops = hops_of(group) if self.is_placed and group is not None else None

    def ways(self, source: Layout, target: Layout) -> Iterator[ReshardPlan]:
        """Yield plans between layouts with the same parts, the one with the fewest bytes first."""
        yield ReshardPlan(self._step(source, target))
        for stops in _intermediate_layouts(source, target):
            legs = itertools.pairwise((source, *stops, target))
            yield ReshardPlan(tuple(step for leg in legs for step in self._step(*leg)))

    def ways_of_parts(self, source: Layout, target: Layout) -> Iterator[ReshardPlan]:
        """Yield plans from a partial array to its values, the one with the fewest bytes first."""
        yield self._reduced(source, target)
        if not target.is_replicated and target.only is None:
            whole = Layout.replicated(target.num_devices, target.ndim)
            yield ReshardPlan((*self._reduced(source, whole).steps, *self._step(whole, target)))

    def _step(self, source: Layout, target: Layout) -> tuple[Step, ...]:
        wanted = needed_boxes(target, self._shape)
        if source.parts != target.parts:  # only the first part contains values
            wanted = tuple(None if target.parts.tile_of(device) else box for device, box in enumerate(wanted))
        messages = messages_for(self._shape, source, wanted, self._hops)
        if not messages:
            return ()
        kind = _kind_of(source, target, source.boxes(self._shape), wanted, messages)
        has_pairs = kind in ("collective-permute", "point-to-point")
        collective = Collective(
            kind,
            self._largest(wanted),
            self._dtype,
            () if kind == "collective-permute" else _groups(messages, source.only, target.only),
            tuple(sorted({(m.source, m.target) for m in messages})) if has_pairs else (),
            self._nbytes(messages),
        )
        return (Step((), messages, (self._timed(collective),)),)

    def _reduced(self, source: Layout, target: Layout) -> ReshardPlan:
        plan = plan_reduction(self._shape, source, target)
        incoming = [Message(s, r.device, r.box) for r in plan.reductions for s in r.sources if s != r.device]
        combined, sent = self._nbytes(incoming), self._nbytes(plan.messages)
        last = self._largest(needed_boxes(target, self._shape))
        if plan.kind is not None:
            collectives = [Collective(plan.kind, last, self._dtype, plan.groups, nbytes=combined + sent)]
        else:
            piece = self._largest([reduction.box for reduction in plan.reductions])
            groups = components((m.source, m.target) for m in plan.messages)
            collectives = [
                Collective("reduce-scatter", piece, self._dtype, plan.groups, nbytes=combined),
                Collective("all-gather", last, self._dtype, groups, nbytes=sent),
            ]
        reported = tuple(self._timed(collective) for collective in collectives if collective.nbytes)
        return ReshardPlan((Step(plan.reductions, plan.messages, reported),))

    def _timed(self, collective: Collective) -> Collective:
        return timed(collective, self._group) if self._group is not None else collective

    def _nbytes(self, messages: Sequence[Message]) -> int:
        return sum(box_size(message.box) for message in messages) * self._itemsize

    def _largest(self, boxes: Sequence[Box | None]) -> tuple[int, ...]:
        box = max((box for box in boxes if box is not None), key=box_size, default=())
        return tuple(side.stop - side.start for side in box)


def _groups(messages: Sequence[Message], *first: int | None) -> tuple[tuple[int, ...], ...]:
    """Return the groups of devices that send to each other, in order; devices in `first` lead their groups."""
    groups = components((m.source, m.target) for m in messages)
    return tuple(tuple(sorted(group, key=lambda device: device not in first)) for group in groups)


# Maximum number of orders that are compared; comparing more would cost more than the best order saves.
_MOST_ORDERS = 6


def _intermediate_layouts(source: Layout, target: Layout) -> Iterator[tuple[Layout, ...]]:
    """Yield sequences of intermediate layouts: dimensions change one by one, in several orders, or all become whole."""
    if source.only is not None or target.only is not None:
        return
    changed = [i for i, (a, b) in enumerate(zip(source.cuts, target.cuts, strict=True)) if a != b]
    for order in itertools.islice(itertools.permutations(changed), _MOST_ORDERS):
        stops, cuts = [], list(source.cuts)
        for dimension in order[:-1]:
            cuts[dimension] = target.cuts[dimension]
            stops.append(source.with_cuts(cuts))
        if stops and all(covers((stop.parts, *stop.cuts)) for stop in stops):
            yield tuple(stops)
    whole = source.with_cuts(Layout.replicated(source.num_devices, source.ndim).cuts)
    if whole not in (source, target):
        yield (whole,)


def _kind_of(
    source: Layout, target: Layout, current: Sequence[Box], wanted: Sequence[Box | None], messages: Sequence[Message]
) -> Kind:
    if source.only is not None:
        is_wanted_by_all = target.only is None and all(box == current[source.only] for box in wanted)
        return "broadcast" if is_wanted_by_all else "point-to-point"
    if target.only is not None:
        return "gather"
    count = len(messages)
    is_permutation = len({m.source for m in messages}) == len({m.target for m in messages}) == count
    if is_permutation and all(m.box == wanted[m.target] == current[m.source] for m in messages):
        return "collective-permute"
    senders = {m.source for m in messages}
    if all(
        m.box == current[m.source]
        and wanted[m.source] == wanted[m.target]
        and (m.target in senders or box_size(current[m.target]) == 0)
        for m in messages
    ):
        return "all-gather"
    groups = {device: group[0] for group in components((m.source, m.target) for m in messages) for device in group}
    _, tiles = tile_holders(target)
    receivers = {m.target for m in messages}
    return "all-to-all" if len({(groups[d], tiles[d]) for d in receivers}) == len(receivers) else "point-to-point"
