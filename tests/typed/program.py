"""A typed program: lint checks each `assert_type` in it with ``mypy --strict``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import ringlet
from ringlet.sharding import Mesh, ShardedArray, shard
from ringlet.values import PerReplica

if TYPE_CHECKING:
    from typing_extensions import assert_type
else:

    def assert_type(value, kind):  # in the standard library from Python 3.11 on
        return value


Array = NDArray[np.float64]


def merge(strategy: ringlet.Strategy) -> str:
    """Return one value for all replicas."""
    return f"merged by {strategy}"


def step(x: Array) -> Array:
    """Sum the slices of all replicas."""
    replica = ringlet.replica_context()
    total = replica.all_reduce("SUM", x)
    assert_type(total, Array)
    assert_type(replica.all_reduce(ringlet.ReduceOp.MEAN, 1.5), NDArray[Any])
    assert_type(replica.all_reduce("SUM", {"w": x}), dict[str, Array])
    assert_type(replica.all_gather(x, axis=0), Array)
    assert_type(replica.merge_call(merge), str)
    return total


def loss(x: Array) -> float:
    """Return the mean of a slice."""
    return float(x.mean())


def metrics(x: Array) -> dict[str, Array]:
    """Return arrays by name."""
    return {"sum": x.sum(keepdims=True)}


def doubled(x: Array) -> Array:
    """Return a row for each row."""
    return 2 * x


def pair(x: Array) -> tuple[Array, float]:
    """Return two results."""
    return x, loss(x)


def log(x: Array) -> None:
    """Return nothing."""


def main() -> None:
    """Call each typed method."""
    strategy = ringlet.MirroredStrategy(2)
    x = np.ones((4, 2))
    batch = strategy.distribute_values_from_function(lambda context: x[context.replica_id_in_sync_group :: 2])

    sums = strategy.run(step, args=(batch,))
    assert_type(sums, Array | PerReplica[Array])
    assert_type(strategy.local_results(sums), tuple[Array, ...])
    assert_type(strategy.experimental_local_results(sums), tuple[Array, ...])
    assert_type(strategy.reduce("SUM", sums, axis=None), Array)
    assert_type(strategy.gather(sums, axis=0), Array)

    losses = strategy.run(loss, args=(batch,))
    assert_type(losses, float | PerReplica[float])
    assert_type(strategy.reduce("MEAN", losses, axis=None), NDArray[Any])

    named = strategy.run(metrics, args=(batch,))
    assert_type(named, dict[str, Array | PerReplica[Array]])
    assert_type(strategy.reduce("SUM", named["sum"], axis=0), Array)
    assert_type(strategy.reduce("SUM", named, axis=0), dict[str, Array])
    assert_type(strategy.local_results(named), tuple[dict[str, Array], ...])

    first, second = strategy.run(pair, args=(batch,))
    assert_type(first, Array | PerReplica[Array])
    assert_type(second, float | PerReplica[float])
    strategy.run(log, args=(batch,))

    tpus = ringlet.TPUStrategy(ringlet.cluster_resolver.TPUClusterResolver(accelerator_type="v4-8"))
    assert_type(tpus.run(loss, args=(x,)), float | PerReplica[float])
    assert_type(tpus.run(metrics, args=(x,)), dict[str, Array | PerReplica[Array]])

    assert_type(strategy.map(metrics, x, batch_size=2), dict[str, Array])
    assert_type(ringlet.map(doubled, x), Array)

    tiles = shard(x[:2], Mesh({"x": 2}).sharding("x"))
    assert_type(tiles @ tiles, ShardedArray)
    assert_type(2 * tiles - 1, ShardedArray)


def mistakes(strategy: ringlet.Strategy, losses: PerReplica[float]) -> None:
    """Make calls that checkers refuse."""
    strategy.map(step, "text")  # type: ignore[arg-type]
    strategy.map(step, np.ones(2), np.ones(2))  # type: ignore[arg-type]
    strategy.map(step, np.ones(2), n_jobs=2)  # type: ignore[arg-type]
    strategy.reduce(5, losses, axis=None)  # type: ignore[call-overload]
    strategy.run(5)  # type: ignore[call-overload]
