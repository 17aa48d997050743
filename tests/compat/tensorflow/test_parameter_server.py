"""Strategies of parameter servers under TensorFlow's names."""

from __future__ import annotations

import numpy as np
import pytest

import ringlet
from ringlet.cluster_resolver import LocalClusterResolver, SimpleClusterResolver
from ringlet.compat import tf
from ringlet.data import InputOptions, InputReplicationMode
from ringlet.strategy.parameter_server.parameter_server_client import ParameterServers
from ringlet.strategy.parameter_server.parameter_server_strategy import reduce_strategy
from ringlet.train import ClusterSpec
from ringlet.values.variables.table_variable import TableVariable
from tests.coordinator.in_threads import ThreadTasks

V1 = tf.compat.v1.distribute.experimental.ParameterServerStrategy
CLUSTER = ClusterSpec({"worker": ["a:1", "b:1"], "ps": ["p:1", "q:1"]})


@pytest.fixture(scope="module")
def strategy():
    partitioner = tf.distribute.experimental.partitioners.FixedShardsPartitioner(2)
    made = tf.distribute.ParameterServerStrategy(LocalClusterResolver(1, 2), variable_partitioner=partitioner)
    made.extended._known_servers = ParameterServers(ThreadTasks(1, 2))
    yield made
    made.extended._cluster().stop()


def test_all_spellings_are_one_class_and_know_each_other_s_instances(strategy):
    assert tf.distribute.experimental.ParameterServerStrategy is tf.distribute.ParameterServerStrategy
    assert isinstance(strategy, ringlet.ParameterServerStrategy)
    plain = ringlet.ParameterServerStrategy(LocalClusterResolver(1, 1))
    assert isinstance(plain, tf.distribute.ParameterServerStrategy)
    assert not isinstance(V1(), tf.distribute.ParameterServerStrategy)


def test_variables_have_tensorflow_s_dtypes_and_give_tensors(strategy):
    with strategy.scope():
        scalar, table = tf.Variable(1.0), tf.Variable([[1, 2], [3, 4], [5, 6]])
    assert type(scalar) is TableVariable
    assert (scalar.dtype, table.dtype) == (np.float32, np.int32)
    for value in (
        scalar.read_value(),
        scalar + 1,
        table[1],
        table[:, 0],
        table + 1,
        table.sparse_read([0]),
        table.variables[1][0],
    ):
        assert isinstance(value, tf.Tensor), value


def test_an_initial_value_makes_each_shard_by_itself_if_it_can(strategy):
    asked = []

    def ones(partition_shape=(3, 2), partition_offset=(0, 0)):
        asked.append(partition_offset)
        return tf.constant(1.0, shape=partition_shape)

    with strategy.scope():
        table = tf.Variable(ones, shape=(3, 2), dtype=tf.float32)
        other = tf.Variable(lambda: tf.constant(2.0, shape=[3, 2]))
    assert asked == [(0, 0), (2, 0)]
    np.testing.assert_array_equal(table + other, np.full((3, 2), 3.0))


def test_the_strategy_of_a_worker_gives_tensors(strategy):
    make, args = reduce_strategy(strategy)
    worker = make(*args)
    assert isinstance(worker, tf.distribute.ParameterServerStrategy)
    assert isinstance(worker.reduce("SUM", worker.run(lambda: np.array([1.0, 2.0])), axis=0), tf.Tensor)
    dataset = tf.data.Dataset.range(4).batch(2)
    for built in (
        worker.experimental_distribute_dataset(dataset),
        strategy.experimental_distribute_dataset(dataset).build(),
    ):
        assert all(isinstance(batch, tf.Tensor) for batch in built)


# --- TensorFlow 1 -----------------------------------------------------------------------------------------------------


def test_that_of_tensorflow_1_names_its_devices():
    alone = V1()
    assert (
        alone.extended.parameter_devices
        == alone.extended.worker_devices
        == ("/job:chief/replica:0/task:0/device:CPU:0",)
    )
    worker = V1(SimpleClusterResolver(CLUSTER, task_type="worker", task_id=1))
    assert worker.extended.worker_devices == ("/job:worker/replica:0/task:1/device:CPU:0",)
    assert worker.extended.parameter_devices == ("/job:ps/task:0", "/job:ps/task:1")
    assert (worker.extended.should_checkpoint, worker.extended.experimental_should_init) == (False, False)
    assert (worker.num_replicas_in_sync, worker.extended.experimental_between_graph) == (1, True)


def test_that_of_tensorflow_1_needs_to_know_its_task_and_parameter_servers():
    with pytest.raises(ValueError, match="must also specify `task_type` and `task_id`"):
        V1(SimpleClusterResolver(CLUSTER))
    with pytest.raises(ValueError, match="needs to have `ps` jobs"):
        V1(SimpleClusterResolver(ClusterSpec({"worker": ["a:1"]}), task_type="worker", task_id=0))


@pytest.mark.parametrize(
    "call",
    [
        lambda strategy: strategy.run(lambda: 1),
        lambda strategy: strategy.scope(),
        lambda strategy: strategy.experimental_distribute_dataset(tf.data.Dataset.range(3)),
        lambda strategy: strategy.distribute_datasets_from_function(lambda context: tf.data.Dataset.range(3)),
        lambda strategy: strategy.experimental_run(lambda: 1),
        lambda strategy: strategy.reduce("SUM", [1.0], axis=0),
        lambda strategy: strategy.extended.call_for_each_replica(lambda: 1),
        lambda strategy: strategy.extended.update(tf.Variable(1.0), lambda v: v),
        lambda strategy: strategy.extended.update_non_slot(tf.Variable(1.0), lambda: 1),
    ],
)
def test_that_of_tensorflow_1_runs_nothing(call):
    strategy = V1()
    with pytest.raises(NotImplementedError, match=r"currently only works with the tf\.Estimator API"):
        call(strategy)


def test_that_of_tensorflow_1_reduces_and_has_no_gather():
    strategy = V1()
    assert isinstance(strategy.reduce("SUM", np.float32(1.0)), tf.Tensor)
    with pytest.raises(AttributeError, match="gather"):
        strategy.gather([1.0], 0)
    options = InputOptions(experimental_replication_mode=InputReplicationMode.PER_REPLICA)
    with pytest.raises(NotImplementedError, match="PER_REPLICA"):
        strategy.experimental_distribute_dataset(tf.data.Dataset.range(3), options)
