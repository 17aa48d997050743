"""Schedules of collectives: the order of messages, for rings, lines, boxes of a torus, and distant partners.

A schedule is a list of sequential *stages*. A stage is a tuple of concurrent
:class:`~ringlet.tpu.cost.cost_messages.Traffic`: a stage takes the time of its busiest link plus the latency of its
messages.

``V`` is the size of the full array in bytes: the result of an all-gather, the input of a reduce-scatter, each copy of
an all-reduce. ``N`` is the size of a group.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ringlet.tpu.cost.cost_fabric import Fabric
from ringlet.tpu.cost.cost_groups import Box
from ringlet.tpu.cost.cost_messages import Exchange, HostTraffic, Messages, Multicast, Traffic
from ringlet.tpu.cost.link_traffic import IntArray

Stage = tuple[Traffic, ...]


class UnfitError(ValueError):
    """The algorithm does not apply to these groups."""


@dataclass(frozen=True, eq=False)
class Plan:
    """Input of a schedule: groups of devices, also as boxes if they form boxes, and ``V`` = `nbytes`."""

    groups: IntArray
    box: Box | None
    nbytes: float
    fabric: Fabric
    shift: int = 1
    root: int = 0
    target: int = 1

    @property
    def size(self) -> int:
        """Number of devices in a group, ``N``."""
        return len(self.groups[0])


def schedule(collective: str, algorithm: str, plan: Plan) -> list[Stage]:
    """Return the stages of a collective, none for a group of one; raise UnfitError if the algorithm does not apply."""
    if plan.size == 1:
        return []
    if collective == "all_reduce" and algorithm in _BY_SHARDS:
        by_shards = _BY_SHARDS[algorithm]
        return [*by_shards(plan, False), *by_shards(plan, True)]
    if collective in ("all_gather", "reduce_scatter"):
        return (_BY_SHARDS | _SHARDS_OF_PARTNERS)[algorithm](plan, collective == "all_gather")
    return _OTHERS[collective, algorithm](plan)


# --- rings and lines ------------------------------------------------------------------------------------------------


def ring(rows: IntArray, nbytes: float, part: int = 0, *, total: int = 0, is_plain: bool = False) -> Messages:
    """Return a ring all-gather or reduce-scatter in which whole shards move in both directions.

    Between neighbours ``(N-1)/2`` shards of ``V/N`` move each way, in ``ceil((N-1)/2)`` steps; for even ``N`` the last
    step moves half a shard each way.
    """
    size = rows.shape[1]
    source = np.concatenate([rows, rows]).ravel()
    target = np.concatenate([np.roll(rows, -1, 1), np.roll(rows, 1, 1)]).ravel()
    unit = (size - 1) / 2 * nbytes / size
    return Messages(source, target, unit, None, size // 2, part, _growth(total or size), is_plain=is_plain)


def line(
    rows: IntArray, nbytes: float, gather: bool, part: int = 0, *, total: int = 0, is_plain: bool = False
) -> Messages:
    """Return an all-gather or reduce-scatter along an open line, both ways, in ``N-1`` steps.

    In an all-gather the link from member ``i`` to the next carries the shards of members ``0 ... i``, and the
    reverse link carries the other shards; in a reduce-scatter, the two links are exchanged.
    """
    size = rows.shape[1]
    behind = np.arange(1, size)
    up, down = (behind, size - behind) if gather else (size - behind, behind)
    source = np.concatenate([rows[:, :-1], rows[:, 1:]]).ravel()
    target = np.concatenate([rows[:, 1:], rows[:, :-1]]).ravel()
    weight = np.concatenate([np.tile(up, len(rows)), np.tile(down, len(rows))])
    growth = _growth(total or size)
    return Messages(source, target, nbytes / size, weight, size - 1, part, growth, is_plain=is_plain)


def _growth(size: int) -> float:
    """Return the ratio of asymptotic bytes, which omit ``(N-1)/N``, to exact bytes, for a group of ``N`` = `size`."""
    return size / (size - 1)


def _ring(plan: Plan, gather: bool) -> list[Stage]:
    return [(ring(plan.groups, plan.nbytes),)]


def _line(plan: Plan, gather: bool) -> list[Stage]:
    return [(line(plan.groups, plan.nbytes, gather),)]


# --- boxes of a torus -----------------------------------------------------------------------------------------------


def _box(plan: Plan) -> Box:
    if plan.box is None:
        raise UnfitError("the devices of a group do not form a box of the torus")
    return plan.box


def _along(box: Box, axis: int, nbytes: float, gather: bool, part: int = 0) -> Messages:
    total = math.prod(box.sizes)
    if box.closed[axis]:
        return ring(box.rows(axis), nbytes, part, total=total, is_plain=True)
    return line(box.rows(axis), nbytes, gather, part, total=total, is_plain=True)


def _axes_by_speed(plan: Plan, box: Box) -> list[int]:
    """Return the axes with several members, fastest first: the first axis moves the most bytes."""
    fabric = plan.fabric
    link = fabric.bytes_per_second[: fabric.num_links].max(initial=0.0)
    speeds = [link * (2 if closed else 1) for closed in box.closed[:3]]
    speeds.append(float(fabric.bytes_per_second[fabric.num_links]))
    return sorted((axis for axis in range(4) if box.sizes[axis] > 1), key=lambda axis: -speeds[axis])


def _sequential(plan: Plan, gather: bool) -> list[Stage]:
    """Return stages for one axis after another; each axis processes the shards from the previous axes."""
    box, left = _box(plan), plan.nbytes
    stages: list[Stage] = []
    for axis in _axes_by_speed(plan, box):
        stages.append((_along(box, axis, left, gather),))
        left /= box.sizes[axis]
    return stages[::-1] if gather else stages


def _rotated(plan: Plan, gather: bool) -> list[Stage]:
    """Return stages for equal parts of the array, one for each axis; each part begins with a different axis.

    If axes are unequal, parts share links, so all parts are in one stage.
    """
    box = _box(plan)
    orders = _rotations(plan, box)
    return _at_once(plan, box, orders, [1 / len(orders)] * len(orders), gather)


def _balanced(plan: Plan, gather: bool) -> list[Stage]:
    """Return stages as in :func:`_rotated`, with part sizes that load the busiest links of all axes equally.

    A part of one byte reduced to ``left`` loads the busiest link of a ring of ``n`` with ``(n-1)/(2n) left``, and of a
    line with twice this load. With these loads as ``A[axis, part]``, the sizes solve ``A sizes = const``.
    """
    box = _box(plan)
    orders = _rotations(plan, box)
    table = np.zeros((3, len(orders)))
    for part, order in enumerate(orders):
        left = 1.0
        for axis in order:
            size = box.sizes[axis]
            table[axis, part] = (size - 1) / size * left / (2 if box.closed[axis] else 1)
            left /= size
    sizes = np.linalg.solve(table[sorted(orders[0])], np.ones(len(orders)))
    if sizes.min() <= 0:
        raise UnfitError("no division of the array keeps all axes equally busy")
    return _at_once(plan, box, orders, (sizes / sizes.sum()).tolist(), gather)


def _rotations(plan: Plan, box: Box) -> list[list[int]]:
    """Return all rotations of the list of torus axes; each begins with a different axis."""
    axes = [axis for axis in _axes_by_speed(plan, box) if axis < 3]
    if len(axes) < 2:
        raise UnfitError("the devices of a group span fewer than two axes of the torus")
    return [axes[first:] + axes[:first] for first in range(len(axes))]


def _at_once(plan: Plan, box: Box, orders: list[list[int]], shares: list[float], gather: bool) -> list[Stage]:
    """Return stages for parts of an array; each part moves along the axes in its own order.

    The two devices of a chip exchange halves in a separate stage, so that the parts send half of the bytes over the
    links of the torus. Overlap of this stage with other stages, by pipelined chunks, is not modelled.
    """
    cores = box.sizes[3]
    traffic: list[Traffic] = []
    for part, (order, share) in enumerate(zip(orders, shares, strict=True)):
        left = plan.nbytes / cores * share
        for axis in order:
            traffic.append(_along(box, axis, left, gather, part))
            left /= box.sizes[axis]
    stages: list[Stage] = [tuple(traffic)]
    if cores > 1:
        stages.insert(0, (_along(box, 3, plan.nbytes, gather),))
    return stages[::-1] if gather else stages


# --- recursive doubling and Swing -------------------------------------------------------------------------------------


def _steps(size: int) -> int:
    steps = size.bit_length() - 1
    if size != 1 << steps:
        raise UnfitError(f"the group size {size} is not a power of two")
    return steps


def doubling_partners(size: int) -> list[IntArray]:
    """Return each member's partner in each step of recursive doubling: the member whose number differs in one bit."""
    return [np.arange(size) ^ (1 << step) for step in range(_steps(size))]


def swing_partners(size: int) -> list[IntArray]:
    """Return each member's partner in each step of Swing.

    In step ``s`` the partner of member ``r`` is ``r + (-1)^r d(s)`` modulo ``N``, with ``d(s) = (1 - (-2)^(s+1)) / 3``
    = 1, -1, 3, -5, 11 ...: about two thirds of the distance of recursive doubling (De Sensi et al., "Swing:
    Short-cutting Rings for Higher Bandwidth Allreduce", NSDI 2024, arXiv 2401.09356).
    """
    member = np.arange(size)
    sign = 1 - 2 * (member % 2)
    return [(member + sign * ((1 - (-2) ** (step + 1)) // 3)) % size for step in range(_steps(size))]


_PARTNERS = {"doubling": doubling_partners, "swing": swing_partners}


def _exchange(plan: Plan, partner: IntArray, nbytes: float, growth: float = 1.0) -> Stage:
    return (Messages(plan.groups.ravel(), plan.groups[:, partner].ravel(), nbytes, growth=growth),)


def _whole(partners: Callable[[int], list[IntArray]]) -> Callable[[Plan], list[Stage]]:
    """Return the scheduler of an all-reduce whose partners exchange the whole array: few steps, many bytes."""
    return lambda plan: [_exchange(plan, partner, plan.nbytes) for partner in partners(plan.size)]


def _parts(partners: Callable[[int], list[IntArray]]) -> Callable[[Plan, bool], list[Stage]]:
    """Return the scheduler of an all-gather or reduce-scatter by exchanges of halves, quarters and so on."""

    def stages(plan: Plan, gather: bool) -> list[Stage]:
        growth = _growth(plan.size)
        scatter = [
            _exchange(plan, partner, plan.nbytes / 2 ** (step + 1), growth)
            for step, partner in enumerate(partners(plan.size))
        ]
        return scatter[::-1] if gather else scatter

    return stages


# --- other collectives ----------------------------------------------------------------------------------------------


def _all_to_all(plan: Plan) -> list[Stage]:
    """Return the stage that sends a chunk of ``V/N^2`` from each member to every other member."""
    growth = plan.size**2 / (plan.size**2 - 1) if plan.size % 2 else 1.0
    return [(Exchange(plan.groups, plan.nbytes / plan.size**2, growth=growth),)]


def _permute(plan: Plan) -> list[Stage]:
    """Return the stage that sends the shard of member ``i`` to member ``i + shift``."""
    target = np.roll(plan.groups, -plan.shift, 1)
    return [(Messages(plan.groups.ravel(), target.ravel(), plan.nbytes / plan.size),)]


def _broadcast_tree(plan: Plan) -> list[Stage]:
    """Return a pipelined broadcast of the whole array from the root along a tree of links."""
    return [(Multicast(plan.groups, plan.root, plan.nbytes),)]


def _broadcast_ring(plan: Plan) -> list[Stage]:
    """Return a pipelined broadcast of half of the array each way round the ring of members."""
    rows = np.roll(plan.groups, -plan.root, 1)
    back = np.roll(rows[:, ::-1], 1, 1)
    source = np.concatenate([rows[:, :-1], back[:, :-1]]).ravel()
    target = np.concatenate([rows[:, 1:], back[:, 1:]]).ravel()
    return [(Messages(source, target, plan.nbytes / 2, steps=plan.size - 1),)]


def _send(plan: Plan) -> list[Stage]:
    return [(Messages(plan.groups[:, plan.root], plan.groups[:, plan.target], plan.nbytes),)]


def _send_split(plan: Plan) -> list[Stage]:
    """Return the stage that sends a message in parts, one for each axis of the path to the target.

    Each part moves along a different axis first.
    """
    fabric = plan.fabric
    source, target = plan.groups[:, plan.root], plan.groups[:, plan.target]
    moves = fabric.network.first_ways(fabric.chip[source], fabric.chip[target])
    axes = [axis for axis in range(3) if moves[:, axis].any()]
    if len(axes) < 2:
        raise UnfitError("there is only one shortest path")
    still = [axis for axis in range(3) if axis not in axes]
    orders = [(*axes[first:], *axes[:first], *still) for first in range(len(axes))]
    share = plan.nbytes / len(axes)
    return [tuple(Messages(source, target, share, part=part, order=order) for part, order in enumerate(orders))]


_BY_SHARDS: dict[str, Callable[[Plan, bool], list[Stage]]] = {
    "ring": _ring,
    "line": _line,
    "sequential": _sequential,
    "rotated": _rotated,
    "balanced": _balanced,
}
_SHARDS_OF_PARTNERS = {name: _parts(partners) for name, partners in _PARTNERS.items()}
_OTHERS: dict[tuple[str, str], Callable[[Plan], list[Stage]]] = {
    ("all_reduce", "doubling"): _whole(doubling_partners),
    ("all_reduce", "swing"): _whole(swing_partners),
    ("all_to_all", "direct"): _all_to_all,
    ("collective_permute", "direct"): _permute,
    ("broadcast", "tree"): _broadcast_tree,
    ("broadcast", "ring"): _broadcast_ring,
    ("point_to_point", "direct"): _send,
    ("point_to_point", "split"): _send_split,
}
_SHARDED = (*_BY_SHARDS, *_PARTNERS)

#: The algorithms of each collective.
ALGORITHMS: dict[str, tuple[str, ...]] = {
    "all_reduce": _SHARDED,
    "all_gather": _SHARDED,
    "reduce_scatter": _SHARDED,
    "all_to_all": ("direct",),
    "collective_permute": ("direct",),
    "broadcast": ("tree", "ring"),
    "point_to_point": ("direct", "split"),
}


# --- several equal slices -------------------------------------------------------------------------------------------

# With ``S`` slices, each device exchanges data with the devices at its position in the other slices, through the
# data-centre network; the host that sends most limits the speed. For each collective: the collective within the slice
# before the exchange, the bytes exchanged in units of ``(S-1)/S`` times a device's bytes, the collective afterwards.
_OVER_SLICES: dict[str, tuple[str | None, int, str | None]] = {
    "all_reduce": ("reduce_scatter", 2, "all_gather"),
    "all_gather": (None, 1, "all_gather"),
    "reduce_scatter": ("reduce_scatter", 1, None),
    "all_to_all": ("all_to_all", 1, None),
}


def within_slice(collective: str, algorithm: str, plan: Plan, slices: int) -> list[Stage]:
    """Return the stages of a collective, including those between slices; `plan` is for one slice."""
    if slices == 1:
        return schedule(collective, algorithm, plan)
    before, times, after = _OVER_SLICES[collective]
    if collective == "all_to_all":
        plan = replace(plan, nbytes=plan.nbytes / slices)
    nbytes = times * (slices - 1) / slices * (plan.nbytes / plan.size)
    return [
        *(schedule(before, algorithm, plan) if before else ()),
        (HostTraffic(plan.groups.ravel(), nbytes),),
        *(schedule(after, algorithm, plan) if after else ()),
    ]


def refuse_slices(collective: str) -> None:
    """Raise a ValueError for a collective without a schedule over several slices."""
    if collective not in _OVER_SLICES:
        raise ValueError(
            f"{collective} has no schedule over several slices. Omit slices=, or use one of {', '.join(_OVER_SLICES)}"
        )
