"""DeviceAssignment: the physical core of each logical core of each replica."""

from __future__ import annotations

import enum
import operator
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ringlet.errors import CoordinateError
from ringlet.tpu.assignment.placement import computation, place
from ringlet.tpu.draw_mixin import Drawable
from ringlet.tpu.topology.coordinates import as_int32, cells_of, first_repeated
from ringlet.tpu.topology.topology import Topology, device_name, host_name
from ringlet.tpu.topology.topology_text import chips_used, counted, unit_of

if TYPE_CHECKING:
    from ringlet.tpu.cost.cost_results import CollectiveCost

IntArray = np.ndarray[Any, np.dtype[np.int32]]

# The core assignment of one replica with one core, the first of the mesh.
SINGLE_CORE_ASSIGNMENT = [[[0, 0, 0, 0]]]


class DeviceOrderMode(enum.IntEnum):
    """Order in which :meth:`DeviceAssignment.build` assigns devices.

    Attributes
    ----------
    AUTO
        Rings if possible, otherwise meshes.
    RING
        Rings; an error if they are not possible.
    MESH
        Row by row, as in nested loops over the axes.

    Examples
    --------
    >>> import ringlet
    >>> [mode.name for mode in ringlet.tpu.DeviceOrderMode]
    ['AUTO', 'RING', 'MESH']
    """

    AUTO = 0
    RING = 1
    MESH = 2


class DeviceAssignment(Drawable):
    """The physical core of each logical core of each replica.

    :meth:`build` assigns the cores of a slice. The constructor accepts any assignment of distinct existing cores.

    Parameters
    ----------
    topology : Topology
    core_assignment : array of int, shape (replicas, cores per replica, 4)
        Coordinates x, y, z and core; copied.

    Raises
    ------
    ValueError
        If an argument has the wrong type or shape.
    CoordinateError
        If a core is outside the mesh, has no device, or is assigned twice. The error is a ``ValueError``
        and an ``IndexError``.

    References
    ----------
    tensorflow/tensorflow, ``tensorflow/python/tpu/device_assignment.py``: everything except `cost`, `objective` and the
    drawings is as in ``tf.tpu.experimental.DeviceAssignment``.

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
        self._assign(topology, cores)

    def _assign(self, topology: Topology, cores: IntArray) -> None:
        cores.flags.writeable = False
        self._topology = topology
        self._core_assignment = cores
        self._num_replicas: int = cores.shape[0]
        self._num_cores_per_replica: int = cores.shape[1]
        # Lookup tables by replica and logical core, built at the first lookup.
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
        """Assign replicas compactly to the cores of a slice.

        Parameters
        ----------
        topology : Topology or bytes
            The slice, or its serialized ``TopologyProto``. If devices are missing, replicas take the existing devices
            in task order, regardless of the order mode.
        computation_shape : sequence of 4 ints, optional
            Cores of one replica along x, y, z, and per chip; default: a single core.
        computation_stride : sequence of 4 ints, optional
            Distance between these cores along each axis; other replicas fill the gaps. Default: adjacent cores.
        num_replicas : int
            At least 0, at most the number of replicas that fit.
        device_order_mode : DeviceOrderMode
            Rings require replicas of whole chips, without stride, that fill the slice.
        objective : str or callable, optional
            Search for an assignment of lower modelled cost, never worse than the default: ``"ring"``, ``"halo"``,
            a function of the assignment, or an object such as a `HaloObjective`.

        Returns
        -------
        DeviceAssignment

        Raises
        ------
        ValueError
            If the shapes are not four positive numbers or exceed the mesh, if the replicas do not fit, or if rings are
            requested but not possible.
        TypeError
            If `num_replicas` is not an integer, or `objective` is of another type.

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
            raise ValueError(
                f"`topology` is not a Topology object; got {type(topology)}: pass "
                "Topology.from_accelerator_type('v4-128'), or the topology of a TPUClusterResolver"
            )
        shape = computation("computation_shape", computation_shape)
        stride = computation("computation_stride", computation_stride)
        mode = _mode(device_order_mode)
        if not hasattr(num_replicas, "__index__"):
            raise TypeError(f"num_replicas must be an integer, got {num_replicas!r}: write num_replicas=64")
        cores = place(topology, shape, stride, operator.index(num_replicas), mode.name)
        assignment = cls.__new__(cls)
        assignment._assign(topology, cores)
        if objective is None:
            return assignment
        from ringlet.tpu.assignment.order_search import improve

        assignment._assign(topology, improve(assignment, objective))
        return assignment

    # --- TensorFlow's members -----------------------------------------------------------------------------------------

    @property
    def topology(self) -> Topology:
        """Topology of the slice."""
        return self._topology

    @property
    def num_cores_per_replica(self) -> int:
        """Number of logical cores of each replica."""
        return self._num_cores_per_replica

    @property
    def num_replicas(self) -> int:
        """Number of replicas."""
        return self._num_replicas

    @property
    def core_assignment(self) -> IntArray:
        """Coordinates of each logical core: read-only int32, shape (replicas, cores per replica, 4)."""
        return self._core_assignment

    def coordinates(self, replica: int, logical_core: int) -> tuple[int, ...]:
        """Return the coordinates x, y, z and core of a logical core."""
        try:
            return tuple(self._core_assignment[replica, logical_core].tolist())
        except IndexError:
            raise self._no_core(replica, logical_core) from None

    def lookup_replicas(self, task_id: int, logical_core: int) -> list[int]:
        """Return the replicas, in ascending order, whose core `logical_core` is on a device of this task.

        Raises
        ------
        ValueError
            If no replica has the logical core on this task.
        """
        keys, replicas = self._replicas_by_key
        found: list[int] = []
        with suppress(TypeError):  # a task_id that is not a number has no replicas
            if 0 <= logical_core < self._num_cores_per_replica:
                key = task_id * self._num_cores_per_replica + logical_core
                found = replicas[bisect_left(keys, key) : bisect_right(keys, key)]
        if not found:
            raise ValueError(f"Can not find any replica in task: {task_id} contains logical_core: {logical_core} ")
        return found

    def tpu_ordinal(self, replica: int = 0, logical_core: int = 0) -> int:
        """Return the index, within its task, of the device that runs a logical core."""
        try:
            return self._ordinals[replica][logical_core]
        except IndexError:
            return self._lookup_uncached(replica, logical_core)[1]

    def host_device(self, replica: int = 0, logical_core: int = 0, job: str | None = None) -> str:
        """Return the name of the CPU device of the host that runs a logical core."""
        try:
            if job is None:
                return self._hosts[replica][logical_core]
            return self._hosts_of_job[job][replica][logical_core]
        except (IndexError, KeyError):
            task, _ = self._lookup_uncached(replica, logical_core)
            names = [host_name(number, job) for number in range(self._topology.num_tasks)]
            hosts = [[names[number] for number in numbers] for numbers in self._tasks]
            if job is None:
                self._hosts = hosts
            else:
                self._hosts_of_job[job] = hosts
            return names[task]

    def tpu_device(self, replica: int = 0, logical_core: int = 0, job: str | None = None) -> str:
        """Return the name of the device that runs a logical core."""
        try:
            return device_name(self._tasks[replica][logical_core], self._ordinals[replica][logical_core], job)
        except IndexError:
            return device_name(*self._lookup_uncached(replica, logical_core), job)

    def _lookup_uncached(self, replica: int, logical_core: int) -> tuple[int, int]:
        """Build the lookup tables if needed; return the task and ordinal of a logical core, or raise IndexError."""
        if not self._ordinals:  # assigned last: another thread may be building the tables
            each = max(1, self._topology.num_tpus_per_task)
            self._tasks, self._ordinals = (self._devices // each).tolist(), (self._devices % each).tolist()
        try:
            return self._tasks[replica][logical_core], self._ordinals[replica][logical_core]
        except IndexError:
            raise self._no_core(replica, logical_core) from None

    def _no_core(self, replica: object, logical_core: object) -> IndexError:
        return IndexError(
            f"replica {replica}, logical core {logical_core} does not exist: this assignment has {self._size}."
        )

    @cached_property
    def _devices(self) -> IntArray:
        """Return each logical core's device, numbered over all tasks, with shape (replicas, cores per replica)."""
        topology = self._topology
        cells = cells_of("core_assignment", self._core_assignment, topology.mesh_shape.tolist())
        devices: IntArray = topology._device_at[cells]
        return devices.reshape(self._num_replicas, self._num_cores_per_replica)

    @cached_property
    def _replicas_by_key(self) -> tuple[list[int], list[int]]:
        """Return the keys ``task * cores + logical core`` and their replicas, sorted by key, then by replica."""
        cores = self._num_cores_per_replica
        task = self._devices // max(1, self._topology.num_tpus_per_task)
        keys = (task.astype(np.int64) * cores + np.arange(cores)).ravel()
        order = np.argsort(keys, kind="stable")
        return keys[order].tolist(), (order // max(1, cores)).tolist()

    # --- cost ---------------------------------------------------------------------------------------------------------

    def cost(self, collective: str, nbytes: float | str, axis: str = "replica", **options: Any) -> CollectiveCost:
        """Predict the duration of a collective on this slice.

        Parameters
        ----------
        collective : str
            Kind of collective, such as ``"all_reduce"``.
        nbytes : float or str
            Size of the whole array, in bytes or as text such as ``"1GiB"``.
        axis : str
            Groups: the replicas of each logical core (``"replica"``), the logical cores of each replica (``"core"``),
            or all devices (``"all"``).
        **options
            As for ``ringlet.tpu.cost.collective_cost.collective_cost``.

        Returns
        -------
        CollectiveCost
        """
        from ringlet.tpu.cost.collective_cost import collective_cost

        return collective_cost(self, collective, nbytes, axis, **options)

    def __repr__(self) -> str:
        name = self._topology.accelerator_type
        slice_ = f"a {name} slice, " if name else ""
        return f"<DeviceAssignment: {self._size} on {slice_}mesh_shape {self._topology.mesh_shape}{self._chips_used}>"

    @property
    def _chips_used(self) -> str:
        topology = self._topology
        used = chips_used(topology, self._core_assignment)
        can_have_one_each = (
            not topology.is_megacore
            and topology.generation is not None
            and topology.generation.has_megacore
            and self._num_cores_per_replica == 1
            and self._num_replicas <= topology.num_chips
        )
        remedy = " (a topology with megacore=True has one replica on each chip)" if can_have_one_each else ""
        return f", {used}{remedy}" if used else ""

    @property
    def _size(self) -> str:
        each = counted(self._num_cores_per_replica, unit_of(self._topology))
        return f"{counted(self._num_replicas, 'replica')} of {each}"


def _check_cores(topology: Topology, cores: IntArray) -> None:
    cells = cells_of("core_assignment", cores, topology.mesh_shape.tolist())
    if (absent := np.flatnonzero(topology._device_at[cells] < 0)).size:
        replica, logical_core = divmod(int(absent[0]), cores.shape[1])
        raise CoordinateError(
            f"core_assignment[{replica}, {logical_core}] is {tuple(cores[replica, logical_core].tolist())}, which has "
            "no device: assign cores that are not in topology.missing_devices."
        )
    if (repeated := first_repeated(cells, topology._device_at.size)) is not None:
        (replica, logical_core), (other, other_core) = (divmod(place, cores.shape[1]) for place in repeated)
        raise CoordinateError(
            f"core_assignment has {tuple(cores[replica, logical_core].tolist())} twice: for logical core "
            f"{logical_core} of replica {replica} and for logical core {other_core} of replica {other}. Assign each "
            "core once."
        )


def _mode(mode: Any) -> DeviceOrderMode:
    try:
        return DeviceOrderMode[mode.upper()] if isinstance(mode, str) else DeviceOrderMode(mode)
    except (KeyError, ValueError):
        raise ValueError(f"device_order_mode is {mode!r}: expected a DeviceOrderMode, AUTO, RING or MESH.") from None
