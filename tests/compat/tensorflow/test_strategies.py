"""Strategies of tf.distribute are ringlet's, and answer with tensors."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import ringlet
from ringlet.compat import tf
from ringlet.values import PerReplica

BOTH = [
    (tf.distribute.MirroredStrategy, ringlet.MirroredStrategy, (["CPU:0", "CPU:1"],)),
    (tf.distribute.OneDeviceStrategy, ringlet.OneDeviceStrategy, ("CPU:0",)),
    (
        tf.distribute.experimental.CentralStorageStrategy,
        ringlet.experimental.CentralStorageStrategy,
        (["CPU:0", "CPU:1"],),
    ),
]


@pytest.fixture
def strategy():
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


@pytest.mark.parametrize(("mine", "ringlet_s", "args"), BOTH)
def test_isinstance_answers_alike_for_both_names(mine, ringlet_s, args):
    for made in (mine(*args), ringlet_s(*args)):
        assert isinstance(made, mine)
        assert isinstance(made, ringlet_s)
        assert isinstance(made, tf.distribute.Strategy)
        assert isinstance(made, ringlet.Strategy)
        assert [isinstance(made, other) for other, _, _ in BOTH].count(True) == 1


def test_a_subclass_of_a_user_has_its_own_instances_only(strategy):
    class Mine(tf.distribute.MirroredStrategy):
        pass

    assert isinstance(Mine(["CPU:0"]), Mine)
    assert not isinstance(strategy, Mine)
    assert not isinstance(ringlet.MirroredStrategy(["CPU:0"]), Mine)


def test_numbers_and_arrays_of_replicas_are_combined_as_tensors(strategy):
    ids = strategy.run(lambda: float(tf.distribute.get_replica_context().replica_id_in_sync_group))
    total = strategy.reduce("SUM", {"ids": ids}, axis=None)["ids"]
    assert isinstance(total, tf.Tensor)
    assert (total.dtype, total.numpy()) == (tf.float32, 1.0)
    rows = PerReplica([np.arange(2), np.arange(1)])
    assert isinstance(strategy.gather(rows, axis=0), tf.Tensor)
    assert strategy.reduce("MEAN", 3.0, axis=None) == 3.0


def test_the_sum_of_a_number_over_one_replica_is_a_tensor_where_strategies_mirror_what_they_sum():
    mirrored, one = tf.distribute.MirroredStrategy(["CPU:0"]), tf.distribute.OneDeviceStrategy("CPU:0")
    total = mirrored.reduce("SUM", {"a": 5, "b": [2.5]}, axis=None)
    assert [total["a"].dtype, total["b"][0].dtype] == [tf.int32, tf.float32]
    assert total == {"a": 5, "b": [2.5]}
    assert type(mirrored.reduce("MEAN", 5, axis=None)) is type(one.reduce("SUM", 5, axis=None)) is int


def test_a_replica_context_is_the_object_of_the_run(strategy):
    def step():
        replica = tf.distribute.get_replica_context()
        assert replica is ringlet.get_replica_context()
        assert isinstance(replica, tf.distribute.ReplicaContext)
        assert isinstance(replica, ringlet.ReplicaContext)
        summed = replica.all_reduce("SUM", {"array": np.ones(2), "number": 1.0})
        return replica.replica_id_in_sync_group.numpy(), summed, replica.all_gather(np.ones(1), axis=0)

    ids, summed, gathered = strategy.run(step)
    assert ids.values == (0, 1)
    for value in (summed["array"], summed["number"], gathered):
        assert all(isinstance(component, tf.Tensor) for component in value.values)
    assert summed["number"].values[0].dtype == tf.float32


def test_a_number_that_a_function_gives_is_a_tensor_of_each_replica(strategy):
    found = strategy.run(tf.function(lambda: 1.5))
    assert [(type(x), x.numpy()) for x in found.values] == [(tf.Tensor, 1.5)] * 2


def test_a_replica_of_the_default_strategy_is_the_usual_one():
    assert tf.distribute.get_replica_context() is ringlet.get_replica_context()
    assert tf.distribute.get_replica_context().replica_id_in_sync_group == 0


def test_a_variable_is_combined_by_its_value(strategy):
    with strategy.scope():
        v = tf.Variable(2.0, synchronization=tf.VariableSynchronization.ON_READ)
    summed = strategy.run(lambda: tf.distribute.get_replica_context().all_reduce("SUM", v))
    assert [component.numpy() for component in summed.values] == [4.0, 4.0]


def test_steps_of_distributed_datasets_are_tensors(strategy):
    dataset = tf.data.Dataset.from_tensor_slices({"x": np.arange(4.0)}).batch(4)
    distributed = strategy.experimental_distribute_dataset(dataset)
    assert isinstance(distributed, tf.distribute.DistributedDataset)
    iterator = iter(distributed)
    assert isinstance(iterator, tf.distribute.DistributedIterator)
    assert [type(component) for component in next(iterator)["x"].values] == [tf.Tensor] * 2
    total = distributed.reduce(0.0, lambda total, step: total + sum(part.sum() for part in step["x"].values))
    assert float(total) == 6.0
    dealt = strategy.distribute_datasets_from_function(lambda context: tf.data.Dataset.range(2).batch(1))
    assert [type(component) for component in next(iter(dealt)).values] == [tf.Tensor] * 2


def test_distributed_iterators_are_saved_and_restored(strategy):
    distributed = strategy.experimental_distribute_dataset(tf.data.Dataset.range(8).batch(2))
    iterator, later = iter(distributed), iter(distributed)
    next(iterator)
    later.set_state(iterator.get_state())
    assert next(later).values[1].numpy().tolist() == [3]


def test_a_strategy_is_copied_as_what_it_is(strategy):
    assert type(copy.deepcopy(strategy)) is tf.distribute.MirroredStrategy


# --- TensorFlow 1 -----------------------------------------------------------------------------------------------------


def test_strategies_of_tensorflow_1_reduce_without_an_axis_and_have_no_gather():
    v1 = tf.compat.v1.distribute
    for made in (v1.MirroredStrategy(["CPU:0"]), v1.OneDeviceStrategy("CPU:0")):
        assert isinstance(made, v1.Strategy)
        assert made.reduce("SUM", made.run(lambda: tf.constant(1.5))).numpy() == 1.5
        for name in ("gather", "experimental_distribute_values_from_function"):
            assert not hasattr(made, name)
            with pytest.raises(AttributeError, match=r"tf\.compat\.v1 do not have it"):
                getattr(made, name)
    assert not isinstance(tf.distribute.OneDeviceStrategy("CPU:0"), v1.Strategy)


def test_strategies_of_tensorflow_1_take_iterators():
    strategy = tf.compat.v1.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    iterator = strategy.make_dataset_iterator(tf.data.Dataset.range(4).batch(4))
    result = strategy.experimental_run(lambda x: x * 2, iterator)
    assert [component.numpy().tolist() for component in result.values] == [[0, 2], [4, 6]]
    rows = strategy.experimental_make_numpy_dataset(np.arange(2))
    assert [int(row) for row in rows] == [0, 1]
