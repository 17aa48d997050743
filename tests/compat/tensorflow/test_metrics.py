"""The mean of values over steps and replicas."""

from __future__ import annotations

import pytest

from ringlet.compat import tf


def test_values_are_weighted():
    mean = tf.metrics.Mean()
    assert mean.result().numpy() == 0
    mean.update_state([1.0, 3.0])
    assert mean(5.0, sample_weight=2.0).numpy() == 3.5
    mean.update_state([[1, 2], [3, 4]], sample_weight=[[0], [1]])
    assert mean.result().numpy() == pytest.approx((4 + 10 + 7) / 6)
    assert mean.result().dtype == tf.float32
    mean.reset_state()
    assert [variable.numpy() for variable in mean.variables] == [0, 0]


def test_the_result_is_that_of_all_replicas():
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        loss = tf.metrics.Mean(name="loss", dtype=tf.float64)

    def step():
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        loss.update_state([float(replica)] * (int(replica) + 1))
        return loss.result()

    seen = strategy.experimental_local_results(strategy.run(step))
    assert [float(x) for x in seen] == [0.0, 1.0]  # of the replica
    assert loss.result().numpy() == pytest.approx(2 / 3)
    with strategy.scope():
        loss.reset_state()
    assert loss.result().numpy() == 0


def test_it_has_its_name_of_keras_too():
    assert tf.keras.metrics.Mean is tf.metrics.Mean
