"""Predicted time of collectives on devices with positions in a topology."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from ringlet.sharding.layout.device_group import DeviceGroup
from ringlet.sharding.resharding.collective_record import Collective
from ringlet.tpu import DeviceAssignment
from ringlet.tpu.cost.collective_cost import collective_cost, fabric_of, stage_costs
from ringlet.tpu.cost.cost_fabric import Fabric, FabricOptions
from ringlet.tpu.cost.cost_messages import Messages
from ringlet.tpu.topology.topology_of import topology_of

# Bytes sent by a group of n devices, as a multiple of the bytes in the cost model's argument: the result of an
# all-gather, the operand of a reduce-scatter, all shards of an all-to-all.
_SHARES = {
    "all-reduce": lambda n: 2 * (n - 1),
    "all-gather": lambda n: n - 1,
    "reduce-scatter": lambda n: n - 1,
    "all-to-all": lambda n: (n - 1) / n,
    "broadcast": lambda n: n - 1,
}


def timed(collective: Collective, group: DeviceGroup) -> Collective:
    """Return a collective with its predicted time, if the devices have positions in a topology of known speeds.

    In a broadcast and in a gather, the first device of each group is the root.
    """
    if group.assignment is None or topology_of(group.assignment).generation is None:
        return collective
    return replace(collective, seconds=_seconds(collective, group.assignment, group.replica))


@lru_cache(maxsize=4096)
def _seconds(collective: Collective, assignment: DeviceAssignment, replica: int) -> float:
    first = replica * assignment.num_cores_per_replica
    groups = [[first + device for device in members] for members in collective.groups]
    if collective.kind in _SHARES and len({len(members) for members in groups}) == 1 and len(groups[0]) > 1:
        nbytes = collective.nbytes / len(groups) / _SHARES[collective.kind](len(groups[0]))
        name = collective.kind.replace("-", "_")
        return collective_cost(assignment, name, nbytes, groups=groups).seconds
    pairs = [(first + source, first + target) for source, target in collective.pairs] or [
        (other, members[0]) for members in groups for other in members[1:]
    ]
    return _seconds_of_messages(pairs, collective.nbytes, assignment)


def _seconds_of_messages(pairs: Sequence[tuple[int, int]], nbytes: int, assignment: DeviceAssignment) -> float:
    if not pairs:
        return 0.0
    source, target = np.array(pairs, np.int64).T
    (cost,) = stage_costs([(Messages(source, target, nbytes / len(pairs)),)], _fabric(assignment))
    return cost.latency_seconds + cost.transfer_seconds


@lru_cache(maxsize=16)
def _fabric(assignment: DeviceAssignment) -> Fabric:
    return fabric_of(assignment, FabricOptions())


def hops_of(group: DeviceGroup) -> list[list[int]] | None:
    """Return the number of links between devices, [source][target]; None if they have no positions in a topology."""
    if group.assignment is None:
        return None
    return _hops(group.assignment, group.replica, group.num_devices)


@lru_cache(maxsize=16)
def _hops(assignment: DeviceAssignment, replica: int, num_devices: int) -> list[list[int]]:
    fabric = fabric_of(assignment, FabricOptions(bandwidth=1.0, host_bandwidth=1.0))
    first = replica * assignment.num_cores_per_replica
    chips = fabric.chip[first : first + num_devices]
    source, target = (side.ravel() for side in np.meshgrid(chips, chips, indexing="ij"))
    distances: list[list[int]] = fabric.network.distances(source, target).reshape(num_devices, -1).tolist()
    return distances
