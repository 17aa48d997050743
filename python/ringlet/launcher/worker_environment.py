"""Worker environment: the environment variables that identify a worker."""

from __future__ import annotations

import json
import socket

from ringlet.cluster.environment import local_workers

# Maximum size of a group, in processes and in ranks.
MOST_WORKERS = 1000
MOST_RANKS = 4096


def worker_environment(index: int, num_workers: int, job_id: str, replicas: int | None, port: int) -> dict[str, str]:
    """Return the environment variables of a worker; without `replicas`, the script sets their number.

    `port` is for torch.distributed, whose rank 0 listens on it.
    """
    cluster = local_workers(num_workers).as_dict()
    variables = {
        "TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": "worker", "index": index}}),
        "RINGLET_JOB_ID": job_id,
        "RANK": str(index),
        "WORLD_SIZE": str(num_workers),
        "LOCAL_RANK": str(index),
        "LOCAL_WORLD_SIZE": str(num_workers),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    return variables if replicas is None else variables | {"RINGLET_NUM_DEVICES": str(replicas)}


def unused_port() -> int:
    """Return a TCP port of this machine that is currently unused."""
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        return int(trial.getsockname()[1])
