"""Worker environment: the environment variables that identify a worker."""

from __future__ import annotations

import json

from ringlet.cluster.environment import local_workers

__all__ = ["MOST_RANKS", "MOST_WORKERS", "worker_environment"]

# Maximum size of a group, in processes and in ranks.
MOST_WORKERS = 1000
MOST_RANKS = 4096


def worker_environment(index: int, num_workers: int, job_id: str, replicas: int | None) -> dict[str, str]:
    """Return the environment variables of a worker; without `replicas`, the script sets their number."""
    cluster = local_workers(num_workers).as_dict()
    variables = {
        "TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": "worker", "index": index}}),
        "RINGLET_JOB_ID": job_id,
    }
    return variables if replicas is None else variables | {"RINGLET_NUM_DEVICES": str(replicas)}
