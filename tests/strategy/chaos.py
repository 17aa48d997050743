"""Random training jobs of MultiWorkerMirroredStrategy, disturbed like the collectives (`tests.chaos`).

Alternatively, a replica raises an error: its worker raises the same error, and the others an error that names it.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import ringlet
import ringlet.data
import ringlet.strategy.multi_worker.multi_worker_extended  # loaded once for all jobs
from ringlet import VariableAggregation, VariableSynchronization
from tests.processes import chaos
from tests.processes.chaos import Plan, run_plan
from tests.strategy.workers import environment

__all__ = ["EVENTS", "run_round"]

EVENTS = [*chaos.EVENTS, "raise"]
OPERATIONS = ["all_reduce", "many", "all_gather", "train", "train", "assign", "read", "metric"]
OPERATIONS += ["reduce", "mean", "rows", "gather", "next", "next", "batch"]
ROWS = 3


def replica() -> int:
    return int(ringlet.get_replica_context().replica_id_in_sync_group)


class Steps:
    """One worker's calls of a strategy, each compared with the expected result.

    All numbers are small and whole, so that every sum is exact.
    """

    def __init__(self, plan: Plan, rank: int) -> None:
        self.plan = plan
        self.replicas = random.Random(f"{plan.seed} replicas").choice([1, 1, 2])
        job_id = f"chaos {os.getppid()}"
        crosses = {"RINGLET_CROSS_MEMORY": plan.crosses}
        os.environ.update(environment(rank, plan.num_ranks, self.replicas, job_id, **crosses))
        options = ringlet.experimental.CommunicationOptions(timeout_seconds=plan.timeout_seconds)
        self.strategy = ringlet.MultiWorkerMirroredStrategy(communication_options=options)
        own = random.Random(f"{plan.seed} failure")
        self.fails_at = own.randrange(30) if plan.event == "raise" and rank in plan.victims else -1
        self.fails_in = rank * self.replicas + own.randrange(self.replicas)
        self.size = self.strategy.num_replicas_in_sync
        self.mine = [rank * self.replicas + local for local in range(self.replicas)]
        self.count = min(plan.count, 1 << 18)
        dtype = np.float32 if plan.dtype.itemsize < 8 else np.float64
        with self.strategy.scope():
            self.weights = ringlet.Variable(np.zeros(self.count, dtype), aggregation=VariableAggregation.SUM)
            self.short = ringlet.Variable(np.zeros(5, ml_dtypes.bfloat16), aggregation=VariableAggregation.MEAN)
            self.metric = ringlet.Variable(
                0, synchronization=VariableSynchronization.ON_READ, aggregation=VariableAggregation.SUM
            )
        self.value, self.total = 0, 0  # of the weights, and of the metric
        dataset = ringlet.data.Dataset.range(10**9).batch(self.size)
        self.batches: Iterator[Any] = iter(self.strategy.experimental_distribute_dataset(dataset))
        self.num_batches = 0

    def is_over(self, is_asked: bool) -> bool:
        """Return whether worker 0 was asked to end."""
        told = self.strategy.run(
            lambda: ringlet.get_replica_context().all_reduce("SUM", np.int64(is_asked and replica() == 0))
        )
        return bool(self.local(told)[0])

    def make(self, step: int) -> bool:
        """Make one call; return whether its result is correct."""
        chance = random.Random(f"{self.plan.seed} {step}")  # alike on all workers
        if step == self.fails_at:
            self.run(self._fail)
        name, base = chance.choice(OPERATIONS), step % 7
        call: Callable[[int], bool] = getattr(self, f"_{name}")
        return call(base)

    def local(self, value: Any) -> list[Any]:
        return [np.asarray(x) for x in self.strategy.experimental_local_results(value)]

    def run(self, function: Callable[[Any, int], Any]) -> list[Any]:
        """Run a function of the replica's context and number; return what the replicas of this worker return."""
        return list(
            self.strategy.experimental_local_results(
                self.strategy.run(lambda: function(ringlet.get_replica_context(), replica()))
            )
        )

    def per_replica(self, value_of: Callable[[int], Any]) -> Any:
        return self.strategy.experimental_distribute_values_from_function(
            lambda context: value_of(context.replica_id_in_sync_group)
        )

    def sum_of(self, base: int) -> int:
        """Return the sum of ``base + replica`` over all replicas."""
        return self.size * base + sum(range(self.size))

    def _fail(self, context: Any, i: int) -> Any:
        if i == self.fails_in:
            raise ValueError("chaos")
        return context.all_reduce("SUM", np.int64(i))

    def _all_reduce(self, base: int) -> bool:
        results = self.run(lambda context, i: context.all_reduce("SUM", np.full(self.count, base + i, np.int64)))
        return all((x == self.sum_of(base)).all() for x in results)

    def _many(self, base: int) -> bool:
        def step(context: Any, i: int) -> Any:
            return context.all_reduce("SUM", {"a": np.full(self.count, base + i, np.float32), "b": [np.int64(i)]})

        wanted = self.sum_of(base), self.sum_of(0)
        return all((x["a"] == wanted[0]).all() and x["b"][0] == wanted[1] for x in self.run(step))

    def _all_gather(self, base: int) -> bool:
        results = self.run(lambda context, i: context.all_gather(np.full((i + 1, 2), base + i), axis=0))
        wanted = np.concatenate([np.full((i + 1, 2), base + i) for i in range(self.size)])
        return all(np.array_equal(x, wanted) for x in results)

    def _train(self, base: int) -> bool:
        def step(context: Any, i: int) -> None:
            self.weights.assign(np.full(self.count, base + i, self.weights.dtype))
            self.short.assign_add(np.full(5, 1, ml_dtypes.bfloat16) if base else np.full(5, -1, ml_dtypes.bfloat16))

        self.run(step)
        self.value = self.sum_of(base)
        return self._read(base)

    def _assign(self, base: int) -> bool:
        self.weights.assign(np.full(self.count, base, self.weights.dtype))
        self.value = base
        return self._read(base)

    def _read(self, base: int) -> bool:
        return bool((self.weights.numpy() == self.value).all()) and len(set(self.short.numpy().tolist())) == 1

    def _metric(self, base: int) -> bool:
        self.run(lambda context, i: self.metric.assign_add(base + i) is None)
        self.total += self.sum_of(base)
        return int(self.metric.numpy()) == self.total

    def _reduce(self, base: int) -> bool:
        value = self.per_replica(lambda i: np.full(ROWS, base + i, np.float64))
        return bool((self.strategy.reduce("SUM", value, axis=None) == self.sum_of(base)).all())

    def _mean(self, base: int) -> bool:
        value = self.per_replica(lambda i: np.float64(self.size * (base + i)))
        return bool(self.strategy.reduce("MEAN", value, axis=None) == self.sum_of(base))

    def _rows(self, base: int) -> bool:
        value = self.per_replica(lambda i: np.full((ROWS, 2), base + i, np.float64))
        return bool((self.strategy.reduce("SUM", value, axis=0) == ROWS * self.sum_of(base)).all())

    def _gather(self, base: int) -> bool:
        value = self.per_replica(lambda i: np.full((i + 1, 2), base + i))
        wanted = np.concatenate([np.full((i + 1, 2), base + i) for i in range(self.size)])
        return np.array_equal(self.strategy.gather(value, axis=0), wanted)

    def _next(self, base: int) -> bool:
        batch = [x.tolist() for x in self.local(next(self.batches))]
        first = self.num_batches * self.size
        self.num_batches += 1
        # Each worker has every other element, and deals its own out to its replicas.
        worker, workers = self.mine[0] // self.replicas, self.plan.num_ranks
        return batch == [[first + worker + local * workers] for local in range(self.replicas)]

    def _batch(self, base: int) -> bool:
        values = [self.per_replica(lambda i, k=k: np.full(ROWS, base + i + k, np.float32)) for k in range(3)]
        pairs = [(value, value) for value in values]
        results = self.strategy.extended.batch_reduce_to("SUM", pairs)
        return all((x == self.sum_of(base + k)).all() for k, result in enumerate(results) for x in self.local(result))


def run_round(seed: int, event: str, folder: Path) -> list[str]:
    """Run one job; return its faults."""
    return run_plan(Plan.draw(seed, event, most_ranks=3), Steps)
