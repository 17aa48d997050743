"""Cost of a step: computation, and collectives in sequence or concurrently."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from ringlet.tpu.cost.collective_cost import ActiveCollective, Collective, evaluate, fabric_of, options_of
from ringlet.tpu.cost.cost_fabric import Fabric
from ringlet.tpu.cost.cost_results import StepCost
from ringlet.tpu.topology.topology_of import Placed, topology_of

if TYPE_CHECKING:
    from ringlet.tpu.topology.topology import Topology

Schedule = Collective | Sequence[Collective | Sequence[Collective]]


def simulate(
    assignment: Placed | Topology,
    collectives: Schedule = (),
    *,
    flops: float = 0.0,
    hbm_bytes: float = 0.0,
    is_overlapped: bool = True,
    model: str = "exact",
    **speeds: Any,
) -> StepCost:
    """Predict the cost of a step on an assignment, and its bound.

    Collectives run in sequence; collectives in an inner list run concurrently and share links: when a link is
    overloaded, all collectives that use it slow down by the same factor. Two collectives on the same axis therefore get
    half of its bandwidth each; on different axes, they do not interfere. Computation takes ``max(flops / peak, bytes /
    memory bandwidth)`` (the roofline). A step takes the longer of computation and communication if they overlap, else
    their sum.

    Parameters
    ----------
    assignment : DeviceAssignment or Topology
        Every device of a Topology is a replica, in task order.
    collectives : Collective or sequence
        The communication of the step.
    flops, hbm_bytes : float
        Operations of one device in the step, and bytes that it transfers to and from its memory.
    is_overlapped : bool
        Whether computation and communication overlap.
    model : {"exact", "asymptotic"}
    **speeds
        As for :meth:`DeviceAssignment.cost`, and ``flops_per_second`` and ``hbm_bytes_per_second`` of one device
        (default: the generation's).

    Returns
    -------
    StepCost

    Raises
    ------
    ValueError
        If an argument is invalid, or a speed is unknown.
    TypeError
        If a keyword is unknown, or `collectives` contains other objects.

    Examples
    --------
    Weights are gathered within each row of four chips while gradients are summed over the columns:

    >>> import numpy as np
    >>> import ringlet
    >>> from ringlet.tpu import Collective
    >>> topology = ringlet.tpu.Topology.from_accelerator_type("v5e-16")
    >>> assignment = ringlet.tpu.DeviceAssignment.build(topology, [4, 1, 1, 1], num_replicas=4)
    >>> weights, gradients = Collective("all_gather", 2**28, "core"), Collective("all_reduce", 2**26, "replica")
    >>> ringlet.tpu.simulate(assignment, [weights, gradients])
    <StepCost: 6.72 ms, overlapped: communication 6.72 ms; bound by ICI>
    >>> ringlet.tpu.simulate(assignment, [[weights, gradients]], flops=1e12)
    <StepCost: 5.076 ms, overlapped: compute 5.076 ms, communication 4.477 ms; bound by compute>
    """
    peak, memory = (speeds.pop(name, None) for name in ("flops_per_second", "hbm_bytes_per_second"))
    fabric = fabric_of(assignment, options_of(speeds))
    rounds = [
        [evaluate(assignment, wanted, fabric, model) for wanted in together] for together in _as_rounds(collectives)
    ]
    parts = [_run_concurrently(round_, fabric) for round_ in rounds]
    compute = _device_seconds(assignment, "flops", flops, peak)
    hbm = _device_seconds(assignment, "hbm_bytes", hbm_bytes, memory)
    communication = sum(time for time, _ in parts)
    roofline = max(compute, hbm)
    loads = sum((stage.loads for round_ in rounds for c in round_ for stage in c.stages), start=fabric.no_load())
    links, seconds = fabric.link_bytes(loads), fabric.link_bytes(fabric.seconds(loads))
    for array in (links, seconds):
        array.flags.writeable = False
    return StepCost(
        assignment=assignment,
        link_bytes=links,
        link_seconds=seconds,
        seconds=max(roofline, communication) if is_overlapped else roofline + communication,
        compute_seconds=compute,
        memory_seconds=hbm,
        communication_seconds=communication,
        **{f"{name}_seconds": sum(by_bound[name] for _, by_bound in parts) for name in _BOUNDS},
        is_overlapped=is_overlapped,
        collectives=tuple(c.cost for round_ in rounds for c in round_),
    )


# Fields of costs, named without "_seconds": the kinds of resources in the order of KINDS, then latency.
_KINDS = ("ici", "core_link", "pcie", "dcn")
_BOUNDS = (*_KINDS, "latency")


def _as_rounds(collectives: Schedule) -> list[list[Collective]]:
    if isinstance(collectives, Collective):
        return [[collectives]]
    rounds = [[item] if isinstance(item, Collective) else _listed(item) for item in _listed(collectives)]
    for item in (item for together in rounds for item in together):
        if not isinstance(item, Collective):
            raise _no_step(item)
    return [together for together in rounds if together]


def _listed(items: Any) -> list[Any]:
    if isinstance(items, str) or not isinstance(items, Iterable):
        raise _no_step(items)
    return list(items)


def _no_step(item: object) -> TypeError:
    return TypeError(f"collectives must be Collective objects or lists of them, got {item!r}")


def _device_seconds(assignment: Placed | Topology, name: str, amount: float, given: float | None) -> float:
    """Return the time in which one device computes, or transfers bytes to and from its memory."""
    if not isinstance(amount, Real) or not 0 <= amount < math.inf:
        raise ValueError(f"{name} of a device in one step must be a finite number, at least 0, got {amount!r}")
    if amount == 0:
        return 0.0
    speed = f"{name}_per_second"
    if given is not None:
        if not given > 0:
            raise ValueError(f"{speed} must be positive, got {given}")
        return amount / given
    topology = topology_of(assignment)
    if topology.generation is None:
        raise ValueError(f"the topology has no generation, so {name} cannot be timed: pass {speed}=")
    chip = topology.generation.flops if name == "flops" else topology.generation.hbm_bandwidth
    return amount / (chip / int(topology.mesh_shape[3]))


# --- sharing links --------------------------------------------------------------------------------------------------


@dataclass
class _RunningCollective:
    collective: ActiveCollective
    stage: int = 0
    left: float = 1.0

    @property
    def alone_seconds(self) -> float:
        stage = self.collective.stages[self.stage]
        return stage.latency_seconds + stage.transfer_seconds

    @property
    def is_over(self) -> bool:
        return self.stage == len(self.collective.stages)

    def advance(self, part: float) -> None:
        self.left -= part
        if self.left <= 1e-12:
            self.stage, self.left = self.stage + 1, 1.0


def _run_concurrently(collectives: list[ActiveCollective], fabric: Fabric) -> tuple[float, dict[str, float]]:
    """Simulate concurrent collectives until all have ended; return the total time and the time of each bound.

    At any time, each collective is in one stage and needs a fraction of every link's time: the link's busy time in that
    stage divided by the duration of the stage when run alone. If the fractions of a link add up to more than one, all
    collectives that use it slow down by their sum.
    """
    if len(collectives) == 1:
        cost = collectives[0].cost
        return cost.seconds, {name: getattr(cost, f"{name}_seconds") for name in _BOUNDS}
    running = [_RunningCollective(each) for each in collectives]
    seconds = 0.0
    while running := [each for each in running if not each.is_over]:
        if (idle := next((each for each in running if each.alone_seconds == 0), None)) is not None:
            idle.advance(1.0)
            continue
        # Fraction of each resource's time that the current stage of each collective needs.
        uses = [fabric.seconds(each.collective.stages[each.stage].loads) / each.alone_seconds for each in running]
        total = np.sum(uses, axis=0)
        slowdowns = [max(1.0, float(total[use > 0].max(initial=0.0))) for use in uses]
        needed = [each.left * each.alone_seconds * slow for each, slow in zip(running, slowdowns, strict=True)]
        span = min(needed)
        for each, slow in zip(running, slowdowns, strict=True):
            each.advance(span / (each.alone_seconds * slow))
        seconds += span
    return seconds, _concurrent_bounds(collectives, fabric)


def _concurrent_bounds(collectives: list[ActiveCollective], fabric: Fabric) -> dict[str, float]:
    """Return the time of each bound: bytes of all collectives add up on shared resources, latencies do not."""
    loads = sum((stage.loads for each in collectives for stage in each.stages), start=fabric.no_load())
    ends = (fabric.num_links, fabric.first_bus, fabric.first_host)
    busy = np.split(fabric.seconds(loads), ends)
    shared = {kind: float(part.max(initial=0.0)) for kind, part in zip(_KINDS, busy, strict=True)}
    return {
        name: max(shared.get(name, 0.0), *(getattr(each.cost, f"{name}_seconds") for each in collectives))
        for name in _BOUNDS
    }
