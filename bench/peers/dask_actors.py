"""Dask: workers and a parameter server that are actors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from peer import Array, begin, serve
from server_peer import ServerPeer, Variables, Worker


class DaskActors(ServerPeer):
    """The client, which has the handles of all actors; each actor is a separate process."""

    def __init__(self, distributed: Any, num_workers: int) -> None:
        self.num_ranks = num_workers
        self.version = f"distributed {distributed.__version__}"
        self._cluster = distributed.LocalCluster(
            n_workers=num_workers + 1, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit=0
        )
        self._client = distributed.Client(self._cluster)
        places = list(self._client.scheduler_info(n_workers=-1)["workers"])
        self._server, *self._workers = (
            self._client.submit(kind, actor=True, workers=[place], pure=False).result()
            for kind, place in zip([Variables] + [Worker] * num_workers, places, strict=True)
        )

    def _push_and_pull(self, gradient: Array) -> Array:
        return np.asarray(self._server.push_and_pull(gradient).result())

    def _run_closures(self, count: int) -> Sequence[Any]:
        workers = self._workers
        futures = [workers[i % len(workers)].nothing() for i in range(count)]
        return [future.result() for future in futures]

    def _update_rows(self, indices: Array, rows: Array) -> None:
        self._server.update_rows(indices, rows).result()

    def _pull_rows(self, indices: Array) -> Array:
        return np.asarray(self._server.pull_rows(indices).result())

    def end(self) -> None:
        """End all processes."""
        self._client.close()
        self._cluster.close()


def main() -> None:
    """Answer questions as the client."""
    options = begin()
    import distributed

    peer = DaskActors(distributed, options.ranks)
    try:
        serve(peer, options)
    finally:
        peer.end()


if __name__ == "__main__":
    main()
