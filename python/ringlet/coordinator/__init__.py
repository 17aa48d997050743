"""Coordinator of the asynchronous strategy: functions run on workers, which share variables on parameter servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringlet.module_names import list_public, load_on_use

if TYPE_CHECKING:
    from ringlet.coordinator.cluster_coordinator import ClusterCoordinator as ClusterCoordinator
    from ringlet.coordinator.current_worker import (
        experimental_get_current_worker_index as experimental_get_current_worker_index,
    )
    from ringlet.coordinator.per_worker_values import PerWorkerValues as PerWorkerValues
    from ringlet.coordinator.remote_value import RemoteValue as RemoteValue
    from ringlet.coordinator.server import Server as Server

    # Aliases: tf.distribute.coordinator and tf.distribute.experimental.coordinator use different names.
    PerWorkerValue = PerWorkerValues
    get_current_worker_index = experimental_get_current_worker_index

# Public name -> module below ringlet.coordinator that defines it, and its name there if it differs.
_PUBLIC = {
    "ClusterCoordinator": "cluster_coordinator",
    "PerWorkerValue": "per_worker_values:PerWorkerValues",
    "PerWorkerValues": "per_worker_values",
    "RemoteValue": "remote_value",
    "Server": "server",
    "experimental_get_current_worker_index": "current_worker",
    "get_current_worker_index": "current_worker:experimental_get_current_worker_index",
}
__all__ = list(_PUBLIC)

__getattr__ = load_on_use(__name__, _PUBLIC)
__dir__ = list_public(__name__)
