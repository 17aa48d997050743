"""The environment of each worker: who it is."""

from __future__ import annotations

import json

__all__ = ["MOST_RANKS", "MOST_WORKERS", "worker_environment"]

# What a group of processes, and one of ranks, has room for.
MOST_WORKERS = 1000
MOST_RANKS = 4096

# TF_CONFIG wants an address for each worker. Nobody listens there: processes of one machine meet under a name made of
# the cluster and the job. So equal ports of two jobs do not collide.
_FIRST_PORT = 20000


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
