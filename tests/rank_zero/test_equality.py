"""all_equal: passes for equal values, and raises on all replicas an error that names the differences."""

from __future__ import annotations

import uuid
from collections import OrderedDict

import numpy as np
import pytest

import ringlet
from ringlet.errors import ValuesDifferError
from tests.strategy.workers import environment

THREE = [f"CPU:{i}" for i in range(3)]


def check(make, devices=THREE, **kwargs):
    """Check on each replica the value that `make` returns for its index."""
    strategy = ringlet.MirroredStrategy(devices)
    return strategy.run(
        lambda: ringlet.checks.all_equal(make(int(ringlet.get_replica_context().replica_id_in_sync_group)), **kwargs)
    )


def test_equal_structures_pass():
    assert check(lambda _: {"w": np.ones((3, 2)), "b": [1.5, None, "text"]}) is True


def test_the_order_of_names_does_not_matter():
    one = OrderedDict(a=np.ones(3), b=2)
    assert check(lambda replica: OrderedDict(reversed(one.items())) if replica else one)


def test_outside_of_all_strategies_a_value_is_equal_to_itself():
    assert ringlet.checks.all_equal([np.ones(3), 2]) is True


def test_the_one_that_differs_is_named_with_leaf_index_and_values():
    def make(replica):
        weights = np.arange(6, dtype=np.float32).reshape(2, 3)
        weights[1, 2] += replica == 1
        return {"layers": [weights], "step": 3}

    with pytest.raises(ValuesDifferError) as caught:
        check(make, name="the weights")
    error = caught.value
    assert str(error).splitlines()[:2] == [
        "the weights: not the same on all 3 replicas",
        "  ['layers'][0], float32[2, 3]: at [1, 2] replica 1 has 6.0, and replicas 0 and 2 have 5.0",
    ]
    assert (error.ranks, error.path, error.index) == ((1,), "['layers'][0]", (1, 2))
    assert error.values == {0: 5.0, 1: 6.0, 2: 5.0}


def test_all_leaves_that_differ_are_named():
    with pytest.raises(ValuesDifferError) as caught:
        check(lambda replica: [replica == 2, "text", f"name {replica == 2}", np.zeros(2 + (replica == 0))])
    lines = str(caught.value).splitlines()
    assert lines[1:4] == [
        "  [0], bool: replica 2 has True, and replicas 0 and 1 have False",
        "  [2], str: replica 2 has 'name True', and replicas 0 and 1 have 'name False'",
        "  [3]: replica 0 has float64[3], and replicas 1 and 2 have float64[2]",
    ]
    assert caught.value.ranks == (0, 2)


def test_leaves_that_only_some_have_are_named():
    with pytest.raises(ValuesDifferError, match=r"\['b'\]: replica 1 has int64, and replicas 0 and 2 have no value"):
        check(lambda replica: {"a": 1, "b": 2} if replica == 1 else {"a": 1})


def test_where_all_differ_each_is_shown():
    with pytest.raises(ValuesDifferError, match=r"replica 0 has 0, replica 1 has 1, and replica 2 has 2"):
        check(lambda replica: replica)


def test_of_many_leaves_some_are_shown():
    with pytest.raises(ValuesDifferError, match=r"and 12 more: \[8\], \[9\]"):
        check(lambda replica: [replica] * 20)


def test_incomparable_values_are_an_error_on_all():
    with pytest.raises(TypeError, match="cannot be compared"):
        check(lambda replica: object() if replica == 1 else 5)


def test_the_strategy_is_usable_after_a_difference():
    strategy = ringlet.MirroredStrategy(THREE)
    for _ in range(2):
        with pytest.raises(ValuesDifferError):
            strategy.run(lambda: ringlet.checks.all_equal(ringlet.get_replica_context().replica_id_in_sync_group))
    assert strategy.run(lambda: ringlet.checks.all_equal(1)) is True


def test_components_are_compared_outside_of_replicas():
    strategy = ringlet.MirroredStrategy(THREE)
    with strategy.scope():
        weights = ringlet.Variable([1.0, 2.0], aggregation=ringlet.VariableAggregation.NONE)
    assert ringlet.checks.all_equal({"w": weights})
    strategy.run(lambda: weights.assign_add([0.0, float(ringlet.get_replica_context().replica_id_in_sync_group == 2)]))
    with pytest.raises(ValuesDifferError, match=r"\['w'\].*at \[1\] replica 2 has 3.0, and replicas 0 and 1 have 2.0"):
        ringlet.checks.all_equal({"w": weights})


def test_over_workers_all_get_the_differing_ranks(workers):
    program = """
    ringlet.checks.all_equal({"a": np.arange(4)})
    try:
        ringlet.checks.all_equal({"a": np.arange(4) + (np.arange(4) == 2) * me}, "the offsets")
    except ValueError as error:
        outside = [type(error).__name__, str(error).split(chr(10))[1], error.ranks]
    try:
        strategy.run(lambda: ringlet.checks.all_equal(1 + (rank() == 1)))
    except ValueError as error:
        answer = [outside, error.ranks, ringlet.checks.all_equal(5)]
    """
    outside = ["ValuesDifferError", "  ['a'], int64[4]: at [2] worker 0 has 2, and worker 1 has 3", [1]]
    assert workers.run(program) == [[outside, [1], True]] * 2


def test_over_workers_the_components_of_all_are_compared(workers):
    program = """
    with strategy.scope():
        weights = ringlet.Variable([1.0, 2.0], aggregation=ringlet.VariableAggregation.NONE)
    ringlet.checks.all_equal(weights)
    strategy.run(lambda: weights.assign_add([0.0, float(rank() == strategy.num_replicas_in_sync - 1)]))
    try:
        ringlet.checks.all_equal(weights)
    except ValueError as error:
        answer = [error.ranks, error.index]
    """
    assert workers.run(program) == [[[2 * workers.num_local - 1], [1]]] * 2


def test_without_a_strategy_processes_connect_by_tf_config(processes):
    script = """
import ringlet
try:
    tell(ringlet.checks.all_equal([1, 2]))
    ringlet.checks.all_equal(int(sys.argv[1]))
except ValueError as error:
    tell(str(error).splitlines()[1])
"""
    job = f"test {uuid.uuid4()}"
    started = [processes.start(script, i, environ=environment(i, 2, job_id=job)) for i in range(2)]
    for process in started:
        assert process.told() is True
        assert process.told() == "  int64: worker 0 has 0, and worker 1 has 1"
