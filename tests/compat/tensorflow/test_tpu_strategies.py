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


def test_what_is_computed_of_a_sharded_tensor_is_sharded_and_a_tensor(strategy):
    sharded = strategy.experimental_split_to_logical_devices(tf.constant([[1.0, 2.0], [3.0, 4.0]]), [2, 1])
    with ringlet.sharding.strict():
        results = (
            sharded * 2.0,
            2.0 * sharded,
            sharded - tf.constant(1.0),
            tf.constant(1.0) + sharded,
            tf.square(sharded),
            tf.reshape(sharded, [1, -1]),
            tf.identity(sharded),
            tf.cast(sharded, tf.int32),
            tf.convert_to_tensor(sharded),
            np.sum(sharded),
            sharded[0],
            tf.add(1.0, sharded),
            tf.reduce_sum(sharded, axis=1),
        )
    for result in (sharded, *results):
        assert isinstance(result, ringlet.sharding.ShardedArray)
        assert tf.is_tensor(result)
    assert [type(tile) for tile in sharded.shards] == [np.ndarray] * 2
    assert sharded.numpy().tolist() == [[1, 2], [3, 4]]
    assert results[7].numpy().tolist() == [[1, 2], [3, 4]]


def test_a_variable_that_begins_with_a_sharded_tensor_reads_as_one(strategy):
    sharded = strategy.experimental_split_to_logical_devices(tf.constant([[1.0, 2.0], [3.0, 4.0]]), [2, 1])
    with strategy.scope():
        variable = tf.Variable(sharded)
    assert str(variable.read_value().sharding) == str(sharded.sharding)
    variable.assign_add(sharded)
    assert isinstance(variable * 2.0, ringlet.sharding.ShardedArray)
    assert variable.numpy().tolist() == [[2, 4], [6, 8]]


def test_a_sharded_tensor_is_printed_as_its_values(strategy, capsys):
    sharded = strategy.experimental_split_to_logical_devices([1.5, 2.5], [2])
    with ringlet.sharding.strict():
        tf.print(sharded)
    assert capsys.readouterr().err == "[1.5 2.5]\n"


def test_numbers_and_lists_are_tensors_before_they_are_laid_out(strategy):
    assert strategy.experimental_split_to_logical_devices([1.5, 2.5], [2]).dtype == np.float32
    assert strategy.experimental_assign_to_logical_device(3, 1).dtype == np.int32
    assert strategy.experimental_replicate_to_logical_devices(3.0).dtype == np.float32


def test_tiles_are_in_the_memory_of_the_array_which_they_do_not_change(strategy):
    array = np.ones((4, 2))
    sharded = strategy.experimental_split_to_logical_devices(array, [2, 1])
    assert all(np.shares_memory(tile, array) for tile in sharded.shards)
    assert array.flags.writeable
    assert not sharded.shards[0].flags.writeable


def test_replicas_combine_sharded_tensors_to_sharded_ones(strategy):
    def step(x):
        x = strategy.experimental_replicate_to_logical_devices(x)
        return tf.distribute.get_replica_context().all_reduce("SUM", x), x

    total, sharded = strategy.run(step, args=(tf.constant([1.0, 2.0]),))
    results = (*total.values, strategy.reduce("SUM", sharded, axis=None), strategy.gather(sharded, axis=0))
    assert all(isinstance(part, ringlet.sharding.ShardedArray) for part in results)


def test_the_strategy_of_tensorflow_1_has_its_signature_and_properties():
    strategy = tf.compat.v1.distribute.experimental.TPUStrategy(resolver(), steps_per_run=3)
    assert (strategy.steps_per_run, strategy.extended.steps_per_run) == (3, 3)
    strategy.extended.steps_per_run = 5
    assert strategy.steps_per_run == 5
    assert tf.compat.v1.distribute.experimental.TPUStrategy(resolver()).steps_per_run == 1
    assert isinstance(strategy, tf.compat.v1.distribute.Strategy)
    assert not hasattr(strategy, "gather")
    assert float(strategy.reduce("MEAN", strategy.run(lambda: tf.constant(1.5)))) == 1.5
