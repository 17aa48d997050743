"""Strategies for TPUs answer with tensors."""

from __future__ import annotations

import numpy as np
import pytest

import ringlet
from ringlet.compat import tf
from ringlet.compat.tensorflow.tpu_strategies import ExperimentalTPUStrategy, TPUStrategy, TPUStrategyV1


def resolver():
    return tf.distribute.cluster_resolver.TPUClusterResolver(accelerator_type="v4-8", environ={})


@pytest.fixture
def strategy():
    assignment = tf.tpu.experimental.DeviceAssignment.build(resolver().topology, [1, 1, 1, 2], num_replicas=4)
    return tf.distribute.TPUStrategy(resolver(), experimental_device_assignment=assignment)


def test_every_spelling_is_there():
    assert tf.distribute.TPUStrategy is TPUStrategy
    assert tf.distribute.experimental.TPUStrategy is ExperimentalTPUStrategy
    assert tf.compat.v1.distribute.experimental.TPUStrategy is TPUStrategyV1


@pytest.mark.parametrize(
    ("mine", "ringlet_s"),
    [
        (tf.distribute.TPUStrategy, ringlet.TPUStrategy),
        (tf.distribute.experimental.TPUStrategy, ringlet.experimental.TPUStrategy),
    ],
)
def test_isinstance_answers_alike_for_both_names(mine, ringlet_s):
    for made in (mine(resolver()), ringlet_s(resolver())):
        assert isinstance(made, mine)
        assert isinstance(made, ringlet_s)
        assert isinstance(made, tf.distribute.Strategy)
    assert not isinstance(ringlet.MirroredStrategy(["CPU:0"]), mine)


def test_results_are_tensors(strategy):
    value = strategy.experimental_distribute_values_from_function(lambda c: float(c.replica_id_in_sync_group))
    total = strategy.reduce("SUM", value, axis=None)
    assert isinstance(total, tf.Tensor)
    assert float(total) == 6


def test_what_is_computed_of_a_sharded_tensor_is_a_tensor(strategy):
    sharded = strategy.experimental_split_to_logical_devices(tf.constant([[1.0, 2.0], [3.0, 4.0]]), [2, 1])
    assert tf.is_tensor(sharded)
    for result in (sharded * 2.0, tf.square(sharded), np.sum(sharded), sharded[0], tf.cast(sharded, tf.int32)):
        assert isinstance(result, tf.Tensor)
    assert isinstance(tf.constant(1.0) + sharded, tf.Tensor)
    assert [type(tile) for tile in sharded.shards] == [np.ndarray] * 2
    assert sharded.numpy().tolist() == [[1, 2], [3, 4]]


def test_numbers_and_lists_are_tensors_before_they_are_laid_out(strategy):
    assert strategy.experimental_split_to_logical_devices([1.5, 2.5], [2]).dtype == np.float32
    assert strategy.experimental_assign_to_logical_device(3, 1).dtype == np.int32
    assert strategy.experimental_replicate_to_logical_devices(3.0).dtype == np.float32


def test_an_array_is_a_tensor_in_its_own_memory(strategy):
    array = np.ones((4, 2))
    sharded = strategy.experimental_split_to_logical_devices(array, [2, 1])
    assert isinstance(sharded + 1.0, tf.Tensor)
    assert all(np.shares_memory(tile, array) for tile in sharded.shards)
    assert array.flags.writeable
    assert not sharded.shards[0].flags.writeable


def test_replicas_combine_sharded_tensors_to_tensors(strategy):
    def step(x):
        x = strategy.experimental_replicate_to_logical_devices(x)
        return tf.distribute.get_replica_context().all_reduce("SUM", x), x

    total, sharded = strategy.run(step, args=(tf.constant([1.0, 2.0]),))
    assert all(isinstance(part, tf.Tensor) for part in total.values)
    assert isinstance(strategy.reduce("SUM", sharded, axis=None), tf.Tensor)
    assert isinstance(strategy.gather(sharded, axis=0), tf.Tensor)


def test_the_strategy_of_tensorflow_1_has_its_signature_and_properties():
    strategy = tf.compat.v1.distribute.experimental.TPUStrategy(resolver(), steps_per_run=3)
    assert (strategy.steps_per_run, strategy.extended.steps_per_run) == (3, 3)
    strategy.extended.steps_per_run = 5
    assert strategy.steps_per_run == 5
    assert tf.compat.v1.distribute.experimental.TPUStrategy(resolver()).steps_per_run == 1
    assert isinstance(strategy, tf.compat.v1.distribute.Strategy)
    assert not hasattr(strategy, "gather")
    assert float(strategy.reduce("MEAN", strategy.run(lambda: tf.constant(1.5)))) == 1.5
