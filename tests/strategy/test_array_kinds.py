"""Arrays of other libraries in strategies; those of PyTorch and JAX themselves are in tests/frameworks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ringlet
from ringlet.errors import CollectiveMismatchError, InvalidArgumentError
from tests.collectives.kinds import Frozen, Written
from tests.strategy.replicas import assert_usable, mirrored, replica, replica_id

KINDS = [Written, Frozen]


@pytest.mark.parametrize("kind", KINDS)
def test_a_replica_gets_the_array_type_that_it_passed(kind):
    strategy = mirrored()

    def step() -> Any:
        context = replica()
        x = kind(np.full((1, 2), replica_id()))
        return context.all_reduce("SUM", x), context.all_reduce("MEAN", {"x": x})["x"], context.all_gather(x, axis=0)

    for results, numbers in zip(strategy.run(step), ([[1, 1]], [[0.5, 0.5]], [[0, 0], [1, 1]]), strict=True):
        first, second = strategy.experimental_local_results(results)
        assert type(first) is type(second) is kind
        assert first.array.tolist() == second.array.tolist() == numbers
        assert kind is Frozen or not np.shares_memory(first.array, second.array)


@pytest.mark.parametrize("kind", KINDS)
def test_a_strategy_returns_the_array_type_of_its_replicas(kind):
    strategy = mirrored()
    value = strategy.run(lambda: kind(np.full((1, 2), replica_id(), "float32")))
    for result, numbers in (
        (strategy.reduce("SUM", value, axis=None), [[1, 1]]),
        (strategy.reduce("SUM", value, axis=0), [1, 1]),
        (strategy.reduce("MEAN", value, axis=(0, 1)), 0.5),
        (strategy.gather(value, axis=0), [[0, 0], [1, 1]]),
        (strategy.extended.reduce_to("SUM", value, "CPU:0").values[1], [[1, 1]]),
    ):
        assert type(result) is kind
        assert (result.array.tolist(), result.array.dtype) == (numbers, np.float32)


@pytest.mark.parametrize("kind", KINDS)
def test_one_replica_gets_another_object_and_a_copy_of_what_may_be_written_to(kind):
    x = kind(np.ones(2))
    for result in ringlet.OneDeviceStrategy("CPU:0").run(
        lambda: (replica().all_reduce("SUM", x), replica().all_gather(x, 0))
    ):
        assert type(result) is kind
        assert kind is Frozen or not np.shares_memory(result.array, x.array)


@pytest.mark.parametrize("pair", [(Written, Frozen), (Frozen, np.asarray), (np.asarray, Written)])
@pytest.mark.parametrize("call", ["all_reduce", "all_gather", "reduce"])
def test_arrays_of_different_libraries_are_an_error_that_names_them(call, pair):
    strategy = mirrored()

    def step() -> Any:
        x = {"w": pair[replica_id()](np.ones(2))}
        if call == "all_reduce":
            return replica().all_reduce("SUM", x)
        if call == "all_gather":
            return replica().all_gather(x, 0)
        return replica().merge_call(lambda strategy, x: strategy.reduce("SUM", x, axis=None), (x,))

    with pytest.raises((CollectiveMismatchError, InvalidArgumentError), match="different libraries"):
        strategy.run(step)
    assert_usable(strategy)


def test_calls_that_differ_otherwise_are_not_blamed_on_libraries():
    def step() -> Any:
        if replica_id():
            return replica().all_gather(np.ones(2), 0)
        return replica().all_reduce("SUM", Written(np.ones(2)))

    with pytest.raises(CollectiveMismatchError, match="did not make the same call"):
        mirrored().run(step)


def test_shapes_that_differ_are_not_blamed_on_libraries():
    with pytest.raises(CollectiveMismatchError, match="did not make the same call"):
        mirrored().run(lambda: replica().all_reduce("SUM", Written(np.ones(2 + replica_id()))))


def test_structures_that_differ_are_shown_without_kinds():
    with pytest.raises(CollectiveMismatchError, match=r"replica 0 with \{'a': \*\}, replica 1 with \{'b': \*\}"):
        mirrored().run(lambda: replica().all_reduce("SUM", {"ab"[replica_id()]: Written(np.ones(2))}))
