"""Topology of an assignment, a cost or a slice."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from ringlet.tpu.topology.topology import Topology


class Placed(Protocol):
    """Protocol of an assignment of replicas to cores, such as a DeviceAssignment."""

    @property
    def topology(self) -> Topology:
        """Topology of the slice."""

    @property
    def core_assignment(self) -> np.ndarray[Any, np.dtype[np.int32]]:
        """Coordinates [replica, logical core, axis]."""


def topology_of(placed: Any) -> Topology:
    """Return the slice of an assignment or of a cost; a topology is returned unchanged."""
    topology = getattr(placed, "topology", placed)
    if not isinstance(topology, Topology):
        raise TypeError(
            f"expected a DeviceAssignment or a Topology, got {placed!r}. Pass "
            "Topology.from_accelerator_type('v4-128'), or a DeviceAssignment built from it"
        )
    return topology
