"""Traffic patterns: link loads of messages in one part of a collective, in units of equal size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ringlet.tpu.cost.cost_fabric import Fabric
from ringlet.tpu.cost.link_traffic import FloatArray, IntArray, Network

# Maximum number of pairs in a group that is routed pair by pair.
_MAX_PAIRS = 1 << 16


@dataclass(frozen=True, eq=False)
class Messages:
    """Messages between pairs of devices, by default of one unit each, routed along the axes in `order`.

    `is_plain` routes wrap links without the twist: rings use the same links in a twisted torus, in a different order.
    """

    source: IntArray
    target: IntArray
    unit_bytes: float
    weight: IntArray | None = None
    steps: int = 1
    part: int = 0
    growth: float = 1.0
    order: tuple[int, ...] = (0, 1, 2)
    is_plain: bool = False

    def crossings(self, fabric: Fabric) -> tuple[FloatArray, int]:
        """Return the units on every resource and the longest path in hops."""
        network = fabric.network.plain() if self.is_plain else fabric.network
        weight = None if self.weight is None else self.weight.astype(np.float64)
        loads = fabric.core_links(self.source, self.target, weight)
        links, hops = network.route(fabric.chip[self.source], fabric.chip[self.target], weight, self.order)
        loads[: fabric.num_links] = links.ravel()
        return loads, int(hops.max(initial=0))


@dataclass(frozen=True, eq=False)
class Exchange:
    """One unit from every device of a group to every other device of the group."""

    groups: IntArray
    unit_bytes: float
    steps: int = 1
    part: int = 0
    growth: float = 1.0

    def crossings(self, fabric: Fabric) -> tuple[FloatArray, int]:
        """Return the units on every resource and the longest path in hops."""
        loads = fabric.no_load()
        size = self.groups.shape[1]
        if size**2 <= _MAX_PAIRS:
            return self._pair_by_pair(fabric, max(1, (1 << 22) // size**2))
        longest = 0
        for group in self.groups:
            chips, count = np.unique(fabric.chip[group], return_counts=True)
            links, hops = _all_pairs(fabric.network, chips, count)
            loads[: fabric.num_links] += links.ravel()
            loads += _within_chips(fabric, group)
            longest = max(longest, hops)
        return loads, longest

    def _pair_by_pair(self, fabric: Fabric, block: int) -> tuple[FloatArray, int]:
        loads, longest = fabric.no_load(), 0
        for start in range(0, len(self.groups), block):
            groups = self.groups[start : start + block]
            source = np.repeat(groups, groups.shape[1], axis=1).ravel()
            target = np.tile(groups, (1, groups.shape[1])).ravel()
            more, hops = Messages(source, target, 1.0).crossings(fabric)
            loads += more
            longest = max(longest, hops)
        return loads, longest


def _within_chips(fabric: Fabric, group: IntArray) -> FloatArray:
    """Return the units between members of a group that share a chip; a chip has at most two members."""
    ordered = group[np.lexsort((fabric.core[group], fabric.chip[group]))]
    first, second = ordered[:-1], ordered[1:]
    both: FloatArray = fabric.core_links(first, second) + fabric.core_links(second, first)
    return both


def _all_pairs(network: Network, chips: IntArray, count: IntArray) -> tuple[FloatArray, int]:
    """Return the link loads if each member sends a unit to every other member; `chips` have `count` members each.

    A pair's path along one axis does not depend on the next axes, so pairs with equal paths are counted, not listed.
    With ``c[x, y, z]`` members, the units along x from (x, y, z) towards x' are ``c[x, y, z] sum_yz c[x']``; along y
    from (x', y, z) towards y' they are ``sum_x c[y, z] sum_z c[x', y']``, and along z from (x', y', z) towards z'
    ``sum_xy c[z] c[x', y', z']``. The longest path is that of a pair that is farthest apart along all axes; every box
    has such a pair.
    """
    if network.twist is not None:
        return _all_pairs_twisted(network, chips, count)
    grid = np.zeros(network.shape)
    grid.ravel()[chips] = count
    towards = (
        np.multiply.outer(grid, grid.sum((1, 2))),
        np.einsum("yz,xv->xyzv", grid.sum(0), grid.sum(2)),
        np.einsum("z,xyv->xyzv", grid.sum((0, 1)), grid),
    )
    loads, longest = np.zeros((3, 2, network.num_chips)), 0
    for axis, weight in enumerate(towards):
        begin, end = np.nonzero(weight.reshape(-1, weight.shape[3]))
        weights = weight.reshape(-1, weight.shape[3])[begin, end]
        furthest = 0
        for steps, share in network.axis_steps(axis, network.coordinates(begin)[:, axis], end):
            network.walk_axis(loads, axis, begin, steps, weights * share)
            furthest = max(furthest, int(np.abs(steps).max(initial=0)))
        longest += furthest
    return loads, longest


def _all_pairs_twisted(network: Network, chips: IntArray, count: IntArray) -> tuple[FloatArray, int]:
    loads, longest = np.zeros((3, 2, network.num_chips)), 0
    for chip, members in zip(chips, count, strict=True):
        more, hops = network.route(np.full(len(chips), chip), chips, count * members)
        loads += more
        longest = max(longest, int(hops.max()))
    return loads, longest


@dataclass(frozen=True, eq=False)
class Multicast:
    """One unit from the root of each group to all its members, along a tree: each link carries it once."""

    groups: IntArray
    root: int
    unit_bytes: float
    steps: int = 1
    part: int = 0
    growth: float = 1.0

    def crossings(self, fabric: Fabric) -> tuple[FloatArray, int]:
        """Return the units on every resource and the longest path in hops."""
        loads, longest = fabric.no_load(), 0
        for group in self.groups:
            root = group[self.root]
            # Data arrive on each chip at its lowest device, except on the root's chip, where they start at the root.
            chips, first = np.unique(fabric.chip[np.r_[root, group]], return_index=True)
            arrival = np.r_[root, group][first]
            ways = _tree(fabric.network, int(fabric.chip[root]), chips)
            loads[: fabric.num_links] += ways[0].ravel()
            longest = max(longest, ways[1])
            entry = np.empty(fabric.network.num_chips, np.int64)
            entry[chips] = arrival
            loads += fabric.core_links(entry[fabric.chip[group]], group)
        return loads, longest


def _tree(network: Network, root: int, chips: IntArray) -> tuple[FloatArray, int]:
    """Return the links of a tree of shortest paths from a root to chips, one unit each, and its depth in hops."""
    moves = network.first_ways(np.full(len(chips), root), chips)
    loads = np.zeros((3, 2, network.num_chips))
    at = np.full(len(chips), root)
    for axis in range(3):
        at = network.walk_axis(loads, axis, at, moves[:, axis], np.ones(len(chips)))
    return (loads > 0).astype(np.float64), int(np.abs(moves).sum(-1).max(initial=0))


@dataclass(frozen=True, eq=False)
class HostTraffic:
    """One unit for every device, from its chip to the host and through the host's network card."""

    devices: IntArray
    unit_bytes: float
    steps: int = 0
    part: int = 0
    growth: float = 1.0

    def crossings(self, fabric: Fabric) -> tuple[FloatArray, int]:
        """Return the units on every resource and the longest path in hops."""
        loads = fabric.no_load()
        for first, place in ((fabric.first_bus, fabric.chip), (fabric.first_host, fabric.host)):
            loads += np.bincount(first + place[self.devices], minlength=len(loads))
        return loads, 0


# Messages that are in flight together. A unit of load is `unit_bytes`; each of `steps` successive messages adds
# latency; parts of an array are transferred concurrently, traffic of the same part in sequence; `growth` is the
# ratio of asymptotic bytes (without ``(N-1)/N``) to exact bytes.
Traffic = Messages | Exchange | Multicast | HostTraffic
