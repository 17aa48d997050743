"""Ringlet's coordinator: functions on workers, variables on a parameter server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from peer import Array, begin, serve
from server_peer import TABLE_SHAPE, VECTOR_SIZE, ServerPeer

import ringlet


def _nothing() -> None:
    pass


class RingletServer(ServerPeer):
    """The coordinator, which reads and writes variables itself."""

    def __init__(self, num_workers: int) -> None:
        self.num_ranks = num_workers
        self.version = f"ringlet {ringlet.__version__}"
        strategy = ringlet.ParameterServerStrategy(
            ringlet.cluster_resolver.LocalClusterResolver(workers=num_workers, ps=1)
        )
        with strategy.scope():
            self._vector = ringlet.Variable(np.zeros(VECTOR_SIZE, np.float32))
            self._table = ringlet.Variable(np.zeros(TABLE_SHAPE, np.float32))
        self._coordinator = ringlet.coordinator.ClusterCoordinator(strategy)

    def _push_and_pull(self, gradient: Array) -> Array:
        self._vector.assign_add(gradient, read_value=False)
        return self._vector.numpy()

    def _run_closures(self, count: int) -> Sequence[Any]:
        results = [self._coordinator.schedule(_nothing) for _ in range(count)]
        self._coordinator.join()
        return results

    def _value_of(self, result: Any) -> Any:
        return result.fetch()

    def _update_rows(self, indices: Array, rows: Array) -> None:
        self._table.scatter_add(ringlet.IndexedSlices(rows, indices))

    def _pull_rows(self, indices: Array) -> Array:
        return self._table.sparse_read(indices)

    def end(self) -> None:
        """End all processes."""
        self._coordinator.shutdown()


def main() -> None:
    """Answer questions as the coordinator."""
    options = begin()
    peer = RingletServer(options.ranks)
    try:
        serve(peer, options)
    finally:
        peer.end()


if __name__ == "__main__":
    main()
