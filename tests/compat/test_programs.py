"""Programs of TensorFlow's documentation of tf.distribute run as printed, and answer what is printed there.

Answers are compared by value, dtype and structure; on two replicas, as there.
"""

from __future__ import annotations

import sys

import numpy as np

from ringlet.compat import tf
from tests.compat.answers import assert_per_replica, assert_tensor

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
