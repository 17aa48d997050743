"""Calls in the wrong context raise an error with a remedy."""

from __future__ import annotations

import pytest

import ringlet

STRATEGY = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
OTHER = ringlet.MirroredStrategy(["CPU:2"])

CROSS_REPLICA_CALLS = {
    "run": lambda: STRATEGY.run(lambda: None),
    "reduce": lambda: STRATEGY.reduce("SUM", 0.0, axis=None),
    "scope": lambda: STRATEGY.scope().__enter__(),
    "call_for_each_replica": lambda: STRATEGY.extended.call_for_each_replica(lambda: None),
}
calls = pytest.mark.parametrize("call", CROSS_REPLICA_CALLS.values(), ids=CROSS_REPLICA_CALLS)


@calls
def test_inside_of_a_replica_merge_call_is_the_remedy(call):
    with pytest.raises(RuntimeError, match=r"cross-replica context.*get_replica_context\(\)\.merge_call\(\)"):
        STRATEGY.run(call)


@calls
def test_inside_of_another_strategy_both_are_named(call):
    with (
        OTHER.scope(),
        pytest.raises(RuntimeError, match=r"Mixing .*'CPU:2'\]\) is current, but .*'CPU:0', 'CPU:1'\]\)"),
    ):
        call()


@calls
def test_inside_of_another_strategys_replica_both_are_named(call):
    with pytest.raises(RuntimeError, match="Mixing"):
        OTHER.run(call)
