"""The environment of each worker: who it is, and how many threads its BLAS may have."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

__all__ = ["MOST_RANKS", "MOST_WORKERS", "blas_threads", "new_job_id", "worker_environment"]

# What a group of processes, and one of ranks, has room for.
MOST_WORKERS = 1000
MOST_RANKS = 4096

# TF_CONFIG wants an address for each worker. Nobody listens there: processes of one machine meet under a name made of
# the cluster and the job. So equal ports of two jobs do not collide.
_FIRST_PORT = 20000

# What OpenBLAS, MKL, BLIS, Accelerate and everything on OpenMP read when they are loaded. The first one holds for the
# others where they are not set.
_OPENMP = "OMP_NUM_THREADS"
_BLAS_VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def new_job_id() -> str:
    """Make a ``RINGLET_JOB_ID`` that no other job has.

    Returns
    -------
    str

    Examples
    --------
    >>> new_job_id() == new_job_id()
    False
    """
    return os.urandom(8).hex()


def worker_environment(index: int, num_workers: int, job_id: str, replicas: int | None) -> dict[str, str]:
    """Give the variables that tell a worker its place.

    Parameters
    ----------
    index, num_workers : int
    job_id : str
        Keeps jobs apart that run at the same time.
    replicas : int, optional
        Number of replicas of each worker; by default the script decides.

    Returns
    -------
    dict of str to str

    Examples
    --------
    >>> worker_environment(1, 2, "7f3a", replicas=4)["TF_CONFIG"]
    '{"cluster": {"worker": ["localhost:20000", "localhost:20001"]}, "task": {"type": "worker", "index": 1}}'
    """
    cluster = {"worker": [f"localhost:{_FIRST_PORT + worker}" for worker in range(num_workers)]}
    variables = {
        "TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": "worker", "index": index}}),
        "RINGLET_JOB_ID": job_id,
    }
    return variables if replicas is None else variables | {"RINGLET_NUM_DEVICES": str(replicas)}


def blas_threads(environment: Mapping[str, str], cores: int, ranks: int) -> dict[str, str]:
    """Give the variables that make the BLAS libraries of all ranks together use each core once.

    Parameters
    ----------
    environment : mapping of str to str
        What the user has set: that stays. ``RINGLET_BLAS_THREADS`` is the number of threads, 0 to leave BLAS alone.
    cores : int
        Cores that the ranks share.
    ranks : int
        Replicas of all workers together.

    Returns
    -------
    dict of str to str

    Examples
    --------
    >>> blas_threads({"MKL_NUM_THREADS": "3"}, cores=8, ranks=4)
    {'OMP_NUM_THREADS': '2', 'OPENBLAS_NUM_THREADS': '2', 'BLIS_NUM_THREADS': '2', 'VECLIB_MAXIMUM_THREADS': '2'}
    >>> blas_threads({"OMP_NUM_THREADS": "8"}, cores=8, ranks=4)
    {}
    """
    asked = environment.get("RINGLET_BLAS_THREADS", "").strip()
    # Whoever has set OpenMP's means all of them. What is no number, the worker says itself.
    if environment.get(_OPENMP) or (asked and (not asked.isdecimal() or int(asked) == 0)):
        return {}
    threads = asked or str(max(1, cores // ranks))
    return {name: threads for name in (_OPENMP, *_BLAS_VARIABLES) if not environment.get(name)}
