"""MPIClusterResolver: the processes that MPI has started."""

from __future__ import annotations

import os
from collections.abc import Mapping

from ringlet.cluster.cluster_spec import ClusterSpec
from ringlet.cluster.resolvers.simple_resolver import SimpleClusterResolver


class MPIClusterResolver(SimpleClusterResolver):
    """The processes that ``mpiexec`` or ``srun`` has started, as workers in the order of their ranks.

    Unlike a strategy without a resolver, this resolver ignores ``TF_CONFIG`` and the variables of torchrun. Addresses
    are names only: no process listens on them. The cluster is empty if MPI did not start this process, or started only
    this process.

    Parameters
    ----------
    rpc_layer : str, optional
        Protocol prefix of addresses.
    environ : mapping of str to str, optional
        The environment to read; by default, the environment of this process.

    Examples
    --------
    >>> environ = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}
    >>> resolver = MPIClusterResolver(environ=environ)
    >>> resolver.cluster_spec(), resolver.task_type, resolver.task_id
    (ClusterSpec({'worker': ['localhost:20000', 'localhost:20001']}), 'worker', 1)
    """

    def __init__(self, rpc_layer: str | None = None, *, environ: Mapping[str, str] | None = None) -> None:
        from ringlet.cluster.environment import local_workers, mpi_placement  # circular import

        place = mpi_placement(os.environ if environ is None else environ)
        if place is None or place.size == 1:
            super().__init__(ClusterSpec({}), rpc_layer=rpc_layer)
        else:
            super().__init__(local_workers(place.size), task_type="worker", task_id=place.rank, rpc_layer=rpc_layer)
