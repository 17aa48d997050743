"""Start of a cluster's processes, or waiting for them to register."""

from __future__ import annotations

import os

from ringlet.cluster.registered_tasks import RegisteredTasks
from ringlet.cluster.resolvers.base_resolver import ClusterResolver
from ringlet.cluster.resolvers.local_resolver import LocalClusterResolver
from ringlet.cluster.task_pool import Tasks

__all__ = ["start_tasks"]


def start_tasks(resolver: ClusterResolver, timeout_seconds: float) -> Tasks:
    """Start the processes of a cluster, or wait until all have registered.

    Parameters
    ----------
    resolver : ClusterResolver
        The processes of a `LocalClusterResolver` are started. Those of any other cluster are started separately, each
        as a ``Server``.
    timeout_seconds : float
        How long to wait for registrations; may be infinite.

    Returns
    -------
    Tasks

    Raises
    ------
    DeadlineExceededError
        If some tasks did not register; names them.
    FailedPreconditionError
        If the cluster has another coordinator.
    OSError
        If the system cannot start the processes.
    """
    if isinstance(resolver, LocalClusterResolver):
        return resolver.start()
    return RegisteredTasks(resolver.cluster_spec(), os.environ.get("RINGLET_JOB_ID", ""), timeout_seconds)
