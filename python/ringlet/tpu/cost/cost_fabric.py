"""Network of a slice with the speeds of its links: between chips, within chips, and out of the slice."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from ringlet.tpu.cost.link_traffic import FloatArray, IntArray, Network
from ringlet.tpu.topology.links import twist_of

if TYPE_CHECKING:
    from ringlet.tpu.topology.topology import Topology

HOP_SECONDS = 1e-6  # from "How to Scale Your Model", part 2; used if the generation is unknown

#: Kinds of resources, in the order of their entries in a load array.
KINDS = ("ICI", "core link", "PCIe", "DCN")


@dataclass(frozen=True)
class FabricOptions:
    """Link speeds that override the speeds of the generation.

    Attributes
    ----------
    bandwidth : {"usable", "published"} or float
        Bandwidth of one link, one way: as measured by programs, as published, or bytes per second.
    hop_seconds : float, optional
        Latency of one link; default: the generation's.
    bandwidth_scale : float, array or mapping, optional
        Remaining fraction of each link's bandwidth: one number for all, one per entry of ``Topology.links()``, or a
        mapping by pair of neighbouring chips such as ``{((0, 0, 0), (1, 0, 0)): 0.5}``, both ways.
    core_bandwidth : float, optional
        Bandwidth between the two devices of a chip, one way, in bytes per second; default: the generation's, or
        unlimited.
    host_bandwidth : float, optional
        Bandwidth from each host into the data-centre network, one way, in bytes per second; default: the generation's.
    twisted : bool, optional
        Whether wrap links are shifted; default: the topology's.
    """

    bandwidth: str | float = "usable"
    hop_seconds: float | None = None
    bandwidth_scale: float | Sequence[float] | Mapping[Any, float] | FloatArray | None = None
    core_bandwidth: float | None = None
    host_bandwidth: float | None = None
    twisted: bool | None = None


@dataclass(frozen=True, eq=False)
class Fabric:
    """The network of a slice with its link speeds, and the chip, core and host of each device.

    Loads are arrays of bytes, one entry per *resource*: the links of ``network`` (``[axis, direction, chip]``,
    flattened), then for each chip the path from its first device to its second and back, then each chip's path to its
    host, then each host's network card. Speeds are for one direction; the speed of a missing link is 0.
    """

    network: Network
    chip: IntArray
    core: IntArray
    host: IntArray
    bytes_per_second: FloatArray
    hop_seconds: float

    @classmethod
    def of(cls, topology: Topology, coordinates: IntArray, options: FabricOptions) -> Fabric:
        """Return the network that connects devices at coordinates [device, axis]."""
        network = _network(topology, options.twisted)
        link = _link_speed(topology, options.bandwidth)
        scale = _scale(network, options.bandwidth_scale)
        generation = topology.generation
        if options.core_bandwidth is not None:
            per_core = _positive("core_bandwidth", options.core_bandwidth)
        else:
            per_core = link * generation.core_link_multiplier if generation else math.inf
        hop = options.hop_seconds
        if hop is None:
            hop = generation.hop_seconds if generation else HOP_SECONDS
        if not isinstance(hop, Real) or not 0 <= hop < math.inf:
            raise ValueError(f"hop_seconds must be the latency of a link in seconds, not negative, got {hop!r}")
        speeds = [
            (network.exists * link * scale).ravel(),
            np.full(2 * network.num_chips, per_core),
            np.full(network.num_chips, generation.pcie_bandwidth if generation else np.inf),
            _host_speeds(topology, options.host_bandwidth),
        ]
        chip = np.ravel_multi_index(tuple(coordinates[:, :3].T), network.shape).astype(np.int64)
        cells = np.ravel_multi_index(tuple(coordinates.T), topology.mesh_shape.tolist())
        host = topology._device_at[cells].astype(np.int64) // max(1, topology.num_tpus_per_task)
        return cls(network, chip, coordinates[:, 3].astype(np.int64), host, np.concatenate(speeds), float(hop))

    @property
    def num_links(self) -> int:
        """Number of load array entries for links between chips."""
        return 6 * self.network.num_chips

    @property
    def first_bus(self) -> int:
        """Index in a load array of the first path from a chip to its host."""
        return 8 * self.network.num_chips

    @property
    def first_host(self) -> int:
        """Index in a load array of the first network card."""
        return 9 * self.network.num_chips

    def no_load(self) -> FloatArray:
        """Return a load array of zeros."""
        return np.zeros(len(self.bytes_per_second))

    def kind(self, resource: int) -> str:
        """Return the kind, as in `KINDS`, of an entry of a load array."""
        return KINDS[sum(resource >= first for first in (self.num_links, self.first_bus, self.first_host))]

    def seconds(self, loads: FloatArray) -> FloatArray:
        """Return the time in seconds for which each resource is busy."""
        return np.divide(loads, self.bytes_per_second, out=np.zeros_like(loads), where=loads > 0)

    def link_bytes(self, loads: FloatArray) -> FloatArray:
        """Return the link entries of a load array, in the order of ``Topology.links()``."""
        links: FloatArray = loads[: self.num_links][self.network.exists.ravel()]
        return links

    def core_links(self, source: IntArray, target: IntArray, weight: FloatArray | None = None) -> FloatArray:
        """Return the loads, in units, of messages between devices of the same chip; other messages add nothing."""
        loads = self.no_load()
        near = (self.chip[source] == self.chip[target]) & (source != target)
        if near.any():
            way = 2 * self.chip[source[near]] + (self.core[source[near]] > self.core[target[near]])
            count = np.bincount(way, None if weight is None else weight[near], 2 * self.network.num_chips)
            loads[self.num_links : self.first_bus] = count
        return loads


def _network(topology: Topology, twisted: bool | None) -> Network:
    x, y, z = (int(size) for size in topology.mesh_shape[:3])
    wrap = topology.wrap
    if twisted is None:
        twisted = topology.twisted
    if not twisted:
        return Network((x, y, z), wrap)
    twist = twist_of((x, y, z))
    if twist is None or not all(wrap):
        raise ValueError(
            f"a slice of {x}x{y}x{z} chips (wrapped: {wrap}) cannot be twisted: a twist requires a torus of n x n x 2n "
            "or n x 2n x 2n chips, such as 4x4x8"
        )
    return Network((x, y, z), wrap, twist)


def _link_speed(topology: Topology, bandwidth: str | float) -> float:
    if not isinstance(bandwidth, str):
        return _positive("bandwidth", bandwidth)
    if bandwidth not in ("usable", "published"):
        raise ValueError(f"bandwidth must be 'usable', 'published' or bytes per second, got {bandwidth!r}")
    if topology.generation is None:
        shape = "x".join(map(str, topology.mesh_shape))
        raise ValueError(
            f"the speed of the links is unknown, because the topology {shape} has no generation. "
            "Pass bandwidth=4.5e10 (bytes per second, one way), or create the topology with "
            "Topology.from_accelerator_type"
        )
    if bandwidth == "usable":
        return topology.generation.ici_bandwidth_usable
    return topology.generation.ici_bandwidth


def _positive(name: str, value: float) -> float:
    if not isinstance(value, Real) or not 0 < value < math.inf:
        raise ValueError(f"{name} must be a positive number of bytes per second, got {value!r}")
    return float(value)


def _scale(network: Network, given: float | Sequence[float] | Mapping[Any, float] | FloatArray | None) -> FloatArray:
    """Return the remaining fraction of each link's bandwidth, [axis, direction, chip]."""
    scale = np.ones(network.exists.shape)
    if isinstance(given, Mapping):
        for pair, part in given.items():
            for entry in _entries_of_pair(network, pair):
                scale[entry] = _parts(part)
    elif given is not None:
        parts = _parts(given)
        if parts.ndim and parts.shape != (network.exists.sum(),):
            raise ValueError(
                f"bandwidth_scale has shape {parts.shape}: pass one number for all links, or one for each of the "
                f"{network.exists.sum()} entries of Topology.links()"
            )
        scale[network.exists] = parts
    wrong = scale[~((scale > 0) & np.isfinite(scale))]
    if wrong.size:
        raise ValueError(
            f"bandwidth_scale must be the remaining fraction of each link's bandwidth, above 0, got {wrong[0]:g}. The "
            "hardware routes around a failed link, which appears as lower bandwidth: pass a fraction such as 0.25"
        )
    return scale


def _parts(given: Any) -> FloatArray:
    try:
        return np.asarray(given, np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"bandwidth_scale must be the remaining fractions of bandwidths, such as 0.5, got {given!r}"
        ) from None


def _entries_of_pair(network: Network, pair: Any) -> list[tuple[int, int, int]]:
    """Return both directions of the link between two chips as indices (axis, direction, chip)."""
    chips = np.asarray(pair)
    is_pair = chips.shape == (2, 3) and chips.dtype.kind in "iu"
    if not is_pair or (chips < 0).any() or (chips >= network.shape).any():
        raise ValueError(
            f"{pair!r} is not a link: pass two neighbouring chips of the {network.shape} mesh, such as "
            "((0, 0, 0), (1, 0, 0))"
        )
    first, second = (int(chip) for chip in np.ravel_multi_index(tuple(chips.T), network.shape))
    entries = []
    for source, target in ((first, second), (second, first)):
        for axis in range(3):
            for way, step in enumerate((1, -1)):
                if not network.exists[axis, way, source]:
                    continue
                lines = network.lines[axis]
                position = (lines.position[source] + step) % lines.chip_at.shape[1]
                if lines.chip_at[lines.line[source], position] == target:
                    entries.append((axis, way, source))
    if not entries:
        raise ValueError(
            f"no link connects {tuple(chips[0].tolist())} and {tuple(chips[1].tolist())}: they are not neighbours"
        )
    return entries


def _host_speeds(topology: Topology, given: float | None) -> FloatArray:
    count = topology.num_tasks
    if given is not None:
        return np.full(count, _positive("host_bandwidth", given))
    if topology.generation is None:
        return np.full(count, np.nan)  # used only by costs over several slices
    speeds: FloatArray = topology._chips_of_tasks.astype(np.float64) * topology.generation.dcn_bandwidth_per_chip
    return speeds
