"""Which physical core runs each logical core of each replica."""

from __future__ import annotations

import enum
import operator
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ringlet.tpu.assignment.placement import computation, place
from ringlet.tpu.draw_mixin import Pictured
from ringlet.tpu.topology.coordinates import CoordinateError, as_int32, cells_of, first_repeated
from ringlet.tpu.topology.device_names import device_name, host_name
from ringlet.tpu.topology.topology import Topology

if TYPE_CHECKING:
    from ringlet.tpu.cost.cost_results import CollectiveCost

__all__ = ["SINGLE_CORE_ASSIGNMENT", "DeviceAssignment", "DeviceOrderMode"]

IntArray = np.ndarray[Any, np.dtype[np.int32]]

# The core assignment of one replica with one core, the first of the mesh.
SINGLE_CORE_ASSIGNMENT = [[[0, 0, 0, 0]]]


class DeviceOrderMode(enum.IntEnum):
    """How :meth:`DeviceAssignment.build` orders devices.

    Attributes
    ----------
    AUTO
        Rings where they can be laid, meshes elsewhere.
    RING
        Rings; an error where they cannot be laid.
    MESH
        One axis inside the other.

    Examples
    --------
    >>> import ringlet
    >>> [mode.name for mode in ringlet.tpu.DeviceOrderMode]
    ['AUTO', 'RING', 'MESH']
    """

    AUTO = 0
    RING = 1
    MESH = 2


class DeviceAssignment(Pictured):
    """Which physical core runs each logical core of each replica.

    :meth:`build` makes one for a slice. The constructor takes any assignment of distinct cores that have a device.

    Parameters
    ----------
    topology : Topology
    core_assignment : array of int, shape (replicas, cores per replica, 4)
        Coordinates x, y, z and core. It is copied.

    Raises
    ------
    ValueError
        If an argument is of another kind or shape.
    CoordinateError
        If a core is outside of the mesh, has no device, or is assigned twice; this is a ``ValueError`` and an
        ``IndexError``.

    References
    ----------
    tensorflow/tensorflow, ``tensorflow/python/tpu/device_assignment.py``: everything but `cost`, `objective` and the
    drawings is as ``tf.tpu.experimental.DeviceAssignment`` has it.

    Examples
    --------
    >>> import ringlet
    >>> topology = ringlet.tpu.Topology.from_accelerator_type("v3-8")
    >>> assignment = ringlet.tpu.DeviceAssignment.build(topology, [1, 1, 1, 2], num_replicas=4)
    >>> assignment
    <DeviceAssignment: 4 replicas of 2 cores on a v3-8 slice, mesh_shape [2 2 1 2]>
    >>> assignment.coordinates(replica=2, logical_core=1)
    (1, 1, 0, 1)
    >>> assignment.tpu_device(2, 1, job="worker")
    '/job:worker/task:0/device:TPU:7'
    >>> assignment.lookup_replicas(task_id=0, logical_core=1)
    [0, 1, 2, 3]
    """

    def __init__(self, topology: Topology, core_assignment: Any) -> None:
        if not isinstance(topology, Topology):
            raise ValueError(f"topology must be a Topology object, got {type(topology)}")
        cores = as_int32("core_assignment", core_assignment)
        if cores.ndim != 3:
            raise ValueError(f"core_assignment must be a rank 3 numpy array, got shape {cores.shape}")
        if cores.shape[-1] != topology.mesh_rank:
            raise ValueError(
                f"core_assignment.shape[-1] must have size equal to topology rank ({topology.mesh_rank}), got "
                f"core_assignment.shape={cores.shape}"
            )
        _check_cores(topology, cores)
        self._hold(topology, cores)

    def _hold(self, topology: Topology, cores: IntArray) -> None:
        cores.flags.writeable = False
        self._topology = topology
        self._core_assignment = cores
        self._num_replicas: int = cores.shape[0]
        self._num_cores_per_replica: int = cores.shape[1]
        # Tables of the look-ups, by replica and logical core, made at the first of them.
        self._tasks: list[list[int]] = []
        self._ordinals: list[list[int]] = []
        self._hosts: list[list[str]] = []
        self._hosts_of_job: dict[str, list[list[str]]] = {}

    @classmethod
    def build(
        cls,
        topology: Topology | bytes,
        computation_shape: Sequence[int] | IntArray | None = None,
        computation_stride: Sequence[int] | IntArray | None = None,
        num_replicas: int = 1,
        device_order_mode: DeviceOrderMode = DeviceOrderMode.AUTO,
        *,
        objective: str | Callable[..., float] | None = None,
    ) -> DeviceAssignment:
        """Place replicas compactly on a slice.

        Parameters
        ----------
        topology : Topology or bytes
            The slice, or its serialized ``TopologyProto``. Where devices are missing, replicas take those that there
            are in the order of tasks, whatever the order mode.
        computation_shape : sequence of 4 ints, optional
            Cores of one replica along x, y, z, and per chip; a single core by default.
        computation_stride : sequence of 4 ints, optional
            How far apart these are along each axis; other replicas fill the places between. Neighbours by default.
        num_replicas : int
            At least 0, at most what finds room.
        device_order_mode : DeviceOrderMode
            Rings need replicas of whole chips without stride that fill the slice.
        objective : str or callable, optional
            Search for an assignment that costs less by the model of links, never worse than the one above:
            ``"ring"``, ``"halo"``, or a function. See ``ringlet.tpu.assignment.order_search``.

        Returns
        -------
        DeviceAssignment

        Raises
        ------
        ValueError
            If the shapes are not of four positive numbers, do not fit into the mesh, if the replicas find no room,
            or if rings are asked for and cannot be laid.

        Examples
        --------
        >>> import ringlet
        >>> topology = ringlet.tpu.Topology.from_accelerator_type("v4-8", megacore=True)
        >>> ringlet.tpu.DeviceAssignment.build(topology, num_replicas=4).core_assignment[:, 0].tolist()
        [[0, 0, 0, 0], [1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 0, 0]]
        """
        if isinstance(topology, bytes):
            topology = Topology(serialized=topology)
        if not isinstance(topology, Topology):
            raise ValueError(f"`topology` is not a Topology object; got {type(topology)}")
        shape = computation("computation_shape", computation_shape)
        stride = computation("computation_stride", computation_stride)
        mode = _mode(device_order_mode)
        cores = place(topology, shape, stride, operator.index(num_replicas), mode.name)
        assignment = cls.__new__(cls)
        assignment._hold(topology, cores)
        if objective is None:
            return assignment
        from ringlet.tpu.assignment.order_search import improve

        assignment._hold(topology, improve(assignment, objective))
        return assignment

    # --- as TensorFlow has it ---------------------------------------------------------------------------------------

    @property
    def topology(self) -> Topology:
        """The slice."""
        return self._topology

    @property
    def num_cores_per_replica(self) -> int:
        """How many logical cores each replica has."""
        return self._num_cores_per_replica

    @property
    def num_replicas(self) -> int:
        """How many replicas there are."""
        return self._num_replicas

    @property
    def core_assignment(self) -> IntArray:
        """Coordinates of each logical core: read-only int32, shape (replicas, cores per replica, 4)."""
        return self._core_assignment

    def coordinates(self, replica: int, logical_core: int) -> tuple[int, ...]:
        """Give the coordinates x, y, z and core of a logical core."""
        try:
            return tuple(self._core_assignment[replica, logical_core].tolist())
        except IndexError:
            raise self._no_core(replica, logical_core) from None

    def lookup_replicas(self, task_id: int, logical_core: int) -> list[int]:
        """Give the replicas that have this logical core on a device of this task, in order.

        Raises
        ------
        ValueError
            If there is none.
        """
        keys, replicas = self._replicas_by_key
        found: list[int] = []
        with suppress(TypeError):  # what is no number is no task either
            if 0 <= logical_core < self._num_cores_per_replica:
                key = task_id * self._num_cores_per_replica + logical_core
                found = replicas[bisect_left(keys, key) : bisect_right(keys, key)]
        if not found:
            raise ValueError(f"Can not find any replica in task: {task_id} contains logical_core: {logical_core} ")
        return found

    def tpu_ordinal(self, replica: int = 0, logical_core: int = 0) -> int:
        """Give the number, in its task, of the device that runs a logical core."""
        try:
            return self._ordinals[replica][logical_core]
        except IndexError:
            return self._places_again(replica, logical_core)[1]

    def host_device(self, replica: int = 0, logical_core: int = 0, job: str | None = None) -> str:
        """Give the name of the CPU of the host that runs a logical core."""
        try:
            if job is None:
                return self._hosts[replica][logical_core]
            return self._hosts_of_job[job][replica][logical_core]
        except (IndexError, KeyError):
            task, _ = self._places_again(replica, logical_core)
            names = [host_name(number, job) for number in range(self._topology.num_tasks)]
            hosts = [[names[number] for number in numbers] for numbers in self._tasks]
            if job is None:
                self._hosts = hosts
            else:
                self._hosts_of_job[job] = hosts
            return names[task]

    def tpu_device(self, replica: int = 0, logical_core: int = 0, job: str | None = None) -> str:
        """Give the name of the device that runs a logical core."""
        try:
            return device_name(self._tasks[replica][logical_core], self._ordinals[replica][logical_core], job)
        except IndexError:
            return device_name(*self._places_again(replica, logical_core), job)

    def _places_again(self, replica: int, logical_core: int) -> tuple[int, int]:
        """Task and ordinal of a logical core that the tables do not have: nobody has made them yet, or it is none."""
        if not self._ordinals:  # the one that is set last: another thread may be on its way
            each = max(1, self._topology.num_tpus_per_task)
            self._tasks, self._ordinals = (self._devices // each).tolist(), (self._devices % each).tolist()
        try:
            return self._tasks[replica][logical_core], self._ordinals[replica][logical_core]
        except IndexError:
            raise self._no_core(replica, logical_core) from None

    def _no_core(self, replica: object, logical_core: object) -> IndexError:
        return IndexError(
            f"replica {replica}, logical core {logical_core}: there are {self.num_replicas} replicas of "
            f"{self.num_cores_per_replica} cores."
        )

    @cached_property
    def _devices(self) -> IntArray:
        """Number of the device of each logical core, over all tasks: shape (replicas, cores per replica)."""
        topology = self._topology
        cells = cells_of("core_assignment", self._core_assignment, topology.mesh_shape.tolist())
        devices: IntArray = topology._device_at[cells]
        return devices.reshape(self._num_replicas, self._num_cores_per_replica)

    @cached_property
    def _replicas_by_key(self) -> tuple[list[int], list[int]]:
        """Task * cores + logical core, rising, and the replica of each; of equal ones in the order of replicas."""
        cores = self._num_cores_per_replica
        task = self._devices // max(1, self._topology.num_tpus_per_task)
        keys = (task.astype(np.int64) * cores + np.arange(cores)).ravel()
        order = np.argsort(keys, kind="stable")
        return keys[order].tolist(), (order // max(1, cores)).tolist()

    # --- what it costs and how it looks -----------------------------------------------------------------------------

    def cost(self, collective: str, nbytes: float, axis: str = "replica", **options: Any) -> CollectiveCost:
        """Predict what a collective takes on this slice.

        Parameters
        ----------
        collective : str
            Such as ``"all_reduce"``.
        nbytes : float
            Size of the whole array.
        axis : str
            Who takes part: ``"replica"``, the replicas for each logical core.
        **options
            As ``ringlet.tpu.cost.collective_cost.collective_cost`` has them.

        Returns
        -------
        CollectiveCost
        """
        from ringlet.tpu.cost.collective_cost import collective_cost

        return collective_cost(self, collective, nbytes, axis, **options)

    def __repr__(self) -> str:
        name = self._topology.accelerator_type
        cores, replicas = self.num_cores_per_replica, self.num_replicas
        return (
            f"<DeviceAssignment: {replicas} replica{'s' * (replicas != 1)} of {cores} core{'s' * (cores != 1)} on "
            f"{f'a {name} slice, ' if name else ''}mesh_shape {self._topology.mesh_shape}>"
        )


def _check_cores(topology: Topology, cores: IntArray) -> None:
    """Every core exists, has a device, and is assigned once."""
    cells = cells_of("core_assignment", cores, topology.mesh_shape.tolist())
    if (absent := np.flatnonzero(topology._device_at[cells] < 0)).size:
        replica, logical_core = divmod(int(absent[0]), cores.shape[1])
        raise CoordinateError(
            f"core_assignment[{replica}, {logical_core}] is {tuple(cores[replica, logical_core].tolist())}, which has "
            "no device: see topology.missing_devices."
        )
    if (repeated := first_repeated(cells, topology._device_at.size)) is not None:
        (replica, logical_core), (other, other_core) = (divmod(place, cores.shape[1]) for place in repeated)
        raise CoordinateError(
            f"core_assignment has {tuple(cores[replica, logical_core].tolist())} twice: for logical core "
            f"{logical_core} of replica {replica} and for logical core {other_core} of replica {other}. A core "
            "runs one of them."
        )


def _mode(mode: Any) -> DeviceOrderMode:
    try:
        return DeviceOrderMode[mode.upper()] if isinstance(mode, str) else DeviceOrderMode(mode)
    except (KeyError, ValueError):
        raise ValueError(f"device_order_mode is {mode!r}: expected a DeviceOrderMode, AUTO, RING or MESH.") from None
