"""Collectives over several equal slices: over links inside each slice, over the hosts' network between slices.

With ``S`` slices, each device exchanges data with the devices at its position in the other slices. A group of ``N``
devices in each slice has ``S N`` devices in total. Each device sends these bytes into the data-centre network, limited
by the host that sends most:

- all-reduce: a reduce-scatter inside the slice, ``2 (S-1)/S V/N`` between slices, an all-gather inside;
- all-gather: ``(S-1)/S V/N`` between slices, after which every slice has all shards; an all-gather of ``V`` inside;
- reduce-scatter: the reverse;
- all-to-all: inside the slice to the target's position, ``V/S`` in total, then ``(S-1)/S V/(S N)`` between slices.
"""

from __future__ import annotations

from dataclasses import replace

from ringlet.tpu.cost.cost_messages import HostTraffic
from ringlet.tpu.cost.cost_schedules import Plan, Stage, schedule

__all__ = ["refuse_slices", "within_slice"]


# Collectives inside the slice before and after the exchange between slices, and the bytes of the exchange as a multiple
# of ``(S-1)/S`` times the bytes of a device.
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
            f"{collective} has no schedule over several slices. Leave slices at 1, or use one of "
            f"{', '.join(_OVER_SLICES)}"
        )
