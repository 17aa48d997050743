"""Topology of an assignment, a cost or a slice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringlet.tpu.topology.topology import Topology

if TYPE_CHECKING:
    from ringlet.tpu.assignment.device_assignment import DeviceAssignment
    from ringlet.tpu.cost.cost_results import CollectiveCost, StepCost

__all__ = ["topology_of"]


def topology_of(placed: DeviceAssignment | Topology | CollectiveCost | StepCost) -> Topology:
    """Return the slice of an assignment or of a cost; a topology is returned unchanged."""
    topology = getattr(placed, "topology", placed)
    if not isinstance(topology, Topology):
        raise TypeError(f"expected a DeviceAssignment or a Topology, got {placed!r}")
    return topology
