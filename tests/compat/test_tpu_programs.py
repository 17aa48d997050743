"""Documented programs of TensorFlow about TPUs run as printed: see test_programs.py.

The slice is a model, v4-16 where a program does not name one. Where a program leaves something out, such as its model,
it is written here in the words of the programs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pytest

from ringlet.compat import tf
from ringlet.sharding import ShardedArray
from tests.compat.answers import assert_tensor


@pytest.fixture(autouse=True)
def no_tpus(monkeypatch) -> Iterator[None]:
    """As on a machine without TPUs; none is left behind."""
    for name in ("TPU_NAME", "TPU_ACCELERATOR_TYPE", "ACCELERATOR_TYPE"):
        monkeypatch.delenv(name, raising=False)
    yield
    if tf.config.list_logical_devices("TPU"):
        tf.tpu.experimental.shutdown_tpu_system(tf.distribute.cluster_resolver.TPUClusterResolver(tpu=""))


def test_the_initialization_code_of_every_program_finds_a_slice():
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="")
    tf.config.experimental_connect_to_cluster(resolver)
    tf.tpu.experimental.initialize_tpu_system(resolver)
    strategy = tf.distribute.TPUStrategy(resolver)

    devices = tf.config.list_logical_devices("TPU")
    assert len(devices) == strategy.num_replicas_in_sync == 16
    assert devices[0] == tf.config.LogicalDevice("/job:worker/replica:0/task:0/device:TPU:0", "TPU")
    assert devices == [device for device in tf.config.list_logical_devices() if device.device_type == "TPU"]

    @tf.function
    def run():
        def value_fn(value_context):
            return value_context.num_replicas_in_sync

        distributed_values = strategy.experimental_distribute_values_from_function(value_fn)

        def replica_fn(input):
            return input * 2

        return strategy.run(replica_fn, args=(distributed_values,))

    result = run()
    assert_tensor(result, "int32", 32)

    tpu_system_metadata = resolver.get_tpu_system_metadata()
    assert tpu_system_metadata.num_hosts == 2


def test_an_image_is_split_over_eight_logical_devices():
    # Initializing TPU system with 8 logical devices and 1 replica.
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="")
    tf.config.experimental_connect_to_cluster(resolver)
    topology = tf.tpu.experimental.initialize_tpu_system(resolver)
    device_assignment = tf.tpu.experimental.DeviceAssignment.build(
        topology, computation_shape=[1, 2, 2, 2], num_replicas=1
    )
    strategy = tf.distribute.TPUStrategy(
        resolver, experimental_device_assignment=device_assignment, experimental_spmd_xla_partitioning=True
    )
    images = np.arange(2 * 8 * 16 * 3, dtype=np.float32).reshape(2, 8, 16, 3)
    inputs = strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensors(images))
    with strategy.scope():
        kernel = tf.Variable(np.ones((3, 4), np.float32))

    def model(inputs):
        assert isinstance(inputs, ShardedArray)
        assert [tile.shape for tile in inputs.shards] == [(2, 4, 4, 3)] * 8
        output = inputs / 255.0
        output += 1.0
        return tf.reshape(output, [-1, 3]) @ kernel

    iterator = iter(inputs)

    @tf.function()
    def step_fn(inputs):
        inputs = strategy.experimental_split_to_logical_devices(inputs, [1, 2, 4, 1])

        # model() function will be executed on 8 logical devices with `inputs`
        # split 2 * 4  ways.
        output = model(inputs)
        return output  # noqa: RET504  # as printed

    output = strategy.run(step_fn, args=(next(iterator),))
    expected = np.broadcast_to((images / np.float32(255) + 1).reshape(-1, 3).sum(1, keepdims=True), (256, 4))
    assert tf.is_tensor(output)
    np.testing.assert_allclose(output.numpy(), expected, rtol=1e-6)


def test_labels_and_outputs_are_on_all_logical_devices():
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="")
    tf.config.experimental_connect_to_cluster(resolver)
    topology = tf.tpu.experimental.initialize_tpu_system(resolver)
    device_assignment = tf.tpu.experimental.DeviceAssignment.build(
        topology, computation_shape=[1, 1, 1, 2], num_replicas=4
    )
    strategy = tf.distribute.TPUStrategy(resolver, experimental_device_assignment=device_assignment)
    images, labels = np.arange(8.0, dtype=np.float32).reshape(8, 1), np.ones((8, 1), np.float32)
    inputs = strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices((images, labels)).batch(8))
    model, iterator = (lambda inputs: inputs * 2.0), iter(inputs)

    def loss_fn(labels, output):
        return np.sum((output - labels) ** 2)

    @tf.function()
    def step_fn(inputs):
        images, labels = inputs
        images = strategy.experimental_split_to_logical_devices(images, [2, 1])

        output = model(images)

        # For loss calculation, all logical devices share the same logits
        # and labels.
        labels = strategy.experimental_replicate_to_logical_devices(labels)
        output = strategy.experimental_replicate_to_logical_devices(output)
        loss = loss_fn(labels, output)

        return loss  # noqa: RET504

    losses = strategy.run(step_fn, args=(next(iterator),))
    assert [float(loss) for loss in losses.values] == [2, 34, 130, 290]
    total = strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)
    assert_tensor(tf.constant(total.numpy()), "float32", 456.0)


def test_an_operation_runs_on_one_logical_device():
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="")
    tf.config.experimental_connect_to_cluster(resolver)
    topology = tf.tpu.experimental.initialize_tpu_system(resolver)
    device_assignment = tf.tpu.experimental.DeviceAssignment.build(
        topology, computation_shape=[1, 1, 1, 2], num_replicas=1
    )
    strategy = tf.distribute.TPUStrategy(resolver, experimental_device_assignment=device_assignment)

    def dataset_fn(ctx):
        x = np.random.random((2, 5)).astype(np.float32)  # noqa: NPY002
        y = np.random.randint(2, size=(2, 1))  # noqa: NPY002
        dataset = tf.data.Dataset.from_tensor_slices((x, y))
        return dataset.repeat().batch(1, drop_remainder=True)

    @tf.function()
    def step_fn(inputs):
        features, _ = inputs
        output = features + features

        # Add operation will be executed on logical device 0.
        output = strategy.experimental_assign_to_logical_device(output, 0)
        return output  # noqa: RET504  # as printed

    dist_dataset = strategy.distribute_datasets_from_function(dataset_fn)
    iterator = iter(dist_dataset)
    output = strategy.run(step_fn, args=(next(iterator),))
    assert isinstance(output, ShardedArray)
    assert (output.shape, str(output.sharding)) == ((1, 5), "{maximal device=0}")


def test_options_of_a_run_are_taken_by_the_strategy_of_tensorflow_1():
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="")
    tf.config.experimental_connect_to_cluster(resolver)
    tf.tpu.experimental.initialize_tpu_system(resolver)
    for strategy in (
        tf.distribute.experimental.TPUStrategy(resolver),
        tf.compat.v1.distribute.experimental.TPUStrategy(resolver),
    ):
        options = tf.distribute.RunOptions(experimental_bucketizing_dynamic_shape=True)

        dataset = tf.data.Dataset.range(strategy.num_replicas_in_sync, output_type=tf.float32).batch(
            strategy.num_replicas_in_sync, drop_remainder=True
        )
        input_iterator = iter(strategy.experimental_distribute_dataset(dataset))

        @tf.function()
        def step_fn(inputs):
            output = np.sum(inputs)
            return output  # noqa: RET504  # as printed

        result = strategy.run(step_fn, args=(next(input_iterator),), options=options)
        assert sorted(float(part) for part in result.values) == list(range(16))


def test_the_resolver_of_a_strategy_tells_the_task_of_the_environment(monkeypatch):
    # os.environ['TF_CONFIG'] = json.dumps(...), undone at the end
    monkeypatch.setenv(
        "TF_CONFIG",
        json.dumps(
            {
                "cluster": {"worker": ["localhost:12345", "localhost:23456"], "ps": ["localhost:34567"]},
                "task": {"type": "worker", "index": 0},
            }
        ),
    )

    # This implicitly uses TF_CONFIG for the cluster and current task info.
    for strategy in (
        tf.distribute.experimental.MultiWorkerMirroredStrategy(),
        tf.compat.v1.distribute.experimental.MultiWorkerMirroredStrategy(),
    ):
        blocks = []
        if strategy.cluster_resolver.task_type == "worker":
            blocks.append("worker")
        elif strategy.cluster_resolver.task_type == "ps":
            blocks.append("ps")
        assert blocks == ["worker"]


def test_connecting_is_a_wrapper_of_the_initialization_code():
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver.connect(tpu="")
    assert resolver.num_accelerators() == {"TPU": 8}
    assert len(tf.config.list_logical_devices("TPU")) == 16
