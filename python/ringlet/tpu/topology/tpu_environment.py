"""TPUEnvironment: the environment variables of a TPU machine, parsed and validated.

Machines, GKE, launchers and users set these variables, and some are left over from earlier jobs. All are parsed here;
two contradictory variables raise an error that names both.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ringlet.tpu.topology.accelerator_type import AcceleratorType, shape_text
from ringlet.tpu.topology.generation import ChipShape, Generation
from ringlet.tpu.topology.topology_text import counted

# Names of each value in order of precedence. Names on one line are synonyms.
ACCELERATOR_TYPE = ("TPU_ACCELERATOR_TYPE", "ACCELERATOR_TYPE")
TOPOLOGY = "TPU_TOPOLOGY"
CHIPS_PER_PROCESS = ("TPU_CHIPS_PER_PROCESS_BOUNDS", "TPU_CHIPS_PER_HOST_BOUNDS")
PROCESSES = ("TPU_PROCESS_BOUNDS", "TPU_HOST_BOUNDS")
VISIBLE_CHIPS = ("TPU_VISIBLE_CHIPS", "TPU_VISIBLE_DEVICES")
HOSTNAMES = "TPU_WORKER_HOSTNAMES"
WORKER_ID = "TPU_WORKER_ID"
TASK_ID = "CLOUD_TPU_TASK_ID"
ADDRESSES = "TPU_PROCESS_ADDRESSES"
PORT = "TPU_PROCESS_PORT"
NAME = "TPU_NAME"
COORDINATOR = "MEGASCALE_COORDINATOR_ADDRESS"
NUM_SLICES = "MEGASCALE_NUM_SLICES"
SLICE_ID = "MEGASCALE_SLICE_ID"

_BOUNDS = re.compile(r"[1-9]\d{0,5}(,[1-9]\d{0,5}){2,3}", re.ASCII)
NUMBER = re.compile(r"\d{1,6}", re.ASCII)


class Variables:
    """Environment variables by name; an empty variable counts as unset."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def get(self, *names: str) -> tuple[str, str | None]:
        """Return the name and text of the first variable that is set; if none is set, the first name and None."""
        for name in names:
            if text := self._environ.get(name, "").strip():
                return name, text
        return names[0], None

    def same(self, names: tuple[str, str], read: Callable[[str], object] = str) -> tuple[str, str | None]:
        """Return the result of `get` for two synonyms, which must have equal values after `read`."""
        name, text = self.get(*names)
        other, second = self.get(names[1])
        if text is not None and second is not None and read(text) != read(second):
            raise contradiction(name, other, f"the first is {text!r}, but the second is {second!r}")
        return name, text

    def number(self, name: str) -> int | None:
        """Parse a variable as a non-negative integer; return None if it is not set."""
        text = self.get(name)[1]
        if text is None:
            return None
        if not NUMBER.fullmatch(text):
            raise ValueError(f"{name} is {text!r}: expected a non-negative integer.")
        return int(text)

    def bounds(self, names: tuple[str, str]) -> tuple[str, tuple[int, ...] | None]:
        """Return the name of the variable that is set and its three or four numbers, or the first name and None."""
        name, text = self.get(*names)
        if text is None:
            return name, None
        text = text.replace(" ", "")
        if not _BOUNDS.fullmatch(text):
            raise ValueError(f"{name} is {text!r}: expected positive numbers along x, y and z, such as '2,2,1'.")
        return name, tuple(map(int, text.split(",")))

    def texts(self, name: str) -> tuple[str, ...]:
        """Return the comma-separated items of a variable."""
        text = self.get(name)[1]
        return tuple(part.strip() for part in text.split(",") if part.strip()) if text else ()

    def present(self) -> list[str]:
        """Return the sorted names of all TPU variables in the environment, empty ones included."""
        return sorted(name for name in self._environ if name.startswith(("TPU_", "CLOUD_TPU_", "MEGASCALE_")))


def contradiction(first: str, second: str, how: str) -> ValueError:
    """Return the error for two variables that contradict each other."""
    return ValueError(f"{first} and {second} contradict each other: {how}. Correct or unset one of them.")


_GRID = re.compile(r"[1-9]\d{0,5}(x[1-9]\d{0,5}){1,2}", re.ASCII)


@dataclass(frozen=True)
class TPUEnvironment:
    """The validated environment variables of a TPU machine; created by :meth:`read`.

    Attributes
    ----------
    accelerator_type : str or None
        Name of the slice.
    generation : Generation or None
    shape : tuple of int
        Chips along x, y and z of all processes together.
    chips_per_process : tuple of int
        Chips along x, y and z of one process.
    processes_per_chip : int
        Number of processes that share a chip, usually 1.
    visible_chips : tuple of int or None
        Chips that this process opens, numbered within its host.
    worker_id, task_id : int or None
        Index of this host, and of this process over all hosts.
    hostnames : tuple of str
        Names of all hosts, in order; empty if unknown.
    process_addresses : tuple of str
        ``host:port`` of every process; empty if unknown.
    name : str or None
        The user's name for the slice.
    num_slices, slice_id : int
        Number of slices of the job, and index of this slice.
    coordinator_address : str or None
        Rendezvous address of these slices.

    Examples
    --------
    >>> import ringlet
    >>> found = ringlet.tpu.TPUEnvironment.read({"TPU_ACCELERATOR_TYPE": "v4-16", "TPU_TOPOLOGY": "2x2x2"})
    >>> found.shape, found.chips_per_process, found.num_processes
    ((2, 2, 2), (2, 2, 1), 2)
    >>> ringlet.tpu.TPUEnvironment.read({"TPU_ACCELERATOR_TYPE": "v4-16", "TPU_TOPOLOGY": "2x2x4"})
    Traceback (most recent call last):
    ValueError: TPU_TOPOLOGY and TPU_ACCELERATOR_TYPE contradict each other: '2x2x4' is 16 chips, but 'v4-16' is 8
    (2x2x2). Correct or unset one of them.
    """

    accelerator_type: str | None
    generation: Generation | None
    shape: ChipShape
    chips_per_process: ChipShape
    processes_per_chip: int = 1
    visible_chips: tuple[int, ...] | None = None
    worker_id: int | None = None
    task_id: int | None = None
    hostnames: tuple[str, ...] = ()
    process_addresses: tuple[str, ...] = ()
    name: str | None = None
    num_slices: int = 1
    slice_id: int = 0
    coordinator_address: str | None = None

    @property
    def process_bounds(self) -> ChipShape:
        """Processes along x, y and z; processes that share chips count as one."""
        x, y, z = (all_ // own for all_, own in zip(self.shape, self.chips_per_process, strict=True))
        return x, y, z

    @property
    def num_processes(self) -> int:
        """Number of processes on the slice."""
        return math.prod(self.process_bounds) * self.processes_per_chip

    @classmethod
    def read(cls, environ: Mapping[str, str] | None = None) -> TPUEnvironment:
        """Read and validate the variables.

        Parameters
        ----------
        environ : mapping of str to str, optional
            Default: ``os.environ``.

        Returns
        -------
        TPUEnvironment

        Raises
        ------
        ValueError
            If no variable describes the slice, if one is invalid, or if two contradict each other.
        """
        found = Variables(os.environ if environ is None else environ)
        slice_, source = _slice(found)
        return _with_slices(found, _with_processes(found, slice_, source))


# --- slice ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _ShapeVariable:
    name: str
    kind: AcceleratorType | None
    shape: ChipShape | None


def _slice(found: Variables) -> tuple[TPUEnvironment, str]:
    """Return the slice, its division into processes, and the names of the variables that define it."""
    known = _shape_variable(found)
    own_name, own = found.bounds(CHIPS_PER_PROCESS)
    many_name, many = found.bounds(PROCESSES)
    shape, source = known.shape, known.name
    if own is not None and many is not None:
        source = f"{own_name} times {many_name}"
        shape = _shape_of_processes(found, source, known, (own[0] * many[0], own[1] * many[1], own[2] * many[2]))
    if shape is None:
        present = ", ".join(found.present()) or "none"
        raise ValueError(
            "no environment variable describes the slice (variables TPU_*, CLOUD_TPU_* and MEGASCALE_* that are set: "
            f"{present}). Set {ACCELERATOR_TYPE[0]} (to v4-16, for example), or {TOPOLOGY}, or "
            f"{CHIPS_PER_PROCESS[0]} and {PROCESSES[0]}."
        )
    generation = known.kind.generation if known.kind else None
    if own is not None:
        _parts(own_name, own, known.name, shape)
        chips = (own[0], own[1], own[2])
    elif many is not None:
        chips = _parts(many_name, many, known.name, shape)
    else:
        chips = _host_shape(found, generation, shape)
    name = known.kind.name if known.kind else None
    return TPUEnvironment(name, generation, shape, chips, _per_chip(many_name, many, generation)), source


def _shape_variable(found: Variables) -> _ShapeVariable:
    kind_name, kind_text = found.same(ACCELERATOR_TYPE, AcceleratorType.parse)
    grid_name, grid = found.get(TOPOLOGY)
    kind = AcceleratorType.parse(kind_text) if kind_text else None
    if grid is None:
        return _ShapeVariable(kind_name, kind, kind.shape if kind else None)
    if not _GRID.fullmatch(grid):
        raise ValueError(f"{grid_name} is {grid!r}: expected the chips along each axis, such as '4x4x8'.")
    x, y, z = [*map(int, grid.split("x")), 1][:3]
    if kind is None:
        return _ShapeVariable(grid_name, None, (x, y, z))
    if x * y * z != math.prod(kind.shape):
        whole = f"{math.prod(kind.shape)} ({shape_text(kind.shape, kind.generation.torus_rank)})"
        raise contradiction(grid_name, kind_name, f"{grid!r} is {x * y * z} chips, but {kind_text!r} is {whole}")
    # The number in a name does not determine the shape, so parse the grid, which must be a shape of the generation.
    kind = AcceleratorType.parse(f"{kind.generation.prefixes[0]}-{grid}")
    return _ShapeVariable(grid_name, kind, kind.shape)


def _shape_of_processes(found: Variables, bounds: str, known: _ShapeVariable, box: ChipShape) -> ChipShape:
    """Return the chips along x, y and z that all processes open: the slice, or a part of it."""
    shape = known.shape
    if shape is None or box == shape or (math.prod(box) == math.prod(shape) and known.name != TOPOLOGY):
        return box
    if sorted(box) == sorted(shape) and math.prod(shape) == 8:
        return box  # the eight chips of a v5e or v6e machine are 2x4 in Google's notation, and 4x2 elsewhere
    how = f"the first is {shape_text(box)} chips, but the second is {shape_text(shape)}"
    if math.prod(box) < math.prod(shape):
        if found.same(VISIBLE_CHIPS)[1] is not None:
            return box
        how += f"; to use a part of the slice, list its chips in {VISIBLE_CHIPS[0]}"
    raise contradiction(bounds, known.name, how)


def _parts(name: str, bounds: tuple[int, ...], known: str, shape: ChipShape) -> ChipShape:
    if any(length % part for length, part in zip(shape, bounds[:3], strict=True)):
        text = ",".join(map(str, bounds[:3]))
        raise contradiction(name, known, f"{text} does not divide {shape_text(shape)} chips")
    x, y, z = (length // part for length, part in zip(shape, bounds[:3], strict=True))
    return x, y, z


def _per_chip(name: str, bounds: tuple[int, ...] | None, generation: Generation | None) -> int:
    """Return the processes per chip: the fourth number of the process bounds, or 1."""
    each = bounds[3] if bounds is not None and len(bounds) > 3 else 1
    devices = generation.devices_per_chip if generation else each
    if devices % each:
        text = ",".join(map(str, bounds or ()))
        raise ValueError(
            f"{name} is {text!r}, which places {each} processes on each chip, but a "
            f"{generation.name if generation else ''} chip has {devices} device{'s' * (devices != 1)}. Omit the fourth "
            "number."
        )
    return each


def _host_shape(found: Variables, generation: Generation | None, shape: ChipShape) -> ChipShape:
    """Return the chips of one host along x, y and z, which are the default for the chips of one process."""
    hosts = len(found.texts(HOSTNAMES))
    x, y = (2 if length % 2 == 0 else 1 for length in shape[:2])
    usual = generation.host_shape_of(shape) if generation else (x, y, 1)
    smaller = generation.host_shape if generation else usual
    # A slice of eight v5e or v6e chips is one machine with eight chips, or two machines with four.
    if hosts and hosts * math.prod(smaller) == math.prod(shape):
        return smaller
    return usual


# --- process --------------------------------------------------------------------------------------------------------


def _with_processes(found: Variables, slice_: TPUEnvironment, source: str) -> TPUEnvironment:
    hostnames = found.texts(HOSTNAMES)
    kind = AcceleratorType.parse(slice_.accelerator_type) if slice_.accelerator_type else None
    is_part = kind is not None and math.prod(slice_.shape) < math.prod(kind.shape)
    # Processes on a part of the slice have the hosts of the whole slice in their variables.
    whole = replace(slice_, shape=kind.shape, chips_per_process=(1, 1, 1)) if kind and is_part else slice_
    _check_hosts(hostnames, whole, source)
    addresses = found.texts(ADDRESSES)
    if addresses and len(addresses) != slice_.num_processes:
        how = f"the first has {counted(len(addresses), 'address')} for {counted(slice_.num_processes, 'process')}"
        raise contradiction(ADDRESSES, source, how)
    hosts = len(hostnames) or _num_hosts(whole)
    worker, task = found.number(WORKER_ID), found.number(TASK_ID)
    if worker is not None and worker >= hosts:
        other = HOSTNAMES if hostnames else source
        raise contradiction(WORKER_ID, other, f"the index is {worker}, but there are {counted(hosts, 'host')}")
    if task is not None and task >= slice_.num_processes:
        how = f"the index is {task}, but there are {counted(slice_.num_processes, 'process')}"
        raise contradiction(TASK_ID, source, how)
    _check_port(found.number(PORT), task, addresses)
    return replace(
        slice_,
        hostnames=hostnames,
        process_addresses=addresses,
        worker_id=worker,
        task_id=task,
        visible_chips=_visible_chips(found, slice_),
    )


def _num_hosts(slice_: TPUEnvironment) -> int:
    each = math.prod(slice_.generation.host_shape_of(slice_.shape)) if slice_.generation else 1
    return max(1, math.prod(slice_.shape) // each, slice_.num_processes if slice_.generation is None else 1)


def _check_hosts(hostnames: tuple[str, ...], slice_: TPUEnvironment, source: str) -> None:
    if not hostnames:
        return
    chips, hosts = math.prod(slice_.shape), len(hostnames)
    if len(set(hostnames)) < hosts:
        raise ValueError(f"{HOSTNAMES} has a host twice: {','.join(hostnames)}. List each host once, in order.")
    generation = slice_.generation
    sizes = (
        {math.prod(generation.host_shape_of(slice_.shape)), math.prod(generation.host_shape)} if generation else set()
    )
    is_possible = slice_.num_processes % hosts == 0 and (chips < 4 or not sizes or chips / hosts in sizes)
    if not is_possible:
        expected = " or ".join(str(chips // size) for size in sorted(sizes, reverse=True) if chips % size == 0)
        what = f"{shape_text(slice_.shape)} chips and {counted(slice_.num_processes, 'process')}"
        there = f" (expected {expected})" if expected else ""
        raise contradiction(HOSTNAMES, source, f"the first has {counted(hosts, 'host')} for {what}{there}")


def _check_port(port: int | None, task: int | None, addresses: tuple[str, ...]) -> None:
    for address in addresses:
        host, _, number = address.rpartition(":")
        if not host or not NUMBER.fullmatch(number) or not 0 < int(number) < 65536:
            raise ValueError(f"{ADDRESSES} has {address!r}: expected host:port, such as localhost:8476.")
    if port is not None and task is not None and addresses:
        own = int(addresses[task].rpartition(":")[2])
        if own != port:
            raise contradiction(
                PORT, ADDRESSES, f"{port} is not the port of {addresses[task]}, the address of process {task}"
            )


def _visible_chips(found: Variables, slice_: TPUEnvironment) -> tuple[int, ...] | None:
    name, text = found.same(VISIBLE_CHIPS)
    if text is None:
        return None
    parts = text.replace(" ", "").split(",")
    if not all(NUMBER.fullmatch(part) for part in parts) or len(set(parts)) < len(parts):
        raise ValueError(f"{name} is {text!r}: expected the numbers of different chips, such as '0,1,2,3'.")
    numbers = tuple(map(int, parts))
    if slice_.generation and max(numbers) >= slice_.generation.chips_per_machine:
        most = slice_.generation.chips_per_machine
        raise contradiction(
            name, ACCELERATOR_TYPE[0], f"the first has chip {max(numbers)}, but a host has chips 0 to {most - 1}"
        )
    if len(parts) != math.prod(slice_.chips_per_process):
        each = ",".join(map(str, slice_.chips_per_process))
        raise contradiction(
            name,
            CHIPS_PER_PROCESS[0],
            f"{len(parts)} chip{'s are' if len(parts) != 1 else ' is'} visible, but {each} specifies "
            f"{math.prod(slice_.chips_per_process)}",
        )
    return numbers


def _with_slices(found: Variables, slice_: TPUEnvironment) -> TPUEnvironment:
    number, many = found.number(SLICE_ID) or 0, found.number(NUM_SLICES)
    if many == 0:
        raise ValueError(f"{NUM_SLICES} is '0': expected the number of slices, at least 1.")
    if number >= (many or 1):
        raise contradiction(SLICE_ID, NUM_SLICES, f"the slice is {number}, but the number of slices is {many or 1}")
    name, coordinator = found.get(NAME)[1], found.get(COORDINATOR)[1]
    return replace(slice_, name=name, num_slices=many or 1, slice_id=number, coordinator_address=coordinator)
