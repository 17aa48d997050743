"""Topology: positions of cores, chips, devices and hosts of a TPU slice."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ringlet.errors import CoordinateError
from ringlet.tpu.draw_mixin import Drawable
from ringlet.tpu.topology import topology_proto
from ringlet.tpu.topology.accelerator_type import AcceleratorType
from ringlet.tpu.topology.coordinates import as_int32, cells_of, first_repeated
from ringlet.tpu.topology.generation import GENERATIONS, ChipShape, Generation
from ringlet.tpu.topology.links import Links, links_of, twist_of
from ringlet.tpu.topology.topology_text import describe

IntArray = np.ndarray[Any, np.dtype[np.int32]]

# Maximum number of cores: more than any TPU has, but few enough for arrays with one entry per core.
_MOST_CORES = 2**24


class Topology(Drawable):
    """The mesh of cores of a TPU slice, and the task and device of each core.

    A *core* has coordinates x, y, z and its number on the chip. A *device* is the unit that frameworks show: one core,
    or both cores of a chip combined (*megacore*). A *task* is a process, usually one per host. Arrays are read-only.

    Parameters
    ----------
    serialized : bytes, optional
        A serialized ``TopologyProto``. If given, `mesh_shape` and `device_coordinates` are ignored.
    mesh_shape : sequence of 4 ints, optional
        Chips along x, y and z, and devices per chip.
    device_coordinates : array of int, shape (tasks, devices per task, 4), optional
        Coordinates of each device.
    generation : str or Generation, optional
        Generation of the TPU, such as ``"v4"``, for cost models. Default: unknown.
    wrap : sequence of 3 bools, optional
        Whether x, y and z wrap around. Default: the generation's rule; no axis wraps if the generation is unknown.
    twisted : bool
        Whether the wrap links of the short axes of an n x n x 2n or n x 2n x 2n torus are shifted along the long axes
        (see :meth:`links`).

    Attributes
    ----------
    generation : Generation or None
    accelerator_type : str or None
        Name of the slice, such as ``"v4-32"``, if known.
    wrap : tuple of 3 bools
    twisted : bool

    Raises
    ------
    ValueError
        If the bytes are not a valid message, an argument has the wrong shape, the mesh is too large, the generation is
        unknown, or the slice cannot be twisted.
    TypeError
        If neither `serialized`, which must be bytes, nor both `mesh_shape` and `device_coordinates` are given.
    CoordinateError
        If a coordinate is outside the mesh, or is assigned to two devices. The error is a ``ValueError``
        and an ``IndexError``.

    References
    ----------
    tensorflow/tensorflow, ``tensorflow/python/tpu/topology.py``: everything except the generation, wrap, links and
    hosts is as in ``tf.tpu.experimental.Topology``.

    Examples
    --------
    >>> import ringlet
    >>> topology = ringlet.tpu.Topology(
    ...     mesh_shape=[2, 1, 1, 2],
    ...     device_coordinates=[[[0, 0, 0, 0], [0, 0, 0, 1]], [[1, 0, 0, 0], [1, 0, 0, 1]]],
    ... )
    >>> topology.num_tasks, topology.num_tpus_per_task
    (2, 2)
    >>> topology.tpu_device_name_at_coordinates([1, 0, 0, 1], job="worker")
    '/job:worker/task:1/device:TPU:1'
    >>> ringlet.tpu.Topology.from_accelerator_type("v4-32", megacore=True)
    Topology of a v4-32 slice
      cores    32  2 on each chip; the number in v4-32 counts these
      chips    16  2x2x4, no axis wraps
      devices  16  1 for each chip, both cores as one; mesh_shape [2 2 4 1]
      hosts     4  with 4 chips and 4 devices each
    """

    def __init__(
        self,
        serialized: bytes | None = None,
        mesh_shape: Sequence[int] | IntArray | None = None,
        device_coordinates: Any = None,
        *,
        generation: str | Generation | None = None,
        wrap: Sequence[bool] | None = None,
        twisted: bool = False,
    ) -> None:
        if isinstance(serialized, str):
            raise TypeError(
                f"serialized must be bytes, got {serialized!r}: write Topology.from_accelerator_type({serialized!r})"
            )
        if serialized:
            self._mesh_shape, self._device_coordinates = parsed(serialized)
        else:
            self._mesh_shape, self._device_coordinates = checked(mesh_shape, device_coordinates)
        self._serialized = bytes(serialized) if serialized else None
        x, y, z, cores = self._mesh_shape.tolist()
        self._shape: tuple[int, int, int, int] = (x, y, z, cores)
        check_size(self._shape)
        self._cells = cells_of("device_coordinates", self._device_coordinates, self._shape)
        self._check_distinct()
        for array in (self._mesh_shape, self._device_coordinates):
            array.flags.writeable = False
        self.generation: Generation | None = find_generation(generation)
        self.accelerator_type: str | None = None
        self.wrap: tuple[bool, bool, bool] = self._wrap(wrap)
        self.twisted: bool = bool(twisted)
        if twisted and (twist_of(self.chip_shape) is None or not all(self.wrap)):
            raise ValueError(
                f"{self.chip_shape} chips (wrapped: {self.wrap}) cannot form a twisted torus: the sides must be "
                "n x n x 2n or n x 2n x 2n, in any order, and all must wrap."
            )

    @classmethod
    def from_accelerator_type(
        cls, name: str, megacore: bool = False, *, wrap: Sequence[bool] | None = None, twisted: bool = False
    ) -> Topology:
        """Return the topology of the slice with this name.

        Parameters
        ----------
        name : str
            ``"v4-32"``, ``"v5litepod-16"``, ``"v5p-4x4x8"``, ``"v5e:8x16"``, ``"ct6e-standard-8t"`` and so on.
        megacore : bool
            Whether both cores of a chip are one device, the default of v4 and v5p hardware. Default: one device per
            core.
        wrap : sequence of 3 bools, optional
            Whether x, y and z wrap around; default: as in real slices.
        twisted : bool
            As for the class.

        Returns
        -------
        Topology
            Its tasks are the hosts of the slice.

        Raises
        ------
        ValueError
            If no such slice exists (the message lists the nearest names), or its cores cannot be combined.

        Examples
        --------
        >>> import ringlet
        >>> ringlet.tpu.Topology.from_accelerator_type("v4-16").mesh_shape
        array([2, 2, 2, 2], dtype=int32)
        """
        kind = AcceleratorType.parse(name)
        host = kind.generation.host_shape_of(kind.shape)
        return cls._of_slice(kind.generation, kind.shape, host, megacore=megacore, wrap=wrap, twisted=twisted)

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None, megacore: bool = False) -> Topology:
        """Return the topology that the environment variables of a TPU machine describe.

        Parameters
        ----------
        environ : mapping of str to str, optional
            Default: ``os.environ``.
        megacore : bool
            As for :meth:`from_accelerator_type`.

        Returns
        -------
        Topology
            Its tasks are the processes that the variables describe, by default one per host.

        Raises
        ------
        ValueError
            If no variable describes the slice, one is invalid, or two contradict each other; the message names them.

        Examples
        --------
        >>> import ringlet
        >>> ringlet.tpu.Topology.from_env({"TPU_ACCELERATOR_TYPE": "v5litepod-16", "TPU_WORKER_ID": "0"}).num_tasks
        4
        """
        from ringlet.tpu.topology.tpu_environment import TPUEnvironment

        found = TPUEnvironment.read(environ)
        chips, per_chip = found.chips_per_process, found.processes_per_chip
        return cls._of_slice(found.generation, found.shape, chips, megacore=megacore, tasks_per_chip=per_chip)

    @classmethod
    def _of_slice(
        cls,
        generation: Generation | None,
        shape: ChipShape,
        task_shape: ChipShape,
        *,
        tasks_per_chip: int = 1,
        megacore: bool = False,
        wrap: Sequence[bool] | None = None,
        twisted: bool = False,
    ) -> Topology:
        cores = generation.cores_per_chip if generation else tasks_per_chip
        if megacore and generation and cores > 1 and not generation.has_megacore:
            raise ValueError(f"the {cores} cores of a {generation.name} chip cannot form one device. Omit megacore.")
        devices = 1 if megacore else cores
        check_size((*shape, devices))
        coordinates = coordinates_of_slice(shape, task_shape, devices, tasks_per_chip)
        topology = cls(
            mesh_shape=[*shape, devices],
            device_coordinates=coordinates,
            generation=generation,
            wrap=wrap,
            twisted=twisted,
        )
        kind = AcceleratorType.of(generation, shape) if generation else None
        topology.accelerator_type = kind.name if kind else None
        return topology

    def _wrap(self, wrap: Sequence[bool] | None) -> tuple[bool, bool, bool]:
        if wrap is None:
            return self.generation.wrap(self.chip_shape) if self.generation else (False, False, False)
        if len(wrap) != 3:
            raise ValueError(f"wrap must be 3 bools (whether x, y and z wrap around), got {wrap!r}.")
        x, y, z = (bool(closes) for closes in wrap)
        return x, y, z

    def _check_distinct(self) -> None:
        repeated = first_repeated(self._cells, math.prod(self._shape))
        if repeated is None:
            return
        (first_task, first), (second_task, second) = (divmod(place, self.num_tpus_per_task) for place in repeated)
        where = tuple(self._device_coordinates[first_task, first].tolist())
        raise CoordinateError(
            f"device_coordinates has {where} twice: for device {first} of task {first_task} and for device {second} of "
            f"task {second_task}. Give each device distinct coordinates."
        )

    # --- TensorFlow's members -----------------------------------------------------------------------------------------

    @property
    def mesh_shape(self) -> IntArray:
        """Chips along x, y and z, and devices per chip: int32, shape (4,)."""
        return self._mesh_shape

    @property
    def mesh_rank(self) -> int:
        """Number of axes of the mesh: 4."""
        return len(self._shape)

    @property
    def device_coordinates(self) -> IntArray:
        """Coordinates of each device: int32, shape (tasks, devices per task, 4)."""
        return self._device_coordinates

    @cached_property
    def missing_devices(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Coordinates of the cores without a device: int64, shape (missing, 4)."""
        missing: np.ndarray[Any, np.dtype[np.int64]] = np.empty((0, 4), np.int64)
        if self._cells.size < math.prod(self._shape):
            missing = np.argwhere(self._device_at.reshape(self._shape) < 0)
        missing.flags.writeable = False
        return missing

    @property
    def num_tasks(self) -> int:
        """Number of tasks."""
        return int(self._device_coordinates.shape[0])

    @property
    def num_tpus_per_task(self) -> int:
        """Number of devices of each task."""
        return int(self._device_coordinates.shape[1])

    def task_ordinal_at_coordinates(self, device_coordinates: Sequence[int]) -> int:
        """Return the task of the device at these coordinates, or -1 if there is none."""
        device = self._device(device_coordinates)
        return device // self.num_tpus_per_task if device >= 0 else -1

    def tpu_device_ordinal_at_coordinates(self, device_coordinates: Sequence[int]) -> int:
        """Return the index, within its task, of the device at these coordinates, or -1 if there is none."""
        device = self._device(device_coordinates)
        return device % self.num_tpus_per_task if device >= 0 else -1

    def cpu_device_name_at_coordinates(self, device_coordinates: Sequence[int], job: str | None = None) -> str:
        """Return the name of the CPU device on the host of the core at these coordinates."""
        return host_name(self.task_ordinal_at_coordinates(device_coordinates), job)

    def tpu_device_name_at_coordinates(self, device_coordinates: Sequence[int], job: str | None = None) -> str:
        """Return the name of the device at these coordinates."""
        task = self.task_ordinal_at_coordinates(device_coordinates)
        return device_name(task, self.tpu_device_ordinal_at_coordinates(device_coordinates), job)

    def serialized(self) -> bytes:
        """Return the topology as a serialized ``TopologyProto``: the constructor's `serialized` bytes, if given."""
        if self._serialized is None:
            flat = self._device_coordinates.reshape(-1)
            message = topology_proto.TopologyMessage(self._mesh_shape, self.num_tasks, self.num_tpus_per_task, flat)
            self._serialized = topology_proto.serialize(message)
        return self._serialized

    # --- structure ----------------------------------------------------------------------------------------------------

    @property
    def chip_shape(self) -> ChipShape:
        """Chips along x, y and z, including those without a device."""
        return self._shape[:3]

    @property
    def num_chips(self) -> int:
        """Number of chips of the mesh."""
        return math.prod(self.chip_shape)

    @property
    def num_devices(self) -> int:
        """Number of existing devices."""
        return int(self._cells.size)

    @property
    def cores_per_chip(self) -> int:
        """Cores per chip, from the generation or, if that is unknown, from the mesh."""
        return self.generation.cores_per_chip if self.generation else self._shape[3]

    @property
    def is_megacore(self) -> bool:
        """Whether a device combines several cores."""
        return self.cores_per_chip > self._shape[3]

    @cached_property
    def hosts(self) -> IntArray:
        """Task of each chip: read-only int32, shape ``chip_shape``; -1 for chips without a device.

        If tasks share a chip, its entry is the lowest of them.
        """
        device = self._device_at.reshape(-1, self._shape[3])
        task = np.where(device >= 0, device // max(1, self.num_tpus_per_task), np.iinfo(np.int32).max).min(1)
        hosts: IntArray = np.where(task == np.iinfo(np.int32).max, -1, task).astype(np.int32).reshape(self.chip_shape)
        hosts.flags.writeable = False
        return hosts

    def links(self) -> Links:
        """Return every link between two chips, one entry per direction.

        In a twisted torus, a wrap link of a short axis is shifted by half of each long axis.

        Returns
        -------
        Links

        Examples
        --------
        >>> import ringlet
        >>> ringlet.tpu.Topology.from_accelerator_type("v5e-256").links()
        <Links: 1024 directed links, 64 of them wrap>
        """
        return links_of(self.chip_shape, self.wrap, twist_of(self.chip_shape) if self.twisted else None)

    @cached_property
    def _device_at(self) -> IntArray:
        """Device at each mesh position in row-major order, numbered over all tasks; -1 for none."""
        device_at = np.full(math.prod(self._shape), -1, np.int32)
        device_at[self._cells] = np.arange(self._cells.size, dtype=np.int32)
        return device_at

    @cached_property
    def _chips_of_tasks(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Number of chips on which each task has devices."""
        chips = np.sort(self._cells.reshape(self._device_coordinates.shape[:2]) // self._shape[3], 1)
        counts: np.ndarray[Any, np.dtype[np.int64]] = (np.diff(chips) != 0).sum(1) + min(1, chips.shape[1])
        return counts

    def _device(self, coordinates: Sequence[int]) -> int:
        place = tuple(coordinates)
        if len(place) != 4:
            raise CoordinateError(f"{place} has {len(place)} numbers: expected coordinates x, y, z and core.")
        try:
            return int(self._device_at.reshape(self._shape)[place])
        except IndexError as error:
            raise CoordinateError(
                f"{place} is outside of the mesh {self._mesh_shape}: {error}. Coordinates are x, y, z and core, "
                "counted from 0."
            ) from None

    def __repr__(self) -> str:
        return describe(self)


# --- arguments, with TensorFlow's messages ----------------------------------------------------------------------------


def check_size(mesh_shape: Sequence[int]) -> None:
    """Raise ValueError for a mesh with too many cores for arrays with one entry per core."""
    if math.prod(mesh_shape) > _MOST_CORES:
        text = "x".join(map(str, mesh_shape))
        raise ValueError(f"a mesh of {text} has {math.prod(mesh_shape)} cores; the maximum is {_MOST_CORES}.")


def find_generation(generation: str | Generation | None) -> Generation | None:
    """Return a generation by name; None for None. Raise ValueError for an unknown name."""
    if generation is None or isinstance(generation, Generation):
        return generation
    if generation not in GENERATIONS:
        raise ValueError(f"unknown generation {generation!r}: expected one of {', '.join(GENERATIONS)}.")
    return GENERATIONS[generation]


def checked(mesh_shape: Any, device_coordinates: Any) -> tuple[IntArray, IntArray]:
    """Convert the arguments to arrays, and check their shapes."""
    if mesh_shape is None or device_coordinates is None:
        raise TypeError("a Topology requires `serialized`, or both `mesh_shape` and `device_coordinates`.")
    shape = as_int32("`mesh_shape`", mesh_shape)
    coordinates = as_int32("`device_coordinates`", device_coordinates)
    if shape.shape != (4,) or (shape < 1).any():
        raise ValueError(f"`mesh_shape` must be a sequence of 4 positive entries; got `mesh_shape={shape}`")
    if coordinates.ndim != 3 or coordinates.shape[2] != 4:
        minor = f" device_coordinates.shape[2]={coordinates.shape[2]}" if coordinates.ndim > 2 else ""
        raise ValueError(
            "`device_coordinates` must be a rank 3 int32 array with minor dimension equal to the `mesh_shape` rank; "
            f"got device_coordinates.shape={coordinates.shape} len(device_coordinates.shape)={coordinates.ndim}{minor} "
            f"mesh_shape={shape}, len(mesh_shape)={len(shape)}"
        )
    return shape, coordinates


def parsed(serialized: bytes) -> tuple[IntArray, IntArray]:
    """Return the mesh shape and the coordinates of a serialized message."""
    message = topology_proto.parse(serialized)
    shape, coordinates = message.mesh_shape, message.device_coordinates
    tasks, devices = message.num_tasks, message.num_devices_per_task
    if shape.shape != (4,) or (shape < 1).any():
        raise ValueError(f"`mesh_shape` must be a vector of size 4 with positive entries; got {shape}")
    if tasks < 0:
        raise ValueError(f"`num_tasks` must be >= 0; got {tasks}")
    if devices < 0:
        raise ValueError(f"`num_tpu_devices_per_task` must be >= 0; got {devices}")
    if coordinates.size != tasks * devices * 4:
        raise ValueError(
            f"`device_coordinates` must have shape num_tasks ({tasks}) * num_tpu_devices_per_task ({devices}) * "
            f"len(mesh_shape) ({shape.tolist()}); got shape {coordinates.size}"
        )
    if (coordinates < 0).any():
        raise ValueError(f"All values in `device_coordinates` must be >= 0, got {coordinates}")
    return shape, coordinates.reshape(tasks, devices, 4)


# --- devices of a modelled slice --------------------------------------------------------------------------------------


def coordinates_of_slice(
    shape: ChipShape, task_shape: ChipShape, devices_per_chip: int, tasks_per_chip: int = 1
) -> IntArray:
    """Return the coordinates [task, device, coordinate] of a slice; among tasks and among chips, x varies fastest."""
    tasks = [length // part for length, part in zip(shape, task_shape, strict=True)]
    # Axes of the grid: task z, y, x, then chip z, y, x, then core, fastest last.
    grid = np.indices((*tasks[::-1], *task_shape[::-1], devices_per_chip), np.int32)
    xyz = [grid[2 - axis] * task_shape[axis] + grid[5 - axis] for axis in range(3)]
    places = np.stack([*xyz, grid[6]], -1).reshape(
        tasks[0] * tasks[1] * tasks[2], -1, tasks_per_chip, devices_per_chip // tasks_per_chip, 4
    )
    coordinates: IntArray = places.transpose(0, 2, 1, 3, 4).reshape(len(places) * tasks_per_chip, -1, 4)
    return coordinates


def host_name(task: int, job: str | None) -> str:
    """Return the name of the CPU device of a host."""
    return f"/task:{task}/device:CPU:0" if job is None else f"/job:{job}/task:{task}/device:CPU:0"


def device_name(task: int, ordinal: int, job: str | None) -> str:
    """Return the name of a TPU device."""
    return f"/task:{task}/device:TPU:{ordinal}" if job is None else f"/job:{job}/task:{task}/device:TPU:{ordinal}"
