"""Programs of TensorFlow's documentation of tf.distribute run as printed, and answer what is printed there.

Answers are compared by value, dtype and structure; on two replicas, as there.
"""

from __future__ import annotations

import sys

import numpy as np
import pytest

from ringlet.compat import tf
from ringlet.values import Mirrored, PerReplica


@pytest.fixture
def strategy():
    return tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])


def assert_tensor(found, dtype, expected):
    """The value is a tensor of this dtype and value."""
    assert isinstance(found, tf.Tensor), repr(found)
    assert found.dtype == dtype
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6 if dtype == "float32" else 0)


def assert_per_replica(found, dtype, *expected, kind=PerReplica):
    """The value has one such tensor for each replica."""
    assert type(found) is kind, repr(found)
    assert len(found.values) == len(expected)
    for component, value in zip(found.values, expected, strict=True):
        assert_tensor(component, dtype, value)


# --- run ------------------------------------------------------------------------------------------------------------


def test_run_of_a_tensor_times_a_number_gives_a_tensor_for_each_replica(strategy):
    tensor_input = tf.constant(3.0)

    @tf.function
    def replica_fn(input):
        return input * 2.0

    result = strategy.run(replica_fn, args=(tensor_input,))
    assert_per_replica(result, "float32", 6.0, 6.0)
    assert repr(result) == (
        "PerReplica:{\n"
        "  0: <tf.Tensor: shape=(), dtype=float32, numpy=6.0>,\n"
        "  1: <tf.Tensor: shape=(), dtype=float32, numpy=6.0>\n"
        "}"
    )


def test_values_of_a_function_that_are_equal_numbers_come_back_bare(strategy):
    @tf.function
    def run():
        def value_fn(value_context):
            return value_context.num_replicas_in_sync

        distributed_values = strategy.experimental_distribute_values_from_function(value_fn)

        def replica_fn2(input):
            return input * 2

        return strategy.run(replica_fn2, args=(distributed_values,))

    result = run()
    assert_tensor(result, "int32", 4)


def test_replicas_add_the_tensors_of_a_function(strategy):
    @tf.function
    def run():
        def value_fn(value_context):
            return tf.constant(value_context.replica_id_in_sync_group)

        distributed_values = strategy.experimental_distribute_values_from_function(value_fn)

        def replica_fn(input):
            return tf.distribute.get_replica_context().all_reduce("sum", input)

        return strategy.run(replica_fn, args=(distributed_values,))

    assert_per_replica(run(), "int32", 1, 1)


def test_replica_ids_are_tensors(strategy):
    def func():
        replica_context = tf.distribute.get_replica_context()
        return replica_context.replica_id_in_sync_group

    assert_per_replica(strategy.run(func), "int32", 0, 1)


def test_one_device_runs_with_numbers():
    strategy = tf.distribute.OneDeviceStrategy(device="/gpu:0")
    with strategy.scope():
        v = tf.Variable(1.0)
    assert v.device == "/job:localhost/replica:0/task:0/device:GPU:0"

    def step_fn(x):
        return x * 2

    result = 0
    for i in range(10):
        result += strategy.run(step_fn, args=(i,))
    assert result == 90


# --- values from functions --------------------------------------------------------------------------------------------


def test_values_from_a_function_are_kept_as_they_are(strategy):
    array_value = np.array([3.0, 2.0, 1.0])

    def value_fn(ctx):
        return array_value[ctx.replica_id_in_sync_group]

    distributed_values = strategy.experimental_distribute_values_from_function(value_fn)
    assert strategy.experimental_local_results(distributed_values) == (3.0, 2.0)
    ones = strategy.experimental_distribute_values_from_function(lambda ctx: tf.constant(1.0))
    for local in strategy.experimental_local_results(ones):
        assert_tensor(local, "float32", 1.0)
    counts = strategy.experimental_distribute_values_from_function(lambda ctx: ctx.num_replicas_in_sync)
    assert strategy.experimental_local_results(counts) == (2, 2)


def test_a_value_context_is_made_by_hand():
    def value_fn(context):
        return context.replica_id_in_sync_group / context.num_replicas_in_sync

    context = tf.distribute.experimental.ValueContext(replica_id_in_sync_group=2, num_replicas_in_sync=4)
    assert value_fn(context) == 0.5


# --- datasets ---------------------------------------------------------------------------------------------------------


def test_a_range_is_cut_over_the_replicas():
    global_batch_size = 2
    strategy = tf.distribute.MirroredStrategy(devices=["GPU:0", "GPU:1"])
    dataset = tf.data.Dataset.range(4).batch(global_batch_size)
    dist_dataset = strategy.experimental_distribute_dataset(dataset)

    @tf.function
    def replica_fn(input):
        return input * 2

    result = []
    for x in dist_dataset:
        result.append(strategy.run(replica_fn, args=(x,)))
    assert len(result) == 2
    assert_per_replica(result[0], "int64", [0], [2])
    assert_per_replica(result[1], "int64", [4], [6])


def test_a_training_step_takes_features_and_labels(strategy):
    dataset = tf.data.Dataset.from_tensors(([1.0], [1.0])).repeat(4).batch(4)
    dist_dataset = strategy.experimental_distribute_dataset(dataset)

    @tf.function
    def train_step(input):
        features, labels = input
        return labels - 0.3 * features

    losses = [strategy.run(train_step, args=(x,)) for x in dist_dataset]
    assert len(losses) == 1
    assert_per_replica(losses[0], "float32", [[0.7]] * 2, [[0.7]] * 2)


def test_losses_are_added_over_replicas_and_steps(strategy):
    train_dataset = tf.data.Dataset.from_tensors(([1.0], [1.0])).repeat(50).batch(4)
    train_dist_dataset = strategy.experimental_distribute_dataset(train_dataset)

    @tf.function
    def distributed_train_step(dataset_inputs):
        def train_step(input):
            loss = tf.constant(0.1)
            return loss  # noqa: RET504  # as printed

        per_replica_losses = strategy.run(train_step, args=(dataset_inputs,))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, per_replica_losses, axis=None)

    printed = []
    for epoch in range(2):
        total_loss = 0.0
        num_batches = 0
        dist_dataset_iterator = iter(train_dist_dataset)
        for _ in range(3):
            total_loss += distributed_train_step(next(dist_dataset_iterator))
            num_batches += 1
        average_train_loss = total_loss / num_batches
        printed.append("Epoch {}, Loss: {:.4f}".format(epoch + 1, average_train_loss))  # noqa: UP032  # as printed
    assert printed == ["Epoch 1, Loss: 0.2000", "Epoch 2, Loss: 0.2000"]


def test_an_element_spec_is_an_input_signature(strategy):
    dataset = tf.data.Dataset.from_tensors([2.0]).repeat(100).batch(4)
    dist_dataset = strategy.experimental_distribute_dataset(dataset)

    @tf.function(input_signature=[dist_dataset.element_spec])
    def train_step(per_replica_inputs):
        def step_fn(inputs):
            return tf.square(inputs)

        return strategy.run(step_fn, args=(per_replica_inputs,))

    assert_per_replica(train_step(next(iter(dist_dataset))), "float32", [[4.0], [4.0]], [[4.0], [4.0]])


def test_the_element_spec_of_a_distributed_dataset_has_a_spec_for_each_replica(strategy):
    dataset = tf.data.Dataset.from_tensors(([1.0], [2])).repeat(100).batch(16)
    dist_dataset = strategy.experimental_distribute_dataset(dataset)
    for spec in (dist_dataset.element_spec, iter(dist_dataset).element_spec):
        floats, ints = (part.value_specs for part in spec)
        assert floats == (tf.TensorSpec([None, 1], tf.float32),) * 2
        assert ints == (tf.TensorSpec([None, 1], tf.int32),) * 2


def test_get_next_gives_one_step_after_the_other(strategy):
    dist_dataset_iterator = iter(strategy.experimental_distribute_dataset(tf.data.Dataset.range(100).batch(2)))

    @tf.function
    def one_step(input):
        return input

    for _ in range(5):
        strategy.run(one_step, args=(dist_dataset_iterator.get_next(),))
    first, second = strategy.experimental_local_results(dist_dataset_iterator.get_next())
    assert_tensor(first, "int64", [10])
    assert_tensor(second, "int64", [11])


def test_get_next_as_optional_ends_a_loop(strategy, capsys):
    distributed_iterator = iter(strategy.experimental_distribute_dataset(tf.data.Dataset.range(3).batch(2)))

    def step_fn(x):
        return x

    @tf.function
    def train_fn(distributed_iterator):
        for _ in tf.range(5):
            optional_data = distributed_iterator.get_next_as_optional()
            if not optional_data.has_value():
                break
            per_replica_results = strategy.run(step_fn, args=(optional_data.get_value(),))
            tf.print(strategy.experimental_local_results(per_replica_results), output_stream=sys.stdout)

    train_fn(distributed_iterator)
    assert capsys.readouterr().out == "([0], [1])\n([2], [])\n"


def test_a_dataset_from_a_function_is_sharded_by_its_context(strategy):
    global_batch_size = 4

    def dataset_fn(input_context):
        batch_size = input_context.get_per_replica_batch_size(global_batch_size)
        d = tf.data.Dataset.from_tensors([[1.0]]).repeat(6).batch(batch_size)
        return d.shard(input_context.num_input_pipelines, input_context.input_pipeline_id)

    inputs = strategy.distribute_datasets_from_function(dataset_fn)
    steps = [strategy.run(lambda x: x * 2, args=(batch,)) for batch in inputs]
    assert_per_replica(steps[0], "float32", [[[2.0]]] * 2, [[[2.0]]] * 2)
    assert [part.shape for part in steps[1].values] == [(2, 1, 1), (0, 1, 1)]


def test_distributed_values_come_from_a_dataset_and_are_changed_reduced_and_opened(strategy):
    dataset = tf.data.Dataset.from_tensor_slices([5.0, 6.0, 7.0, 8.0]).batch(2)
    distributed_values = next(iter(strategy.experimental_distribute_dataset(dataset)))
    assert_per_replica(distributed_values, "float32", [5.0], [6.0])

    @tf.function
    def run(input):
        return input + 1.0

    assert_per_replica(strategy.run(run, args=(distributed_values,)), "float32", [6.0], [7.0])
    reduced_value = strategy.reduce(tf.distribute.ReduceOp.SUM, distributed_values, axis=0)
    assert_tensor(reduced_value, "float32", 11.0)
    first, second = strategy.experimental_local_results(distributed_values)
    assert_tensor(first, "float32", [5.0])
    assert_tensor(second, "float32", [6.0])


def test_a_central_storage_strategy_goes_through_a_dataset():
    strategy = tf.distribute.experimental.CentralStorageStrategy()
    dist_dataset = strategy.experimental_distribute_dataset(tf.data.Dataset.range(5).batch(2))
    seen = []
    with strategy.scope():

        @tf.function
        def train_step(val):
            return val + 1

        for x in dist_dataset:
            seen.append(strategy.run(train_step, args=(x,)))
    assert [x.numpy().tolist() for x in seen] == [[1, 2], [3, 4], [5]]


# --- reduce and gather ------------------------------------------------------------------------------------------------


def test_reduce_adds_the_ids_of_the_replicas(strategy):
    def step_fn():
        i = tf.distribute.get_replica_context().replica_id_in_sync_group
        return tf.identity(i)

    per_replica_result = strategy.run(step_fn)
    total = strategy.reduce("SUM", per_replica_result, axis=None)
    assert_tensor(total, "int32", 1)
    assert total.device == "/job:localhost/replica:0/task:0/device:CPU:0"


def test_one_device_reduces_along_an_axis():
    strategy = tf.distribute.OneDeviceStrategy("CPU:0")
    t = tf.range(10)
    result = strategy.reduce(tf.distribute.ReduceOp.SUM, t, axis=None).numpy()
    assert result.tolist() == list(range(10))
    assert strategy.reduce(tf.distribute.ReduceOp.SUM, t, axis=0).numpy() == 45


def test_gather_joins_along_an_axis():
    strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1", "GPU:2", "GPU:3"])
    single_tensor = tf.reshape(tf.range(6), shape=(1, 2, 3))
    distributed_values = strategy.experimental_distribute_values_from_function(lambda _: tf.identity(single_tensor))

    @tf.function
    def run(axis):
        return strategy.gather(distributed_values, axis=axis)

    rows = [[0, 1, 2], [3, 4, 5]]
    assert_tensor(run(0), "int32", [rows] * 4)
    assert_tensor(run(1), "int32", [rows * 4])
    assert_tensor(run(2), "int32", [[rows[0] * 4, rows[1] * 4]])


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
        assert create_variable() is x[0]
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
