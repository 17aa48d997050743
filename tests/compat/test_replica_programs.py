"""Documented programs of TensorFlow about replicas and variables run as printed: see test_programs.py."""

from __future__ import annotations

import pytest

from ringlet.compat import tf
from ringlet.values import Mirrored
from tests.compat.answers import assert_per_replica, assert_tensor

# --- replicas ---------------------------------------------------------------------------------------------------------


def test_all_gather_gives_every_replica_the_whole(strategy):
    @tf.function
    def gather_value():
        ctx = tf.distribute.get_replica_context()
        local_value = tf.constant([1, 2, 3])
        return ctx.all_gather(local_value, axis=0)

    result = strategy.run(gather_value)
    assert_per_replica(result, "int32", [1, 2, 3, 1, 2, 3], [1, 2, 3, 1, 2, 3])


def test_all_gather_takes_a_nest(strategy):
    @tf.function
    def gather_nest():
        ctx = tf.distribute.get_replica_context()
        value_1 = tf.constant([1, 2, 3])
        value_2 = tf.constant([[1, 2], [3, 4]])
        return ctx.all_gather([value_1, value_2], axis=0)

    result = strategy.run(gather_nest)
    assert type(result) is list
    assert_per_replica(result[0], "int32", [1, 2, 3, 1, 2, 3], [1, 2, 3, 1, 2, 3])
    assert_per_replica(result[1], "int32", [[1, 2], [3, 4]] * 2, [[1, 2], [3, 4]] * 2)
    local = strategy.experimental_local_results(result)
    assert [type(part) for part in local] == [list, list]
    assert_tensor(local[1][1], "int32", [[1, 2], [3, 4]] * 2)


def test_all_reduce_takes_one_tensor_or_a_list(strategy):
    def step_fn():
        ctx = tf.distribute.get_replica_context()
        value1 = tf.identity(1.0)
        value2 = tf.identity(2.0)
        one = ctx.all_reduce(tf.distribute.ReduceOp.SUM, value1)
        return one, ctx.all_reduce(tf.distribute.ReduceOp.SUM, [value1, value2])

    for one, (first, second) in strategy.experimental_local_results(strategy.run(step_fn)):
        assert_tensor(one, "float32", 2.0)
        assert_tensor(first, "float32", 2.0)
        assert_tensor(second, "float32", 4.0)


def test_options_are_made_and_taken(strategy):
    options = tf.distribute.experimental.CommunicationOptions(
        bytes_per_pack=50 * 1024 * 1024,
        timeout_seconds=120.0,
        implementation=tf.distribute.experimental.CommunicationImplementation.NCCL,
    )

    def step_fn(grads):
        return tf.distribute.get_replica_context().all_reduce("sum", grads, options=options)

    assert_per_replica(strategy.run(step_fn, args=(tf.constant([1.0]),)), "float32", [2.0], [2.0])


def test_the_current_replica_and_strategy_are_known(strategy):
    assert tf.distribute.get_replica_context() is not None
    assert not tf.distribute.has_strategy()
    assert not tf.distribute.in_cross_replica_context()
    with strategy.scope():
        assert tf.distribute.get_replica_context() is None
        assert tf.distribute.has_strategy()
        assert tf.distribute.in_cross_replica_context()

        def f():
            replica_context = tf.distribute.get_replica_context()
            assert replica_context is not None
            assert not tf.distribute.in_cross_replica_context()
            return replica_context.num_replicas_in_sync

        assert strategy.run(f) == 2


def test_strategies_are_set_without_a_with(strategy):
    tf.distribute.experimental_set_strategy(strategy)
    try:
        assert tf.distribute.get_strategy() is strategy
    finally:
        tf.distribute.experimental_set_strategy(None)
    assert not tf.distribute.has_strategy()


# --- variables --------------------------------------------------------------------------------------------------------


def test_variables_are_mirrored_inside_of_a_scope_only(strategy):
    with strategy.scope():
        mirrored_variable = tf.Variable(1.0)
    regular_variable = tf.Variable(1.0)
    assert type(mirrored_variable).__name__ == "MirroredVariable"
    assert [v.name for v in mirrored_variable.values] == ["Variable:0", "Variable/replica_1:0"]
    for variable in (mirrored_variable, *mirrored_variable.values, regular_variable):
        assert isinstance(variable, tf.Variable)
        assert variable.dtype == tf.float32
        assert_tensor(variable.read_value(), "float32", 1.0)
    assert strategy.extended.variable_created_in_scope(mirrored_variable)
    assert not strategy.extended.variable_created_in_scope(regular_variable)


def test_a_function_makes_a_variable_at_its_first_call(strategy):
    x = []

    @tf.function
    def create_variable():
        if not x:
            x.append(tf.Variable(1.0))
        return x[0]

    with strategy.scope():
        _ = create_variable()
        assert create_variable().numpy() == 1.0
        assert len(x) == 1
    assert type(x[0]).__name__ == "MirroredVariable"


def test_replicas_write_together_what_the_aggregation_says(strategy):
    with strategy.scope():
        v = tf.Variable(5.0, aggregation=tf.VariableAggregation.MEAN)

    @tf.function
    def update_fn():
        return v.assign_add(1.0)

    assert_per_replica(strategy.run(update_fn), "float32", 6.0, 6.0)


def test_update_writes_every_component(strategy):
    with strategy.scope():
        v = tf.Variable(5.0, aggregation=tf.VariableAggregation.SUM)

    def update_fn(v):
        return v.assign(1.0)

    assert_per_replica(strategy.extended.update(v, update_fn), "float32", 1.0, 1.0, kind=Mirrored)


def test_a_variable_that_is_combined_when_it_is_read(strategy):
    with strategy.scope():
        temp_grad = [
            tf.Variable(
                [0.0],
                trainable=False,
                synchronization=tf.VariableSynchronization.ON_READ,
                aggregation=tf.VariableAggregation.MEAN,
            )
        ]
    strategy.run(lambda: temp_grad[0].assign_add([1.0]))
    assert_tensor(temp_grad[0].read_value(), "float32", [1.0])


@pytest.mark.parametrize(
    "ops",
    [tf.distribute.HierarchicalCopyAllReduce, tf.distribute.NcclAllReduce, tf.distribute.ReductionToOneDevice],
)
def test_strategies_take_ways_to_combine_values(ops):
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"], cross_device_ops=ops())
    value = strategy.experimental_distribute_values_from_function(
        lambda ctx: tf.constant([1.0, 2.0]) * (ctx.replica_id_in_sync_group + 1.0)
    )
    assert_tensor(strategy.reduce("SUM", value, axis=None), "float32", [3.0, 6.0])
    assert_per_replica(
        strategy.run(lambda x: tf.distribute.get_replica_context().all_reduce("MEAN", x), args=(value,)),
        "float32",
        [1.5, 3.0],
        [1.5, 3.0],
    )
