"""TensorFlow's ClusterCoordinator: functions on workers, variables on a parameter server."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from peer import Array, begin, serve
from server_peer import TABLE_SHAPE, VECTOR_SIZE, ServerPeer

# A process of the cluster, whose place in it TF_CONFIG tells.
_TASK = """
import tensorflow as tf
resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
tf.distribute.Server(
    resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id, protocol="grpc"
).join()
"""


def cluster_of(num_workers: int) -> dict[str, list[str]]:
    """Return unused addresses for workers, a parameter server and the coordinator."""
    sockets = [socket.create_server(("localhost", 0)) for _ in range(num_workers + 2)]
    addresses = [f"localhost:{each.getsockname()[1]}" for each in sockets]
    for each in sockets:
        each.close()
    return {"chief": addresses[:1], "ps": addresses[1:2], "worker": addresses[2:]}


class TensorFlowCoordinator(ServerPeer):
    """The coordinator, which reads and writes variables itself."""

    def __init__(self, tensorflow: Any, num_workers: int) -> None:
        self._tensorflow = tensorflow
        self.num_ranks = num_workers
        self.version = f"tensorflow {tensorflow.__version__}"
        strategy = tensorflow.distribute.ParameterServerStrategy(
            tensorflow.distribute.cluster_resolver.TFConfigClusterResolver()
        )
        self._coordinator = tensorflow.distribute.coordinator.ClusterCoordinator(strategy)
        with strategy.scope():
            self._vector = tensorflow.Variable(tensorflow.zeros([VECTOR_SIZE]))
            self._table = tensorflow.Variable(tensorflow.zeros(TABLE_SHAPE))
        self._nothing = tensorflow.function(lambda: None)

    def _push_and_pull(self, gradient: Array) -> Array:
        self._vector.assign_add(gradient, read_value=False)
        return np.asarray(self._vector.numpy())

    def _run_closures(self, count: int) -> Sequence[Any]:
        results = [self._coordinator.schedule(self._nothing) for _ in range(count)]
        self._coordinator.join()
        return results

    def _value_of(self, result: Any) -> Any:
        return result.fetch()

    def _update_rows(self, indices: Array, rows: Array) -> None:
        self._table.scatter_add(self._tensorflow.IndexedSlices(rows, indices))

    def _pull_rows(self, indices: Array) -> Array:
        return np.asarray(self._table.sparse_read(indices).numpy())


def main() -> None:
    """Answer questions as the coordinator."""
    options = begin()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    cluster = cluster_of(options.ranks)
    for job, index in [("ps", 0), *(("worker", index) for index in range(options.ranks))]:
        place = json.dumps({"cluster": cluster, "task": {"type": job, "index": index}})
        subprocess.Popen([sys.executable, "-c", _TASK], env={**os.environ, "TF_CONFIG": place})  # ends with this job
    os.environ["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": {"type": "chief", "index": 0}})
    import tensorflow

    serve(TensorFlowCoordinator(tensorflow, options.ranks), options)


if __name__ == "__main__":
    main()
