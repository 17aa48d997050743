"""Strategies make the variables that are asked for in their scopes; replicas that ask together get one."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import ringlet
from ringlet import Variable, VariableAggregation, VariableSynchronization
from ringlet.errors import CollectiveMismatchError
from ringlet.values import AggregatingVariable, MirroredVariable

DEVICES = ["CPU:0", "CPU:1", "CPU:2"]
AGG, SYNC = VariableAggregation, VariableSynchronization


def mirrored():
    return ringlet.MirroredStrategy(DEVICES)


def central():
    return ringlet.experimental.CentralStorageStrategy(DEVICES)


@pytest.mark.parametrize(
    ("strategy", "kind"),
    [
        (mirrored(), MirroredVariable),
        (central(), AggregatingVariable),
        (ringlet.experimental.CentralStorageStrategy(["CPU:0"]), Variable),
        (ringlet.OneDeviceStrategy("CPU:1"), Variable),
        (ringlet.get_strategy(), Variable),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_strategy_decides_the_class(strategy, kind):
    with strategy.scope():
        v = Variable(1.5)
    assert type(v) is kind
    assert v.distribute_strategy is (None if strategy is ringlet.get_strategy() else strategy)
    assert strategy.extended.variable_created_in_scope(v)


def test_a_variable_is_where_its_strategy_holds_variables():
    with ringlet.OneDeviceStrategy("CPU:1").scope():
        assert Variable(1.0).device == "/job:localhost/replica:0/task:0/device:CPU:1"
    with ringlet.experimental.CentralStorageStrategy(DEVICES, "CPU:2").scope():
        assert Variable(1.0).device == "/job:localhost/replica:0/task:0/device:CPU:2"


@pytest.mark.parametrize("strategy", [mirrored(), central()], ids=["mirrored", "central"])
def test_replicas_that_ask_together_get_one_variable_with_what_replica_0_asks_for(strategy):
    calls = []

    def step():
        me = float(ringlet.get_replica_context().replica_id_in_sync_group)

        def initial_value():
            calls.append(me)
            return me + 2

        first = Variable(initial_value, name="first", aggregation=AGG.MEAN)
        second = Variable(me + 5)
        first.assign_add(np.array(me))
        return first, second

    first, second = strategy.run(step)
    assert isinstance(first, Variable)
    assert (first.name, first.numpy(), second.numpy(), calls) == ("first:0", 3, 5, [0.0])


@pytest.mark.parametrize(
    ("make", "texts"),
    [
        (lambda me: Variable(lambda: 1.5, name=f"n{me}"), ("Variable 'n0'", "Variable 'n1'")),
        (lambda me: Variable(np.zeros(me + 1)), ("'Variable' float64[1]", "'Variable' float64[3]")),
        (lambda me: Variable(np.zeros((), [np.int32, np.float32][me > 0])), ("int32[]", "float32[]")),
    ],
)
@pytest.mark.parametrize("strategy", [mirrored(), central()], ids=["mirrored", "central"])
def test_replicas_that_ask_for_different_variables_are_told_for_which(strategy, make, texts):
    with pytest.raises(CollectiveMismatchError) as caught:
        strategy.run(lambda: make(int(ringlet.get_replica_context().replica_id_in_sync_group)))
    assert all(text in str(caught.value) for text in texts)


def test_a_replica_that_asks_alone_is_named():
    strategy = mirrored()

    def step():
        if ringlet.get_replica_context().replica_id_in_sync_group == 1:
            Variable(1.0)

    with pytest.raises(CollectiveMismatchError, match="replica_context"):
        strategy.run(step)


def test_a_replica_of_one_device_makes_variables_of_its_own():
    strategy = ringlet.OneDeviceStrategy("CPU:0")
    v = strategy.run(lambda: Variable(2.0))
    assert v.distribute_strategy is strategy
    assert strategy.run(lambda: v.assign_add(1.0).numpy()) == 3


def test_a_merge_fn_may_make_a_variable():
    strategy = mirrored()
    v = strategy.run(lambda: ringlet.get_replica_context().merge_call(lambda _: Variable(1.5)))
    assert type(v) is MirroredVariable


def test_none_is_no_synchronization_of_several_components():
    with mirrored().scope(), pytest.raises(ValueError, match=r"`NONE` variable synchronization mode .* variable: v to"):
        Variable(1.0, synchronization=SYNC.NONE, name="v")
    with central().scope():
        assert Variable(1.0, synchronization=SYNC.NONE).numpy() == 1


@pytest.mark.parametrize("value", [1, True, 1j])
def test_the_mean_of_what_is_no_float_is_refused(value):
    with mirrored().scope(), pytest.raises(ValueError, match=r"aggregation=MEAN and a non-floating dtype.*would hold"):
        Variable(value, aggregation=AGG.MEAN)


def test_the_mean_of_bfloat16_is_one():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    strategy = mirrored()
    with strategy.scope():
        v = Variable([1.0], aggregation=AGG.MEAN, dtype=ml_dtypes.bfloat16)
    ids = strategy.experimental_distribute_values_from_function(
        lambda context: np.array([context.replica_id_in_sync_group], ml_dtypes.bfloat16)
    )
    strategy.run(v.assign_add, args=(ids,))
    assert (v.read_value().dtype, float(v[0])) == (ml_dtypes.bfloat16, 2.0)


def test_a_strategy_set_for_good_makes_variables_too():
    strategy = mirrored()
    ringlet.experimental_set_strategy(strategy)
    try:
        assert type(Variable(1.0)) is MirroredVariable
    finally:
        ringlet.experimental_set_strategy(None)


def test_ten_thousand_variables_leave_nothing_behind():
    strategy = mirrored()
    gc.collect()
    with strategy.scope():
        before = len(gc.get_objects())
        for _ in range(10_000):
            Variable(1.0)
        assert len(gc.get_objects()) < before + 500
