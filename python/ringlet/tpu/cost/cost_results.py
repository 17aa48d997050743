"""CollectiveCost and StepCost: predicted times with their units and bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ringlet.tpu.cost.link_traffic import FloatArray
from ringlet.tpu.draw_mixin import Drawable
from ringlet.tpu.topology.topology_of import Placed, topology_of
from ringlet.tpu.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from ringlet.tpu.topology.topology import Topology

# Names of bounds in texts and in `bound`, by the field that holds their time.
_BOUNDS = {
    "compute_seconds": "compute",
    "memory_seconds": "memory",
    "ici_seconds": "ICI",
    "core_link_seconds": "core link",
    "pcie_seconds": "PCIe",
    "dcn_seconds": "DCN",
    "latency_seconds": "latency",
}


@dataclass(frozen=True)
class BusyLink:
    """One direction of a link between two chips and its load; returned by ``busiest_links``.

    Attributes
    ----------
    source, target : tuple of int
        Chips, as x, y, z.
    is_wrap : bool
        Whether the link is a wrap link.
    nbytes : float
        Bytes transferred.
    seconds : float
        Time for which the link is busy.
    """

    source: tuple[int, int, int]
    target: tuple[int, int, int]
    is_wrap: bool
    nbytes: float
    seconds: float

    def __str__(self) -> str:
        wrap = " (wrap)" if self.is_wrap else ""
        source, target = (",".join(map(str, chip)) for chip in (self.source, self.target))
        return f"{source} -> {target}{wrap}: {format_bytes(self.nbytes)}, {format_seconds(self.seconds)}"


@dataclass(frozen=True, kw_only=True, eq=False)
class _Loaded(Drawable):
    """Base class of costs that include the load of each link."""

    assignment: Placed | Topology = field(repr=False)
    link_bytes: FloatArray = field(repr=False)
    link_seconds: FloatArray = field(repr=False)

    @property
    def topology(self) -> Topology:
        """Topology of the slice."""
        return topology_of(self.assignment)

    def busiest_links(self, count: int = 5) -> list[BusyLink]:
        """Return the links that are busy longest, the busiest first; idle links are omitted.

        Parameters
        ----------
        count : int, default 5
            Maximum number of links.

        Returns
        -------
        list of BusyLink
        """
        links = self.topology.links()
        # Links that differ only by rounding are equally busy and keep their order.
        order = np.argsort(-np.round(self.link_seconds, 15), kind="stable")[: max(0, count)]
        source, target = (
            np.stack(np.unravel_index(chips[order], self.topology.chip_shape), -1).tolist()
            for chips in (links.source, links.target)
        )
        return [
            BusyLink(tuple(a), tuple(b), bool(links.is_wrap[i]), float(self.link_bytes[i]), float(self.link_seconds[i]))
            for a, b, i in zip(source, target, order, strict=True)
            if self.link_bytes[i] > 0
        ]


def _largest(times: Any, fields: Sequence[str]) -> str:
    """Return the name of the bound with the longest time; ``"nothing"`` if all are zero."""
    name = max(fields, key=lambda field: getattr(times, field))
    return _BOUNDS[name] if getattr(times, name) > 0 else "nothing"


def parts_text(times: Any) -> str:
    """Format the nonzero components of a time, such as ``7.292 ms ICI + 12 us latency``."""
    parts = [(getattr(times, name, 0.0), text) for name, text in _BOUNDS.items()]
    return " + ".join(f"{format_seconds(seconds)} {text}" for seconds, text in parts if seconds > 0)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CollectiveCost(_Loaded):
    """Cost of a collective on an assignment; returned by :meth:`DeviceAssignment.cost`.

    Attributes
    ----------
    collective, algorithm : str
    nbytes : float
        Size of the full array.
    group_size, num_groups, slices : int
        Numbers of devices of each group in one slice, of concurrent groups, and of slices.
    model : str
        ``"exact"`` or ``"asymptotic"``.
    seconds : float
        Total: the sum of the five times below; in the asymptotic model, the larger of latency and the sum of the other
        times.
    latency_seconds, ici_seconds, core_link_seconds, pcie_seconds, dcn_seconds : float
        Latency of hops, and transfer time by the limiting resource: links between chips, the link between the two
        devices of a chip, the path from chips to their hosts, the network between slices.
    lower_bound_seconds : float
        Lower bound on the time of any algorithm, from the bytes that each chip must send over its links; over several
        slices, plus the time of the exchange between them.
    times : mapping of str to float
        Seconds of every applicable algorithm, the fastest first; of the requested algorithm only, if one was given.
    link_bytes, link_seconds : ndarray of float64, shape (links,)
        Bytes and busy time of each directed link, in the order of ``Topology.links()``; read-only.
    assignment : DeviceAssignment or Topology

    Examples
    --------
    >>> import ringlet
    >>> topology = ringlet.tpu.Topology.from_accelerator_type("v4-16", megacore=True)
    >>> assignment = ringlet.tpu.DeviceAssignment.build(topology, num_replicas=8)
    >>> assignment.cost("all_reduce", "1GiB")
    <CollectiveCost: all_reduce of 1 GiB over 8 devices, rotated: 13.92 ms = 13.92 ms ICI + 6 us latency; bound by ICI>
    """

    collective: str
    algorithm: str
    nbytes: float
    group_size: int
    num_groups: int
    slices: int
    model: str
    seconds: float
    latency_seconds: float
    ici_seconds: float
    core_link_seconds: float
    pcie_seconds: float
    dcn_seconds: float
    lower_bound_seconds: float
    times: Mapping[str, float]

    @property
    def bound(self) -> str:
        """Limiting factor: ``"ICI"``, ``"core link"``, ``"PCIe"``, ``"DCN"``, ``"latency"``, or ``"nothing"``."""
        return _largest(self, tuple(_BOUNDS)[2:])

    @property
    def bytes_per_second(self) -> float:
        """Bytes of the full array per second, as reported by benchmarks; infinite if the time is 0."""
        return self.nbytes / self.seconds if self.seconds else float("inf")

    def __repr__(self) -> str:
        groups = f" in each of {self.num_groups} groups" if self.num_groups > 1 else ""
        slices = f" of each of {self.slices} slices" if self.slices > 1 else ""
        parts = f" = {parts_text(self)}; bound by {self.bound}" if self.seconds else ""
        if self.model == "asymptotic" and parts:
            parts = f" (asymptotic); bound by {self.bound}"
        return (
            f"<CollectiveCost: {self.collective} of {format_bytes(self.nbytes)} over {self.group_size} "
            f"device{'s' * (self.group_size != 1)}{groups}{slices}, {self.algorithm}: "
            f"{format_seconds(self.seconds)}{parts}>"
        )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class StepCost(_Loaded):
    """Cost of a step: computation and its collectives; returned by :func:`simulate`.

    Attributes
    ----------
    seconds : float
        Total: the longer of computation and communication if overlapped, else their sum.
    compute_seconds, memory_seconds : float
        Time of a device's operations at its peak, and of its bytes at its memory bandwidth; computation takes the
        longer of the two (the roofline).
    communication_seconds : float
        Time of all collectives.
    ici_seconds, core_link_seconds, pcie_seconds, dcn_seconds, latency_seconds : float
        Parts of `communication_seconds`, as in :class:`CollectiveCost`; for concurrent collectives, the largest
        value of each part, or the time of all their bytes on the busiest resource if that is longer.
    is_overlapped : bool
    collectives : tuple of CollectiveCost
        The collectives, each with its cost when run alone.
    link_bytes, link_seconds : ndarray of float64, shape (links,)
        Bytes and busy time of each directed link in the step, in the order of ``Topology.links()``; read-only.
    assignment : DeviceAssignment or Topology

    Examples
    --------
    >>> import ringlet
    >>> topology = ringlet.tpu.Topology.from_accelerator_type("v5e-16")
    >>> assignment = ringlet.tpu.DeviceAssignment.build(topology, num_replicas=16)
    >>> gradients = ringlet.tpu.Collective("all_reduce", 2**30)
    >>> ringlet.tpu.simulate(assignment, gradients, flops=4e12, hbm_bytes=6e9)
    <StepCost: 22.38 ms, overlapped: compute 20.3 ms, memory 7.326 ms, communication 22.38 ms; bound by ICI>
    """

    seconds: float
    compute_seconds: float
    memory_seconds: float
    communication_seconds: float
    ici_seconds: float
    core_link_seconds: float
    pcie_seconds: float
    dcn_seconds: float
    latency_seconds: float
    is_overlapped: bool
    collectives: tuple[CollectiveCost, ...]

    @property
    def bound(self) -> str:
        """Limiting factor: ``"compute"``, ``"memory"``, or a part of communication as in :class:`CollectiveCost`.

        The largest part of computation or communication, whichever takes longer; ``"nothing"`` if both take no time.
        """
        computes = max(self.compute_seconds, self.memory_seconds) >= self.communication_seconds
        return _largest(self, ("compute_seconds", "memory_seconds") if computes else tuple(_BOUNDS)[2:])

    def __repr__(self) -> str:
        rows = {
            "compute": self.compute_seconds,
            "memory": self.memory_seconds,
            "communication": self.communication_seconds,
        }
        parts = ", ".join(f"{name} {format_seconds(seconds)}" for name, seconds in rows.items() if seconds > 0)
        how = "overlapped" if self.is_overlapped else "one after the other"
        return f"<StepCost: {format_seconds(self.seconds)}, {how}: {parts or 'nothing'}; bound by {self.bound}>"
