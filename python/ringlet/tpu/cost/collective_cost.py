"""Cost of a collective on an assignment, by every applicable algorithm, computed from the bytes on every link.

A schedule lists the messages of an algorithm in stages. Messages are routed and the bytes on every link are added up. A
stage takes the time of its busiest link plus the latency of its hops. Stages are separated by barriers.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np

from ringlet.tpu.cost.cost_fabric import KINDS, Fabric, FabricOptions
from ringlet.tpu.cost.cost_groups import AXES, box_of, groups_of
from ringlet.tpu.cost.cost_results import CollectiveCost
from ringlet.tpu.cost.cost_schedules import ALGORITHMS, Plan, Stage, UnfitError, refuse_slices, within_slice
from ringlet.tpu.cost.link_traffic import FloatArray, IntArray
from ringlet.tpu.topology.topology_of import Placed, topology_of
from ringlet.tpu.units import parse_bytes

if TYPE_CHECKING:
    from ringlet.tpu.topology.topology import Topology


@dataclass(frozen=True)
class Collective:
    """A collective that all groups of an assignment's devices run at the same time.

    Parameters
    ----------
    kind : str
        ``"all_reduce"``, ``"all_gather"``, ``"reduce_scatter"``, ``"all_to_all"``, ``"collective_permute"``,
        ``"broadcast"`` or ``"point_to_point"``.
    nbytes : float
        Bytes of the full array: the result of an all-gather, the input of a reduce-scatter, each copy of an all-reduce,
        all shards of a group together in an all-to-all or a collective-permute, or the array that is sent.
    axis : {"replica", "core", "all"}
        Groups: the replicas of each logical core, the logical cores of each replica, or all devices.
    groups : sequence of sequence of int, optional
        Groups of devices, by number ``replica * cores per replica + logical core``; replaces `axis`.
    algorithm : str
        ``"auto"`` selects the fastest. All-reduce, all-gather and reduce-scatter have ``"ring"`` and ``"line"`` (in the
        order of the group), ``"sequential"`` (axis by axis of the torus), ``"rotated"`` and ``"balanced"`` (all axes at
        once, in equal parts, and in parts that keep all links busy), ``"doubling"`` and ``"swing"`` (few steps, for
        small arrays). A broadcast has ``"tree"`` and ``"ring"``, a point-to-point message ``"direct"`` and ``"split"``
        (over several paths).
    slices : int
        Number of equal slices, connected by the data-centre network.
    shift : int
        Distance by which a collective-permute moves every shard.
    root, target : int
        Member of each group that sends the broadcast or the point-to-point message; member that receives the message.

    Examples
    --------
    >>> Collective("all_gather", 2**20, axis="core").algorithm
    'auto'
    >>> Collective("allreduce", 2**20)
    Traceback (most recent call last):
    ValueError: unknown collective 'allreduce': did you mean 'all_reduce'? Choose one of all_reduce, all_gather,
    reduce_scatter, all_to_all, collective_permute, broadcast, point_to_point
    """

    kind: str
    nbytes: float
    axis: str = "replica"
    groups: Sequence[Sequence[int]] | IntArray | None = None
    algorithm: str = "auto"
    slices: int = 1
    shift: int = 1
    root: int = 0
    target: int = 1

    def __post_init__(self) -> None:
        if self.kind not in ALGORITHMS:
            near = get_close_matches(str(self.kind), ALGORITHMS, n=1)
            hint = f": did you mean {near[0]!r}?" if near else "."
            raise ValueError(f"unknown collective {self.kind!r}{hint} Choose one of {', '.join(ALGORITHMS)}")
        if not isinstance(self.nbytes, Real):
            raise TypeError(f"nbytes must be the size of the full array as a number of bytes, got {self.nbytes!r}")
        if not 0 <= self.nbytes <= sys.float_info.max:
            raise ValueError(f"nbytes must be the size of the full array, finite and not negative, got {self.nbytes}")
        for name in ("slices", "shift", "root", "target"):
            if not isinstance(getattr(self, name), Integral):
                raise TypeError(f"{name} must be an integer, got {getattr(self, name)!r}")
        if self.algorithm not in ("auto", *ALGORITHMS[self.kind]):
            raise ValueError(
                f"unknown algorithm {self.algorithm!r} for {self.kind}: choose 'auto', "
                f"{', '.join(map(repr, ALGORITHMS[self.kind]))}"
            )
        if self.groups is None and self.axis not in AXES:
            raise ValueError(
                f"axis must be one of {', '.join(map(repr, AXES))}, got {self.axis!r}. For other groups, pass groups="
            )
        if self.slices < 1:
            raise ValueError(f"slices must be the number of slices, at least 1, got {self.slices}")


@dataclass(frozen=True, eq=False)
class StageCost:
    """Bytes on each resource of a fabric in one stage, and the kind of resource that limits the transfer."""

    loads: FloatArray
    latency_seconds: float
    transfer_seconds: float
    kind: str


@dataclass(frozen=True, eq=False)
class ActiveCollective:
    """The cost of a collective, and the costs of its stages, from which concurrent collectives are simulated."""

    cost: CollectiveCost
    stages: tuple[StageCost, ...] = field(repr=False)
    fabric: Fabric = field(repr=False)


def collective_cost(
    assignment: Placed | Topology,
    collective: str,
    nbytes: float | str,
    axis: str = "replica",
    *,
    groups: Sequence[Sequence[int]] | IntArray | None = None,
    algorithm: str = "auto",
    model: str = "exact",
    slices: int = 1,
    shift: int = 1,
    root: int = 0,
    target: int = 1,
    **speeds: Any,
) -> CollectiveCost:
    """Predict the duration of a collective, as :meth:`DeviceAssignment.cost` does.

    Parameters
    ----------
    assignment : DeviceAssignment or Topology
        Every device of a Topology is a replica, in task order.
    collective, nbytes, axis, groups, algorithm, slices, shift, root, target
        As for :class:`Collective`; `nbytes` may also be text such as ``"1GiB"``.
    model : {"exact", "asymptotic"}
        ``"asymptotic"``, the form of *How to Scale Your Model*, drops ``(N-1)/N`` and takes the larger of latency and
        transfer instead of their sum.
    **speeds
        ``bandwidth`` (``"usable"``, ``"published"`` or bytes per second of one link, one way), ``hop_seconds``,
        ``bandwidth_scale`` (remaining fraction of degraded links), ``core_bandwidth``, ``host_bandwidth``, ``twisted``:
        as for :class:`~ringlet.tpu.cost.cost_fabric.FabricOptions`.

    Returns
    -------
    CollectiveCost

    Raises
    ------
    ValueError
        If an argument is invalid, or the algorithm does not apply to these groups.
    TypeError
        If a keyword is unknown, or a number has a wrong type.

    Examples
    --------
    >>> import ringlet
    >>> topology = ringlet.tpu.Topology.from_accelerator_type("v5e-16")
    >>> cost = collective_cost(topology, "all_reduce", 1e9, hop_seconds=0)
    >>> cost.algorithm, f"{cost.seconds * 1e3:.3f} ms", cost.bound
    ('rotated', '20.833 ms', 'ICI')
    """
    size = parse_bytes(nbytes) if isinstance(nbytes, str) else nbytes
    wanted = Collective(collective, size, axis, groups, algorithm, slices, shift, root, target)
    return evaluate(assignment, wanted, fabric_of(assignment, options_of(speeds)), model).cost


def options_of(speeds: dict[str, Any]) -> FabricOptions:
    """Return keyword arguments as options; raise TypeError for an unknown name."""
    known = FabricOptions.__dataclass_fields__
    for name in speeds:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; expected one of {', '.join(known)}"
            raise TypeError(f"unexpected keyword argument {name!r}{hint}")
    return FabricOptions(**speeds)


def _cores(assignment: Placed | Topology) -> IntArray:
    """Return the coordinates of the logical cores, [replica, logical core, axis]."""
    topology = topology_of(assignment)
    cores = getattr(assignment, "core_assignment", topology.device_coordinates.reshape(-1, 1, 4))
    return np.asarray(cores, np.int64)


def fabric_of(assignment: Placed | Topology, options: FabricOptions) -> Fabric:
    """Return the network that connects the devices of an assignment."""
    return Fabric.of(topology_of(assignment), _cores(assignment).reshape(-1, 4), options)


def evaluate(
    assignment: Placed | Topology, wanted: Collective, fabric: Fabric, model: str = "exact"
) -> ActiveCollective:
    """Compute the cost of a collective with its algorithm, or with the fastest one if it is ``"auto"``."""
    if model not in ("exact", "asymptotic"):
        raise ValueError(f"model must be 'exact' or 'asymptotic', got {model!r}")
    plan = _plan(assignment, wanted, fabric)
    names = ALGORITHMS[wanted.kind] if wanted.algorithm == "auto" else (wanted.algorithm,)
    found = {}
    for name in names:
        try:
            stages = within_slice(wanted.kind, name, plan, wanted.slices)
        except UnfitError as error:
            if wanted.algorithm == "auto":
                continue
            raise ValueError(
                f"the algorithm {name!r} does not apply: {error}. Choose another algorithm, or 'auto'"
            ) from None
        found[name] = stage_costs(stages, fabric, is_asymptotic=model == "asymptotic")
    times = sorted(((_seconds(costs, model), name) for name, costs in found.items()), key=lambda row: row[0])
    best = times[0][1]
    in_order = {name: seconds for seconds, name in times}
    cost = _result(assignment, wanted, plan, found[best], model=model, times=in_order)
    return ActiveCollective(cost, tuple(found[best]), fabric)


def _plan(assignment: Placed | Topology, wanted: Collective, fabric: Fabric) -> Plan:
    cores = _cores(assignment)
    groups = groups_of(cores.shape[0], cores.shape[1], wanted.axis, wanted.groups)
    if groups.size == 0:
        raise ValueError(
            "the assignment has no replicas, so the cost of collectives is undefined: pass an assignment with at least "
            "one replica"
        )
    size = groups.shape[1]
    for name, member in (("root", wanted.root), ("target", wanted.target)):
        is_used = wanted.kind == "point_to_point" or (wanted.kind == "broadcast" and name == "root")
        if is_used and not 0 <= member < size:
            raise ValueError(f"{name} is member {member}, but the groups have members 0 to {size - 1}")
    if wanted.slices > 1:
        refuse_slices(wanted.kind)
        if np.isnan(fabric.bytes_per_second[fabric.first_host :]).any():
            raise ValueError(
                "the speed of the data-centre network is unknown, because the topology has no generation. Pass "
                "host_bandwidth= in bytes per second"
            )
    box = box_of(groups, cores.reshape(-1, 4), fabric.network)
    return Plan(groups, box, float(wanted.nbytes), fabric, wanted.shift, wanted.root, wanted.target)


def stage_costs(stages: Iterable[Stage], fabric: Fabric, *, is_asymptotic: bool = False) -> list[StageCost]:
    """Route the messages of each stage; return its link loads and duration."""
    costs = []
    for stage in stages:
        loads, hops = fabric.no_load(), dict.fromkeys((traffic.part for traffic in stage), 0)
        for traffic in stage:
            units, longest = traffic.crossings(fabric)
            loads += units * (traffic.unit_bytes * (traffic.growth if is_asymptotic else 1.0))
            hops[traffic.part] += traffic.steps * longest
        busy = fabric.seconds(loads)
        most = int(busy.argmax())
        latency = max(hops.values(), default=0) * fabric.hop_seconds
        costs.append(StageCost(loads, latency, float(busy[most]), fabric.kind(most)))
    return costs


def _seconds(costs: list[StageCost], model: str) -> float:
    latency = sum(cost.latency_seconds for cost in costs)
    transfer = sum(cost.transfer_seconds for cost in costs)
    return latency + transfer if model == "exact" else max(latency, transfer)


def _result(
    assignment: Placed | Topology,
    wanted: Collective,
    plan: Plan,
    costs: list[StageCost],
    *,
    model: str,
    times: dict[str, float],
) -> CollectiveCost:
    fabric = plan.fabric
    by_kind = {kind: sum(cost.transfer_seconds for cost in costs if cost.kind == kind) for kind in KINDS}
    loads = sum((cost.loads for cost in costs), start=fabric.no_load())
    links, seconds = fabric.link_bytes(loads), fabric.link_bytes(fabric.seconds(loads))
    for array in (links, seconds):
        array.flags.writeable = False
    inner = wanted.nbytes / wanted.slices if wanted.kind == "all_to_all" else wanted.nbytes
    lowest = lower_bound_seconds(
        wanted.kind, inner, plan.groups, fabric, shift=wanted.shift, root=wanted.root, target=wanted.target
    )
    return CollectiveCost(
        assignment=assignment,
        link_bytes=links,
        link_seconds=seconds,
        collective=wanted.kind,
        algorithm=next(iter(times)),
        nbytes=wanted.nbytes,
        group_size=plan.size,
        num_groups=len(plan.groups),
        slices=wanted.slices,
        model=model,
        seconds=next(iter(times.values())),
        latency_seconds=sum(cost.latency_seconds for cost in costs),
        ici_seconds=by_kind["ICI"],
        core_link_seconds=by_kind["core link"],
        pcie_seconds=by_kind["PCIe"],
        dcn_seconds=by_kind["DCN"],
        lower_bound_seconds=lowest + by_kind["PCIe"] + by_kind["DCN"],
        times=times,
    )


def lower_bound_seconds(
    collective: str, nbytes: float, groups: IntArray, fabric: Fabric, *, shift: int = 1, root: int = 0, target: int = 1
) -> float:
    """Return the time that the busiest chip needs to send its bytes over all its links at once.

    In a group of ``M`` chips, each chip sends at least ``2 (M-1)/M V`` in an all-reduce (Patarasuk and Yuan, 2009),
    half of these bytes in an all-gather or a reduce-scatter, the data for devices of other chips in an all-to-all, the
    shards that leave the chip in a collective-permute, and ``V`` = `nbytes` as the root of a broadcast or the sender
    of a message. The devices of a chip share its links, so the bytes of all groups on a chip are added.
    """
    if groups.shape[1] == 1:
        return 0.0
    chips = fabric.chip[groups]
    if collective in ("all_reduce", "all_gather", "reduce_scatter"):
        sent = _sent_by_chips(chips, nbytes, fabric.network.num_chips)
        sent *= 2 if collective == "all_reduce" else 1
    elif collective == "all_to_all":
        sent = _sent_to_others(chips, nbytes, fabric.network.num_chips)
    elif collective == "collective_permute":
        away = chips != np.roll(chips, -shift, 1)
        sent = _count(chips[away], fabric) * (nbytes / groups.shape[1])
    else:
        away = (chips != chips[:, [root]]).any(1) if collective == "broadcast" else chips[:, root] != chips[:, target]
        sent = _count(chips[away, root], fabric) * nbytes
    out = fabric.bytes_per_second[: fabric.num_links].reshape(6, -1).sum(0)
    return float(np.divide(sent, out, out=np.zeros_like(out), where=sent > 0).max(initial=0.0))


def _count(chips: IntArray, fabric: Fabric) -> FloatArray:
    return np.bincount(chips, minlength=fabric.network.num_chips).astype(np.float64)


def _sent_by_chips(chips: IntArray, nbytes: float, num_chips: int) -> FloatArray:
    """Return ``(M-1)/M V`` for every chip, summed over its groups of ``M`` chips."""
    ordered = np.sort(chips, axis=1)
    is_first = np.ones(chips.shape, np.bool_)
    is_first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    count = is_first.sum(1)
    part = np.repeat((count - 1) / count, count)
    return np.asarray(np.bincount(ordered[is_first], part, num_chips) * nbytes, np.float64)


def _sent_to_others(chips: IntArray, nbytes: float, num_chips: int) -> FloatArray:
    """Return ``V/N^2`` for every pair of members on different chips, summed by the sender's chip."""
    count, size = chips.shape
    group = np.arange(count)[:, None] * num_chips
    _, inverse, members = np.unique((chips + group).ravel(), return_inverse=True, return_counts=True)
    others = size - members[inverse.reshape(-1)]
    sent: FloatArray = np.bincount(chips.ravel(), others, num_chips) * nbytes / size**2
    return sent
