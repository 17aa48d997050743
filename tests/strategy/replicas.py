"""Helpers for tests of runs: strategies, the current replica, and a check that a strategy still works."""

from __future__ import annotations

from typing import Any

import numpy as np

import ringlet

# The longest wait in a test.
SECONDS = 60


def replica() -> ringlet.ReplicaContext:
    current = ringlet.get_replica_context()
    assert current is not None
    return current


def replica_id() -> int:
    return int(replica().replica_id_in_sync_group)


def mirrored(num_replicas: int = 2) -> ringlet.MirroredStrategy:
    return ringlet.MirroredStrategy([f"CPU:{i}" for i in range(num_replicas)])


def all_reduce() -> Any:
    return replica().all_reduce("SUM", np.ones(3))


def assert_usable(strategy: ringlet.Strategy) -> None:
    for result in strategy.experimental_local_results(strategy.run(all_reduce)):
        assert result.tolist() == [strategy.num_replicas_in_sync] * 3
