"""Timed operations of strategies, each with its expected answer."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import ringlet
from bench import harness
from bench.reference import WrongAnswerError
from ringlet import _core

__all__ = ["Question", "questions"]

_LEAVES = 100
_CALLS_IN_A_STEP = 20


@dataclass(frozen=True)
class Question:
    """One thing to time.

    Attributes
    ----------
    name : str
    num_replicas : int
        0 if the operation has no replicas.
    call : callable
        Makes the timed call once.
    check : callable
        Raises `WrongAnswerError` if the result of `call` is wrong.
    calls_per_unit : int
        Units of work of one call; times are divided by it.
    """

    name: str
    num_replicas: int
    call: Callable[[], Any]
    check: Callable[[Any], None]
    calls_per_unit: int = 1

    @property
    def title(self) -> str:
        """Name with the number of replicas."""
        return f"{self.name} P={self.num_replicas}" if self.num_replicas else self.name

    def measure(self, region_seconds: float) -> float:
        """Return the seconds of one unit, over back-to-back calls that fill a region."""
        return harness.seconds_per_call(self.call, region_seconds) / self.calls_per_unit


def _expect(name: str, expected: Any) -> Callable[[Any], None]:
    """Return a check that each local result, or the value itself, equals `expected`."""

    def check(given: Any) -> None:
        if not np.array_equal(np.asarray(given), np.asarray(expected)):
            raise WrongAnswerError(f"{name} gave {given!r}, expected {expected!r}. No time is reported.")

    return check


def _context() -> ringlet.ReplicaContext:
    context = ringlet.get_replica_context()
    if context is None:
        raise RuntimeError("a step function ran outside replica context")
    return context


def _strategy_questions(num_replicas: int) -> Iterator[Question]:
    strategy = ringlet.MirroredStrategy([f"CPU:{i}" for i in range(num_replicas)])
    local = strategy.experimental_local_results
    identity = strategy.experimental_distribute_values_from_function(
        lambda context: np.float32(context.replica_id_in_sync_group)
    )
    total = num_replicas * (num_replicas - 1) / 2

    def nothing() -> None:
        return None

    def one_float(x: Any) -> Any:
        return _context().all_reduce("SUM", x)

    yield Question("least of a run", num_replicas, _least_of_a_run(num_replicas), _expect("calls", num_replicas))
    yield Question("run, no-op", num_replicas, lambda: strategy.run(nothing), _expect("run", None))
    yield Question(
        "run, all_reduce of a float", num_replicas, lambda: strategy.run(one_float, args=(identity,)),
        lambda given: _expect("all_reduce", [total] * num_replicas)(local(given)),
    )  # fmt: skip
    yield from _leaves_questions(strategy, num_replicas)
    yield Question(
        "reduce of a scalar", num_replicas, lambda: strategy.reduce("SUM", identity, axis=None),
        _expect("reduce", total),
    )  # fmt: skip
    yield from _variable_questions(strategy, num_replicas, identity)
    yield _dataset_question(strategy, num_replicas)


def _least_of_a_run(num_replicas: int) -> Callable[[], int]:
    """Return what no run can do without: a claim, a context and a call for each replica."""
    claims = _core.Crew(num_replicas)

    def calls() -> int:
        claims.open()
        count = 0
        for replica in iter(claims.claim, -1):
            count += contextvars.copy_context().run(int, 1)
            claims.finish(replica)
        return count

    return calls


def _leaves_questions(strategy: Any, num_replicas: int) -> Iterator[Question]:
    leaves = [np.full(1000, i, np.float32) for i in range(_LEAVES)]

    def many_leaves() -> Any:
        return _context().all_reduce("SUM", leaves)

    def step_of_many_leaves() -> Any:
        for _ in range(_CALLS_IN_A_STEP):
            result = many_leaves()
        return result

    def check(given: Any) -> None:
        expected = [i * num_replicas for i in range(_LEAVES)]
        _expect("all_reduce", expected)([strategy.experimental_local_results(leaf)[0][0] for leaf in given])

    yield Question(f"run, all_reduce of {_LEAVES} leaves", num_replicas, lambda: strategy.run(many_leaves), check)
    yield Question(
        f"all_reduce of {_LEAVES} leaves", num_replicas, lambda: strategy.run(step_of_many_leaves), check,
        calls_per_unit=_CALLS_IN_A_STEP,
    )  # fmt: skip


def _variable_questions(strategy: Any, num_replicas: int, identity: Any) -> Iterator[Question]:
    with strategy.scope():
        variable = ringlet.Variable(np.float32(1.5), aggregation=ringlet.VariableAggregation.SUM)
    value, total = np.float32(2.5), num_replicas * (num_replicas - 1) / 2
    local = strategy.experimental_local_results

    def read() -> Any:
        with strategy.scope():
            return variable.read_value()

    def assign() -> Any:
        with strategy.scope():
            variable.assign(value)

    def assign_in_replica(x: Any) -> None:
        variable.assign(x)

    def holds(name: str, expected: Any) -> Callable[[Any], None]:
        return lambda given: _expect(name, expected)(variable.numpy())

    yield Question("variable, read", num_replicas, read, _expect("read_value", 1.5))
    yield Question("variable, assign", num_replicas, assign, holds("assign", value))
    yield Question(
        "variable, read in a replica", num_replicas, lambda: strategy.run(variable.read_value),
        lambda given: _expect("read_value", [variable.numpy()] * num_replicas)(local(given)),
    )  # fmt: skip
    yield Question(
        "variable, assign in a replica", num_replicas, lambda: strategy.run(assign_in_replica, args=(identity,)),
        holds("assign", total),
    )  # fmt: skip


def _dataset_question(strategy: Any, num_replicas: int) -> Question:
    elements, batch = 100_000, 100
    distributed = strategy.experimental_distribute_dataset(ringlet.data.Dataset.range(elements).batch(batch))

    def step_through() -> int:
        return sum(1 for _ in distributed)

    def check(given: Any) -> None:
        seen = np.concatenate(
            [part for element in distributed for part in strategy.experimental_local_results(element)]
        )
        _expect("distributed range", np.arange(elements))(np.sort(seen))
        _expect("distributed range", elements // batch)(given)

    return Question("dataset, a global batch of 100", num_replicas, step_through, check, elements // batch)


def _tile_questions() -> Iterator[Question]:
    matrix = np.arange(1024.0 * 1024).reshape(1024, 1024)
    large = np.zeros((8, 1 << 23), np.float32)

    def check_tiles(tiles: Any) -> None:
        _expect("tile_views", 64)(len(tiles))
        _expect("tile_views", matrix[128:256, 256:384])(tiles[10])

    def check_rows(tiles: Any) -> None:
        _expect("tile_views", [[True] * 8])([[np.shares_memory(tile, large[i]) for i, tile in enumerate(tiles)]])

    yield Question("tile views, 8x8 of a matrix", 0, lambda: ringlet.sharding.tile_views(matrix, (8, 8)), check_tiles)
    yield Question(
        "tile views, 256 MiB over 8 replicas", 0, lambda: ringlet.sharding.tile_views(large, (8, 1)), check_rows
    )
    yield from map(_split_question, (1 << 20, 1 << 30))


def _split_question(size_bytes: int) -> Question:
    resolver = ringlet.cluster_resolver.TPUClusterResolver(accelerator_type="v4-8")
    assignment = ringlet.tpu.DeviceAssignment.build(resolver.topology, [2, 2, 1, 2], num_replicas=1)
    strategy = ringlet.TPUStrategy(resolver, assignment)
    tensor = np.empty((8, size_bytes // 8), np.uint8)  # never touched

    def check(tiles: Any) -> None:
        _expect("split", [[True] * 8])([[np.shares_memory(tile, tensor[i]) for i, tile in enumerate(tiles)]])

    name = f"split, {harness.format_bytes(size_bytes)} over 8 logical devices"
    return Question(name, 0, lambda: strategy.experimental_split_to_logical_devices(tensor, [8, 1]).shards, check)


def questions(replica_counts: Sequence[int]) -> list[Question]:
    """Return all questions, for each number of replicas.

    Parameters
    ----------
    replica_counts : sequence of int

    Returns
    -------
    list of Question
    """
    return [question for count in replica_counts for question in _strategy_questions(count)] + list(_tile_questions())
