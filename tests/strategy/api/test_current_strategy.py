"""The current strategy and replica."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

import ringlet

STRATEGY = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])


def state() -> tuple[bool, bool, bool]:
    return ringlet.has_strategy(), ringlet.in_cross_replica_context(), ringlet.get_replica_context() is not None


OUTSIDE, IN_SCOPE, IN_REPLICA = (False, False, True), (True, True, False), (True, False, True)


def test_outside_of_every_scope_the_default_replica_is_current():
    assert state() == OUTSIDE


def test_in_a_scope_no_replica_is_current():
    with STRATEGY.scope():
        assert (ringlet.get_strategy(), state()) == (STRATEGY, IN_SCOPE)


def test_in_a_run_a_replica_is_current():
    assert STRATEGY.run(state) == IN_REPLICA or STRATEGY.run(state)[0] is True


def test_other_threads_have_the_default_strategy():
    with STRATEGY.scope(), ThreadPoolExecutor(1) as pool:
        assert pool.submit(state).result(timeout=60) == OUTSIDE


def test_a_strategy_can_be_set_without_a_with():
    other = ringlet.MirroredStrategy(["CPU:2"])
    try:
        ringlet.experimental_set_strategy(STRATEGY)
        assert (ringlet.get_strategy(), state()) == (STRATEGY, IN_SCOPE)
        ringlet.experimental_set_strategy(other)
        assert ringlet.get_strategy() is other
        with other.scope(), pytest.raises(RuntimeError, match="inside a strategy scope"):
            ringlet.experimental_set_strategy(STRATEGY)
        assert ringlet.get_strategy() is other
    finally:
        ringlet.experimental_set_strategy(None)
    assert state() == OUTSIDE


def test_only_strategies_can_be_set():
    with pytest.raises(
        TypeError, match=r"strategy must be a ringlet.Strategy or None, got 'x' of type str: create one"
    ):
        ringlet.experimental_set_strategy("x")
    assert state() == OUTSIDE


def test_setting_none_twice_changes_nothing():
    ringlet.experimental_set_strategy(None)
    ringlet.experimental_set_strategy(None)
    assert state() == OUTSIDE


def test_setting_a_strategy_in_a_scope_is_refused():
    with STRATEGY.scope(), pytest.raises(RuntimeError, match="inside a strategy scope"):
        ringlet.experimental_set_strategy(None)


def test_replica_context_is_never_none():
    assert ringlet.replica_context() is ringlet.get_replica_context()
    assert STRATEGY.run(lambda: ringlet.replica_context() is ringlet.get_replica_context()) is True
    with STRATEGY.scope(), pytest.raises(RuntimeError, match=r"cross-replica context of Mirrored.*strategy\.run\(fn\)"):
        ringlet.replica_context()
    with pytest.raises(RuntimeError, match="merge_fn"):
        STRATEGY.run(lambda: ringlet.replica_context().merge_call(lambda strategy: ringlet.replica_context()))


def test_set_strategy_is_the_plain_name():
    assert ringlet.set_strategy is ringlet.experimental_set_strategy
