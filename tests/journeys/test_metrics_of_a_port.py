"""A metric that is created in a scope: values from outside of replicas, checkpoints, and names of Keras beside it."""

from __future__ import annotations

import pytest

from ringlet.compat import tf

STRATEGY = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def test_a_metric_of_a_scope_takes_values_outside_of_replicas():
    with STRATEGY.scope():
        loss = tf.metrics.Mean()
    STRATEGY.run(lambda: loss.update_state([1.0, 2.0]))
    loss.update_state(9.0)  # the reduced loss of a step, for example
    assert loss.result().numpy() == pytest.approx((1 + 2 + 1 + 2 + 9) / 5)
    with STRATEGY.scope():
        loss(3.0)
    assert loss.result().numpy() == pytest.approx((1 + 2 + 1 + 2 + 9 + 3) / 6)


def test_the_line_that_saves_a_metric_is_given_and_works(tmp_path):
    with STRATEGY.scope():
        loss = tf.metrics.Mean()
    STRATEGY.run(lambda: loss.update_state([1.0, 2.0]))
    with pytest.raises(ValueError, match=r"Write loss=loss\.variables to save its variables"):
        tf.train.Checkpoint(loss=loss)
    checkpoint = tf.train.Checkpoint(loss=loss.variables)
    path = checkpoint.save(str(tmp_path / "ckpt"))
    loss.reset_state()
    checkpoint.restore(path).assert_consumed()
    assert loss.result().numpy() == pytest.approx(1.5)
