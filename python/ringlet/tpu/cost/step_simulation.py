"""What a step costs: computing, and collectives one after another or at the same time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from ringlet.tpu.cost.collective_cost import Collective, Course, course, fabric_of, options_of
from ringlet.tpu.cost.cost_fabric import Fabric
from ringlet.tpu.cost.cost_results import StepCost
from ringlet.tpu.cost.link_traffic import FloatArray
from ringlet.tpu.topology_of import topology_of

if TYPE_CHECKING:
    from ringlet.tpu.assignment.device_assignment import DeviceAssignment
    from ringlet.tpu.topology.topology import Topology

__all__ = ["simulate"]

Schedule = Collective | Sequence[Collective | Sequence[Collective]]


def simulate(
    assignment: DeviceAssignment | Topology,
    collectives: Schedule = (),
    *,
    flops: float = 0.0,
    hbm_bytes: float = 0.0,
    is_overlapped: bool = True,
    model: str = "exact",
    **speeds: Any,
) -> StepCost:
    """Predict what a step costs on a placement, and what bounds it.

    Collectives follow one another, and those in an inner list are under way at the same time. These share links: while
    a link has more to carry than it can, all that cross it slow down alike, so that two on the same axis get half of it
    each and two on different axes do not meet. Computing takes ``max(flops / peak, bytes / memory bandwidth)`` (the
    roofline). An overlapped step takes the longer of computing and communicating, another one their sum.

    Parameters
    ----------
    assignment : DeviceAssignment or Topology
        Of a topology every device is a replica of its own, in the order of tasks.
    collectives : Collective or sequence
        What the devices exchange.
    flops, hbm_bytes : float
        Operations, and bytes between a device and its memory, of one device in the step.
    is_overlapped : bool
        Whether devices compute while they communicate.
    model : {"exact", "asymptotic"}
    **speeds
        As for :meth:`DeviceAssignment.cost`; and ``flops_per_second`` and ``hbm_bytes_per_second`` of one device, where
        they are not those of the generation.

    Returns
    -------
    StepCost

    Raises
    ------
    ValueError
        If an argument names something that does not exist, or a speed is not known.

    Examples
    --------
    Weights are gathered within each row of four chips while gradients are added up over the columns:

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
        [course(assignment, wanted, fabric, model) for wanted in together] for together in _as_rounds(collectives)
    ]
    parts = [_together(round_, fabric) for round_ in rounds]
    compute = _busy_seconds(assignment, "flops", flops, peak)
    hbm = _busy_seconds(assignment, "hbm_bytes", hbm_bytes, memory)
    communication = sum(part.seconds for part in parts)
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
        **{f"{name}_seconds": sum(part.by_bound[name] for part in parts) for name in _BOUNDS},
        is_overlapped=is_overlapped,
        collectives=tuple(c.cost for round_ in rounds for c in round_),
    )


# The parts of communicating, as fields of costs name them; the kinds of resources in their order, then latency.
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
    return TypeError(f"a step consists of Collective(...) and lists of them, got {item!r}")


def _busy_seconds(assignment: DeviceAssignment | Topology, name: str, amount: float, given: float | None) -> float:
    """How long one device computes, or moves bytes to and from its memory."""
    if not isinstance(amount, Real) or not 0 <= amount < math.inf:
        raise ValueError(f"{name} is what one device does in the step, not negative and finite: got {amount!r}")
    if amount == 0:
        return 0.0
    speed = f"{name}_per_second"
    if given is not None:
        if not given > 0:
            raise ValueError(f"{speed} is positive, got {given}")
        return amount / given
    topology = topology_of(assignment)
    if topology.generation is None:
        raise ValueError(f"the topology names no generation, so {name} cannot be timed: give {speed}=")
    chip = topology.generation.flops if name == "flops" else topology.generation.hbm_bandwidth
    return amount / (chip / int(topology.mesh_shape[3]))


# --- sharing links --------------------------------------------------------------------------------------------------


@dataclass
class _Running:
    """A collective under way: which stage it is in and how much of it is left."""

    course: Course
    stage: int = 0
    left: float = 1.0

    @property
    def alone_seconds(self) -> float:
        """How long the present stage would take with all links for itself."""
        stage = self.course.stages[self.stage]
        return stage.latency_seconds + stage.transfer_seconds

    @property
    def is_over(self) -> bool:
        return self.stage == len(self.course.stages)

    def advance(self, part: float) -> None:
        """Carry out a part of the present stage."""
        self.left -= part
        if self.left <= 1e-12:
            self.stage, self.left = self.stage + 1, 1.0


@dataclass(frozen=True)
class _Round:
    """How long collectives take that start together."""

    seconds: float
    by_bound: dict[str, float]


def _together(courses: list[Course], fabric: Fabric) -> _Round:
    """Let collectives share links until the last one is done.

    In every moment each of them is in one stage, and asks of every link a part of its time: the seconds that the link
    is busy in that stage over those that the stage takes alone. Where the parts of a link exceed one, all that use it
    slow down by that factor.
    """
    if len(courses) == 1:
        cost = courses[0].cost
        return _Round(cost.seconds, {name: getattr(cost, f"{name}_seconds") for name in _BOUNDS})
    running = [_Running(each) for each in courses]
    seconds = 0.0
    while running := [each for each in running if not each.is_over]:
        if (idle := next((each for each in running if each.alone_seconds == 0), None)) is not None:
            idle.advance(1.0)
            continue
        slowness = _slowness([_use(each, fabric) for each in running])
        needed = [each.left * each.alone_seconds * slow for each, slow in zip(running, slowness, strict=True)]
        span = min(needed)
        for each, slow in zip(running, slowness, strict=True):
            each.advance(span / (each.alone_seconds * slow))
        seconds += span
    return _Round(seconds, _bounds_together(courses, fabric))


def _use(each: _Running, fabric: Fabric) -> FloatArray:
    """The part of its time that every resource works for a collective in its present stage."""
    use: FloatArray = fabric.seconds(each.course.stages[each.stage].loads) / each.alone_seconds
    return use


def _slowness(uses: list[FloatArray]) -> list[float]:
    """How many times as long each collective takes as it would alone."""
    total = np.sum(uses, axis=0)
    return [max(1.0, float(total[use > 0].max(initial=0.0))) for use in uses]


def _bounds_together(courses: list[Course], fabric: Fabric) -> dict[str, float]:
    """Of each bound what is most: bytes add up on the resources that they share, latencies do not."""
    loads = sum((stage.loads for each in courses for stage in each.stages), start=fabric.no_load())
    ends = (fabric.num_links, fabric.first_bus, fabric.first_host)
    busy = np.split(fabric.seconds(loads), ends)
    shared = {kind: float(part.max(initial=0.0)) for kind, part in zip(_KINDS, busy, strict=True)}
    return {
        name: max(shared.get(name, 0.0), *(getattr(each.cost, f"{name}_seconds") for each in courses))
        for name in _BOUNDS
    }
