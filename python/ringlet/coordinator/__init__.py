"""The asynchronous strategy: functions on workers, variables on parameter servers."""

from __future__ import annotations

from ringlet.coordinator.cluster_coordinator import ClusterCoordinator
from ringlet.coordinator.current_worker import experimental_get_current_worker_index
from ringlet.coordinator.per_worker_values import PerWorkerValues
from ringlet.coordinator.remote_value import RemoteValue
from ringlet.coordinator.server import Server

__all__ = [
    "ClusterCoordinator",
    "PerWorkerValue",
    "PerWorkerValues",
    "RemoteValue",
    "Server",
    "experimental_get_current_worker_index",
    "get_current_worker_index",
]

# TensorFlow has both names of each: of tf.distribute.coordinator, and of its experimental module.
PerWorkerValue = PerWorkerValues
get_current_worker_index = experimental_get_current_worker_index
