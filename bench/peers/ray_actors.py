"""Ray: workers and a parameter server that are actors."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from peer import Array, begin, serve
from server_peer import ServerPeer, Variables, Worker


class RayActors(ServerPeer):
    """The driver, which has the handles of all actors."""

    def __init__(self, ray: Any, num_workers: int) -> None:
        self._ray = ray
        self.num_ranks = num_workers
        self.version = f"ray {ray.__version__}"
        self._server = ray.remote(Variables).remote()
        self._workers = [ray.remote(Worker).remote() for _ in range(num_workers)]
        ray.get([worker.nothing.remote() for worker in self._workers])
        ray.get(self._server.pull_rows.remote(np.arange(1)))

    def _push_and_pull(self, gradient: Array) -> Array:
        return np.asarray(self._ray.get(self._server.push_and_pull.remote(gradient)))

    def _run_closures(self, count: int) -> Sequence[Any]:
        workers = self._workers
        return list(self._ray.get([workers[i % len(workers)].nothing.remote() for i in range(count)]))

    def _update_rows(self, indices: Array, rows: Array) -> None:
        self._ray.get(self._server.update_rows.remote(indices, rows))

    def _pull_rows(self, indices: Array) -> Array:
        return np.asarray(self._ray.get(self._server.pull_rows.remote(indices)))


def main() -> None:
    """Answer questions as the driver."""
    options = begin()
    # Nothing but what the actors need; they find this folder by the path that is set here.
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["PYTHONPATH"] = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120
    import ray

    ray.init(
        num_cpus=options.ranks + 1, include_dashboard=False, object_store_memory=512 << 20, log_to_driver=False,
        _temp_dir=str(options.folder / "ray"),
    )  # fmt: skip
    try:
        serve(RayActors(ray, options.ranks), options)
    finally:
        ray.shutdown()


if __name__ == "__main__":
    main()
