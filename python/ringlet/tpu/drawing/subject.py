"""Input of a drawing as arrays over the chips: hosts, devices, replicas and link loads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ringlet.tpu.topology.accelerator_type import shape_text
from ringlet.tpu.topology.links import twist_of
from ringlet.tpu.topology.topology_of import topology_of
from ringlet.tpu.topology.topology_text import chips_used, counted, unit_of

if TYPE_CHECKING:
    from ringlet.tpu.assignment.device_assignment import DeviceAssignment
    from ringlet.tpu.cost.cost_results import CollectiveCost, StepCost
    from ringlet.tpu.topology.topology import Topology

# Drawable objects.
Drawn: TypeAlias = "Topology | DeviceAssignment | CollectiveCost | StepCost"

Integers = NDArray[np.int64]

_RING_CHOICES = ("auto", "cores", "replicas", "none")


@dataclass(frozen=True, eq=False)
class Loads:
    """Bytes over each directed link between chips."""

    source: Integers
    target: Integers
    axis: Integers
    is_wrap: NDArray[np.bool_]
    amount: NDArray[np.float64]

    @property
    def highest(self) -> float:
        """The load of the busiest link; 0 without links."""
        return float(self.amount.max(initial=0.0))

    @property
    def is_along_z(self) -> bool:
        """Whether a link along z has a load."""
        return bool((self.amount[self.axis == 2] > 0).any())

    def classes(self, count: int) -> Integers:
        """Return the class of each link: 0 without load, else 1 to `count` for equal parts of the highest load."""
        return np.ceil(self.amount / (self.highest or 1.0) * count - 1e-9).astype(np.int64)

    def classes_of_chips(self, count: int, shape: tuple[int, int, int]) -> Integers:
        """Return the class of the busiest link that leaves each chip."""
        found = np.zeros(shape, np.int64)
        np.maximum.at(found, tuple(self.source.T), self.classes(count))
        return found


@dataclass(frozen=True, eq=False)
class Subject:
    """A slice, and the replicas on it; arrays by mesh coordinate have -1 at positions without a device or replica.

    `periods` has for each wrapped axis the steps along x, y and z that lead back to the same chip; without a twist,
    along that axis only. `unit` is the noun for a device: "chip" or "core".
    """

    title: str
    shape: tuple[int, int, int]
    wrap: tuple[bool, bool, bool]
    periods: tuple[tuple[int, int, int], ...]
    task: Integers
    device: Integers
    replica: Integers
    logical_core: Integers
    core_assignment: Integers
    loads: Loads | None
    unit: str

    @property
    def cores(self) -> int:
        """Number of devices of a full chip."""
        return int(self.task.shape[3])

    @property
    def num_replicas(self) -> int:
        """Number of replicas; 0 without an assignment."""
        return int(self.core_assignment.shape[0])

    @property
    def num_logical_cores(self) -> int:
        """Number of logical cores of each replica; 0 without an assignment."""
        return int(self.core_assignment.shape[1])

    @property
    def host(self) -> Integers:
        """Host of each chip; -1 for chips without devices."""
        hosts: Integers = self.task.max(axis=3)
        return hosts


def subject_of(drawn: Drawn, loads: ArrayLike | None = None) -> Subject:
    """Return the input for drawing a topology, an assignment with its topology, or a cost with its link loads."""
    topology = topology_of(drawn)
    loads = getattr(drawn, "link_bytes", None) if loads is None else loads
    assigned = getattr(getattr(drawn, "assignment", drawn), "core_assignment", np.zeros((0, 0, 4)))
    core_assignment = np.asarray(assigned, np.int64)
    x, y, z, cores = map(int, topology.mesh_shape)
    mesh = (x, y, z, cores)
    per_task = max(1, topology.num_tpus_per_task)
    at = topology._device_at.reshape(mesh).astype(np.int64)
    replica, logical_core = _numbered(core_assignment, mesh)
    return Subject(
        title=_title(topology, core_assignment),
        shape=topology.chip_shape,
        wrap=topology.wrap,
        periods=_periods(topology),
        task=at // per_task,
        device=np.where(at < 0, -1, at % per_task),
        replica=replica,
        logical_core=logical_core,
        core_assignment=core_assignment,
        loads=None if loads is None else _loads(topology, mesh, loads),
        unit=unit_of(topology),
    )


def rings_of(subject: Subject, rings: str) -> list[Integers]:
    """Return the rings to draw, each as the coordinates of its cores in order; raise ValueError for an unknown kind."""
    if rings not in _RING_CHOICES:
        choices = ", ".join(map(repr, _RING_CHOICES))
        raise ValueError(f"rings must be one of {choices}, got {rings!r}")
    if rings == "none" or subject.core_assignment.size == 0 or (rings == "auto" and subject.loads is not None):
        return []
    if rings == "replicas" or (rings == "auto" and subject.num_logical_cores == 1):
        return [subject.core_assignment[:, 0]]
    return list(subject.core_assignment)


def _periods(topology: Topology) -> tuple[tuple[int, int, int], ...]:
    twist = (twist_of(topology.chip_shape) if topology.twisted else None) or ((0, 0, 0),) * 3
    periods = np.diag(topology.chip_shape) + np.array(twist)
    return tuple((int(x), int(y), int(z)) for x, y, z in periods[np.array(topology.wrap)])


def _numbered(core_assignment: Integers, mesh: tuple[int, int, int, int]) -> tuple[Integers, Integers]:
    """Return the replica and the logical core at each mesh coordinate."""
    replica, logical_core = np.full(mesh, -1), np.full(mesh, -1)
    num_replicas, num_cores = core_assignment.shape[:2]
    places = tuple(core_assignment.reshape(-1, 4).T)
    replica[places] = np.repeat(np.arange(num_replicas), num_cores)
    logical_core[places] = np.tile(np.arange(num_cores), num_replicas)
    return replica, logical_core


def _loads(topology: Topology, mesh: Sequence[int], loads: ArrayLike) -> Loads:
    links = topology.links()
    amount = np.asarray(loads, np.float64)
    if amount.shape != links.source.shape:
        raise ValueError(
            f"loads has shape {amount.shape}, but the topology has {len(links.source)} directed links: pass one number "
            f"for each, in the order of topology.links()"
        )
    if not (np.isfinite(amount) & (amount >= 0)).all():
        wrong = int(np.flatnonzero(~(np.isfinite(amount) & (amount >= 0)))[0])
        raise ValueError(f"loads[{wrong}] is {amount[wrong]}: loads must be bytes, finite and not negative")
    source, target = (np.stack(np.unravel_index(chips, mesh[:3]), axis=1) for chips in (links.source, links.target))
    return Loads(source, target, np.asarray(links.axis), np.asarray(links.is_wrap), amount)


def _title(topology: Topology, core_assignment: Integers) -> str:
    generation = topology.generation
    name = topology.accelerator_type or (f"TPU {generation.name}" if generation else "TPU")
    shape = shape_text(topology.chip_shape, generation.torus_rank if generation else 3)
    counts = [(topology.num_chips, "chip"), (topology.num_tasks, "host"), (topology.num_devices, "device")]
    title = f"{name}, {shape}: {', '.join(counted(*count) for count in counts)}"
    if core_assignment.size:
        replicas, cores, _ = core_assignment.shape
        title += f"; {counted(replicas, 'replica')} of {counted(cores, unit_of(topology))}"
        title += f", {used}" if (used := chips_used(topology, core_assignment)) else ""
    return title
