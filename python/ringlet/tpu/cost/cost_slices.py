"""Collectives over several equal slices: inside each slice over its links, between them over the hosts' network.

With ``S`` slices, every device meets the devices at its place in the other slices. A group of ``N`` devices in each
slice makes ``S N`` in all. Bytes that each of them sends into the data-centre network, the most that any host has to
send deciding:

- all-reduce: a reduce-scatter inside the slice, ``2 (S-1)/S V/N`` between slices, an all-gather inside;
- all-gather: ``(S-1)/S V/N`` between slices (then every slice has all shards), an all-gather of ``V`` inside;
- reduce-scatter: the same backwards;
- all-to-all: inside the slice what goes to the right place there, ``V/S`` in all, then ``(S-1)/S V/(S N)`` between.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ringlet.tpu.cost.cost_messages import HostTraffic
from ringlet.tpu.cost.cost_schedules import Plan, Stage, schedule

__all__ = ["between_slices", "within_slice"]


def within_slice(collective: str, algorithm: str, plan: Plan, slices: int) -> list[Stage]:
    """Give the stages of a collective, those between slices among them.

    Parameters
    ----------
    collective, algorithm : str
    plan : Plan
        Of one slice; its `nbytes` is ``V``.
    slices : int

    Returns
    -------
    list of Stage

    Raises
    ------
    UnfitError
        If the algorithm cannot serve these groups.
    """
    if slices == 1:
        return schedule(collective, algorithm, plan)
    return between_slices(collective)(algorithm, plan, slices)


def between_slices(collective: str) -> Callable[[str, Plan, int], list[Stage]]:
    """Give the schedule of a collective over several slices.

    Raises
    ------
    ValueError
        If there is none.
    """
    if collective not in _OVER_SLICES:
        raise ValueError(
            f"{collective} has no schedule over several slices. Leave slices at 1, or use one of "
            f"{', '.join(_OVER_SLICES)}"
        )
    return _OVER_SLICES[collective]


def _exchange(plan: Plan, nbytes: float) -> Stage:
    """Every device sends `nbytes` into the network, once for each group that it is in."""
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
