"""From what describes a cluster to its processes."""

from __future__ import annotations

import os

from ringlet.cluster.registered_tasks import JoinedTasks
from ringlet.cluster.resolvers.base_resolver import ClusterResolver
from ringlet.cluster.resolvers.local_resolver import LocalClusterResolver
from ringlet.cluster.task_pool import Tasks

__all__ = ["start_tasks"]


def start_tasks(resolver: ClusterResolver, timeout_seconds: float) -> Tasks:
    """Start the processes of a cluster, or wait until all have come.

    Parameters
    ----------
    resolver : ClusterResolver
        Processes of a `LocalClusterResolver` are started. To any other cluster each of its workers and parameter
        servers comes by itself, as a ``Server``.
    timeout_seconds : float
        How long to wait for those; may be infinite.

    Returns
    -------
    Tasks

    Raises
    ------
    DeadlineExceededError
        If some did not come; names them.
    FailedPreconditionError
        If another coordinator waits for them.
    OSError
        If the system cannot start so many processes.
    """
    if isinstance(resolver, LocalClusterResolver):
        return resolver.start()
    return JoinedTasks(resolver.cluster_spec(), os.environ.get("RINGLET_JOB_ID", ""), timeout_seconds)
