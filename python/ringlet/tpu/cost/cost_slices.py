"""Collectives over several equal slices: over links inside each slice, over the hosts' network between slices.

With ``S`` slices, each device exchanges data with the devices at its position in the other slices. A group of ``N``
devices in each slice has ``S N`` in all. Bytes that each of them sends into the data-centre network, limited by the
host that sends most:

- all-reduce: a reduce-scatter inside the slice, ``2 (S-1)/S V/N`` between slices, an all-gather inside;
- all-gather: ``(S-1)/S V/N`` between slices, after which every slice has all shards; an all-gather of ``V`` inside;
- reduce-scatter: the reverse;
- all-to-all: inside the slice to the right position, ``V/S`` in all, then ``(S-1)/S V/(S N)`` between slices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ringlet.tpu.cost.cost_messages import HostTraffic
from ringlet.tpu.cost.cost_schedules import Plan, Stage, schedule

__all__ = ["between_slices", "within_slice"]


def within_slice(collective: str, algorithm: str, plan: Plan, slices: int) -> list[Stage]:
    """Return the stages of a collective, including those between slices; `plan` is that of one slice."""
    if slices == 1:
        return schedule(collective, algorithm, plan)
    return between_slices(collective)(algorithm, plan, slices)


def between_slices(collective: str) -> Callable[[str, Plan, int], list[Stage]]:
    """Return the schedule of a collective over several slices; a ValueError if there is none."""
    if collective not in _OVER_SLICES:
        raise ValueError(
            f"{collective} has no schedule over several slices. Leave slices at 1, or use one of "
            f"{', '.join(_OVER_SLICES)}"
        )
    return _OVER_SLICES[collective]


def _exchange(plan: Plan, nbytes: float) -> Stage:
    """Send `nbytes` from every device into the network, once for each of its groups."""
    return (HostTraffic(plan.groups.ravel(), nbytes),)


def _all_reduce(algorithm: str, plan: Plan, slices: int) -> list[Stage]:
    shard = plan.nbytes / plan.size
    return [
        *schedule("reduce_scatter", algorithm, plan),
        _exchange(plan, 2 * (slices - 1) / slices * shard),
        *schedule("all_gather", algorithm, plan),
    ]


def _all_gather(algorithm: str, plan: Plan, slices: int) -> list[Stage]:
    shard = plan.nbytes / plan.size
    return [_exchange(plan, (slices - 1) / slices * shard), *schedule("all_gather", algorithm, plan)]


def _reduce_scatter(algorithm: str, plan: Plan, slices: int) -> list[Stage]:
    shard = plan.nbytes / plan.size
    return [*schedule("reduce_scatter", algorithm, plan), _exchange(plan, (slices - 1) / slices * shard)]


def _all_to_all(algorithm: str, plan: Plan, slices: int) -> list[Stage]:
    inner = replace(plan, nbytes=plan.nbytes / slices)
    return [
        *schedule("all_to_all", algorithm, inner),
        _exchange(plan, (slices - 1) / slices * inner.nbytes / plan.size),
    ]


_OVER_SLICES: dict[str, Callable[[str, Plan, int], list[Stage]]] = {
    "all_reduce": _all_reduce,
    "all_gather": _all_gather,
    "reduce_scatter": _reduce_scatter,
    "all_to_all": _all_to_all,
}
