"""The contract of all strategies, for any kind of replicas.

The test file of a strategy derives from :class:`StrategyContract` and defines how to create it with n replicas;
a strategy with limited numbers of replicas lists them.
"""

from __future__ import annotations

import copy
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import ringlet
from ringlet.values import DistributedValues
from tests.strategy.replicas import SECONDS, replica_id


class Boom(Exception):
    """The exception of a replica in tests."""


@contextmanager
def no_forced_switches() -> Iterator[None]:
    """Switch threads only where one of them blocks."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)


class StrategyContract:
    """The tests; `make` returns the strategy under test."""

    COUNTS = (1, 2, 3, 8)

    def make(self, num_replicas: int) -> ringlet.Strategy:
        raise NotImplementedError

    @pytest.fixture
    def strategy(self, num_replicas: int) -> ringlet.Strategy:
        return self.make(num_replicas)

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if "num_replicas" in metafunc.fixturenames:
            metafunc.parametrize("num_replicas", self.COUNTS)

    def here(self, num_replicas: int) -> range:
        """Return the indices of the replicas of this process."""
        return range(num_replicas)

    def values(self, strategy: ringlet.Strategy, value: Any) -> tuple[Any, ...]:
        return strategy.experimental_local_results(value)

    # run

    def test_every_replica_runs_once(self, strategy, num_replicas):
        calls: list[int] = []
        strategy.run(lambda: calls.append(replica_id()))
        assert sorted(calls) == list(self.here(num_replicas))
        assert strategy.num_replicas_in_sync == num_replicas

    def test_results_are_in_replica_order(self, strategy, num_replicas):
        answers = strategy.run(lambda: replica_id() + 1000)
        assert self.values(strategy, answers) == tuple(1000 + i for i in self.here(num_replicas))

    def test_side_effects_of_replicas_that_never_block_are_in_replica_order(self, strategy, num_replicas):
        for _ in range(20):
            calls: list[int] = []
            with no_forced_switches():
                strategy.run(lambda calls=calls: calls.append(replica_id()))
            assert calls == list(self.here(num_replicas))

    def test_each_replica_receives_its_components(self, strategy, num_replicas):
        value = strategy.experimental_distribute_values_from_function(lambda c: c.replica_id_in_sync_group + 0.5)
        answer = strategy.run(lambda x, *, y: x + y["y"], args=(value,), kwargs={"y": {"y": value}})
        assert self.values(strategy, answer) == tuple(2 * i + 1.0 for i in self.here(num_replicas))

    def test_a_run_is_in_replica_context_of_the_strategy(self, strategy):
        def state() -> bool:
            replica = ringlet.get_replica_context()
            assert replica is not None
            return (
                replica.strategy is strategy
                and ringlet.get_strategy() is strategy
                and not ringlet.in_cross_replica_context()
                and replica.num_replicas_in_sync == strategy.num_replicas_in_sync
            )

        assert strategy.run(state) is True
        assert not ringlet.has_strategy()

    def test_a_run_inside_of_the_scope_is_the_same(self, strategy, num_replicas):
        with strategy.scope():
            answers = strategy.run(lambda: replica_id() + 1000)
            assert ringlet.in_cross_replica_context()
        assert len(self.values(strategy, answers)) == len(self.here(num_replicas))

    def test_a_run_inside_of_a_replica_is_refused(self, strategy):
        with pytest.raises(RuntimeError, match="cross-replica context"):
            strategy.run(lambda: strategy.run(lambda: None))

    # combining

    def test_all_reduce_sums_over_the_replicas(self, strategy, num_replicas):
        def step() -> Any:
            return ringlet.get_replica_context().all_reduce("SUM", np.array([replica_id() + 1, 10]))

        for result in self.values(strategy, strategy.run(step)):
            assert result.tolist() == [num_replicas * (num_replicas + 1) // 2, 10 * num_replicas]

    def test_reduce_equals_all_reduce(self, strategy):
        value = strategy.experimental_distribute_values_from_function(
            lambda c: np.random.default_rng(c.replica_id_in_sync_group).normal(size=100)
        )
        for op in ringlet.ReduceOp:
            everywhere = strategy.run(lambda x, op=op: ringlet.get_replica_context().all_reduce(op, x), args=(value,))
            reduced = strategy.reduce(op, value, axis=None)
            for result in self.values(strategy, everywhere):
                np.testing.assert_array_equal(result, reduced)

    def test_merge_call_runs_once_in_cross_replica_context(self, strategy, num_replicas):
        merged: list[bool] = []

        def merge(inner: ringlet.Strategy, x: Any) -> Any:
            merged.append(inner is strategy and ringlet.in_cross_replica_context())
            return inner.reduce("SUM", x, axis=None)

        def step() -> Any:
            return ringlet.get_replica_context().merge_call(merge, args=(replica_id() + 0.5,))

        for result in self.values(strategy, strategy.run(step)):
            assert float(result) == num_replicas**2 / 2
        assert merged == [True]

    def test_gather_joins_in_replica_order(self, strategy, num_replicas):
        value = strategy.experimental_distribute_values_from_function(
            lambda c: np.full((c.replica_id_in_sync_group + 1, 2), c.replica_id_in_sync_group)
        )
        expected = [[i, i] for i in range(num_replicas) for _ in range(i + 1)]
        assert strategy.gather(value, axis=0).tolist() == expected
        everywhere = strategy.run(lambda x: ringlet.get_replica_context().all_gather(x, axis=-2), args=(value,))
        for result in self.values(strategy, everywhere):
            assert result.tolist() == expected

    def test_reduce_to_equals_reduce(self, strategy):
        value = strategy.experimental_distribute_values_from_function(
            lambda c: np.array([c.replica_id_in_sync_group, 1.5])
        )
        for op in ringlet.ReduceOp:
            expected = strategy.reduce(op, value, axis=None).tolist()
            for destinations in ("CPU:0", value):
                result = strategy.extended.reduce_to(op, value, destinations)
                assert np.asarray(result).tolist() == expected
                (many,) = strategy.extended.batch_reduce_to(op, [(value, destinations)])
                assert np.asarray(many).tolist() == expected

    # failure

    def test_an_exception_of_a_replica_is_raised_and_the_strategy_stays_usable(self, strategy, num_replicas):
        def step() -> Any:
            if replica_id() == num_replicas - 1:
                raise Boom("the last one")
            return ringlet.get_replica_context().all_reduce("SUM", np.ones(3))

        for _ in range(3):
            with pytest.raises(Boom, match="the last one"):
                strategy.run(step)
            assert len(strategy.experimental_local_results(strategy.run(lambda: replica_id() + 1000))) == num_replicas

    def test_an_exception_leaves_no_mode_behind(self, strategy):
        with pytest.raises(ZeroDivisionError):
            strategy.run(lambda: 1 // 0)
        assert not ringlet.has_strategy()

    # values, scopes and threads

    def test_values_from_a_function_hold_every_component(self, strategy, num_replicas):
        value = strategy.experimental_distribute_values_from_function(lambda c: (c.replica_id_in_sync_group, "s"))
        assert self.values(strategy, value) == tuple((i, "s") for i in self.here(num_replicas))

    def test_local_results_of_a_plain_value_are_that_value(self, strategy):
        assert strategy.experimental_local_results("plain") == ("plain",)

    def test_scopes_of_the_same_strategy_nest(self, strategy):
        with strategy.scope() as outer, strategy.scope() as inner:
            assert outer is inner is strategy is ringlet.get_strategy()
        assert not ringlet.has_strategy()

    def test_another_strategys_scope_is_refused(self, strategy):
        other = self.make(strategy.num_replicas_in_sync)
        with strategy.scope(), pytest.raises(RuntimeError, match="Mixing"), other.scope():
            pytest.fail("entered")

    def test_two_threads_run_one_strategy_at_the_same_time(self, strategy, num_replicas):
        both = threading.Barrier(2, timeout=SECONDS)

        def step(base: float) -> Any:
            if replica_id() == 0:
                both.wait()
            return ringlet.get_replica_context().all_reduce("SUM", np.array([base]))

        with ThreadPoolExecutor(2) as pool:
            runs = [pool.submit(strategy.run, step, (float(base),)) for base in (1, 100)]
            for base, run in zip((1, 100), runs, strict=True):
                results = self.values(strategy, run.result(timeout=SECONDS))
                assert [float(result[0]) for result in results] == [base * num_replicas] * len(results)

    def test_a_deep_copy_is_a_strategy_of_its_own(self, strategy, num_replicas):
        twin = copy.deepcopy(strategy)
        assert repr(twin) == repr(strategy)
        answers = twin.run(lambda: replica_id() + 1000)
        assert self.values(twin, answers) == tuple(1000 + i for i in self.here(num_replicas))
        with strategy.scope(), pytest.raises(RuntimeError, match="Mixing"):
            twin.run(lambda: None)
        with pytest.raises(RuntimeError, match="deepcopy"):
            copy.copy(strategy)

    def test_variables_of_the_scope_belong_to_the_strategy(self, strategy, num_replicas):
        other = self.make(num_replicas)
        with strategy.scope():
            variable = ringlet.Variable(np.zeros(2))
        assert strategy.extended.variable_created_in_scope(variable)
        assert not other.extended.variable_created_in_scope(variable)
        strategy.extended.update(variable, lambda v, x: v.assign_add(x), args=(np.ones(2),))
        assert strategy.extended.read_var(variable).tolist() == [1, 1]
        for component in strategy.experimental_local_results(variable):
            assert np.asarray(component).tolist() == [1, 1]
            assert strategy.extended.value_container(component) is variable
        with strategy.scope(), strategy.extended.colocate_vars_with(variable):
            assert strategy.extended.variable_created_in_scope(ringlet.Variable(1.0))

    def test_distributed_datasets_feed_every_replica(self, strategy, num_replicas):
        dataset = ringlet.data.Dataset.range(4 * num_replicas).batch(2 * num_replicas)
        rows = [
            int(part.sum())
            for batch in strategy.experimental_distribute_dataset(dataset)
            for part in (batch.values if isinstance(batch, DistributedValues) else (batch,))
        ]
        assert len(rows) == 2 * num_replicas
        assert sum(rows) == sum(range(4 * num_replicas))
