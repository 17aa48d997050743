"""Summary of a topology as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ringlet.tpu.topology.accelerator_type import shape_text

if TYPE_CHECKING:
    from ringlet.tpu.topology.topology import Topology


def counted(number: int, noun: str) -> str:
    """Return a count with its noun, such as ``1 chip`` or ``3 processes``."""
    return f"{number:,} {noun}{'' if number == 1 else 'es' if noun.endswith('s') else 's'}"


def unit_of(topology: Topology) -> str:
    """Return the noun for a device: "chip" with megacore, else "core"."""
    return "chip" if topology.is_megacore else "core"


def chips_used(topology: Topology, core_assignment: np.ndarray[Any, np.dtype[Any]]) -> str:
    """Return text such as ``32 of 64 chips used``; an empty string if all chips with devices, or none, are used."""
    used, there = (
        len(np.unique(np.ravel_multi_index(tuple(cores.reshape(-1, 4)[:, :3].T), topology.chip_shape)))
        for cores in (core_assignment, topology.device_coordinates)
    )
    return f"{used:,} of {there:,} chips used" if 0 < used < there else ""


def describe(topology: Topology) -> str:
    """Return a table of cores, chips, devices and hosts."""
    shape = shape_text(topology.chip_shape, topology.generation.torus_rank if topology.generation else 3)
    rows = [
        ("cores", topology.num_chips * topology.cores_per_chip, _cores(topology)),
        ("chips", topology.num_chips, f"{shape}, {_wraps(topology)}{_number(topology, 'chips')}"),
        ("devices", topology.num_devices, _devices(topology)),
        ("hosts", topology.num_tasks, _hosts(topology)),
    ]
    digits = max(len(str(number)) for _, number, _ in rows)
    name = topology.accelerator_type or (topology.generation.name if topology.generation else "TPU")
    lines = [f"  {what:<7}  {number:>{digits}}  {text}" for what, number, text in rows]
    return "\n".join([f"Topology of a {name} slice", *lines])


def _number(topology: Topology, what: str) -> str:
    """Return a note if the number in the slice's name counts `what`, else an empty string."""
    name, generation = topology.accelerator_type, topology.generation
    if not name or not generation or generation.number_counts != what or "x" in name.rsplit("-", 1)[-1]:
        return ""
    return f"; the number in {name} counts these"


def _cores(topology: Topology) -> str:
    return f"{topology.cores_per_chip} on each chip{_number(topology, 'cores')}"


def _wraps(topology: Topology) -> str:
    closing = [axis for axis, closes in zip("xyz", topology.wrap, strict=True) if closes]
    if not closing:
        return "no axis wraps"
    twisted = ", twisted" if topology.twisted else ""
    return f"{' and '.join(closing) if len(closing) < 3 else 'x, y and z'} wrap{'s' * (len(closing) == 1)}{twisted}"


def _devices(topology: Topology) -> str:
    each = int(topology.mesh_shape[3])
    how = "both cores as one" if topology.is_megacore else "one core each" if each > 1 else "its only core"
    missing = len(topology.missing_devices)
    absent = f", {missing} missing" if missing else ""
    return f"{each} for each chip, {how}{absent}; mesh_shape {topology.mesh_shape}"


def _hosts(topology: Topology) -> str:
    devices = topology.num_tpus_per_task
    counts = sorted(set(topology._chips_of_tasks.tolist()))
    text = f"{counts[0]} chip{'s' * (counts[0] != 1)} and " if len(counts) == 1 else ""
    return f"with {text}{devices} device{'s' * (devices != 1)} each"
