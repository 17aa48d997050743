"""tf.train has ringlet's checkpoints."""

from __future__ import annotations

import ringlet
from ringlet.compat import tf


def test_checkpoints_and_their_managers_are_ringlet_s():
    for name in ("Checkpoint", "CheckpointManager", "CheckpointOptions", "latest_checkpoint"):
        assert getattr(tf.train, name) is getattr(ringlet.train, name)


def test_a_manager_keeps_variables_and_iterators(tmp_path):
    dataset = tf.data.Dataset.range(6)
    step, iterator = tf.Variable(0), iter(dataset)
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(step=step, iterator=iterator), str(tmp_path), 2)
    next(iterator)
    step.assign_add(1)
    manager.save()
    other = tf.train.Checkpoint(step=tf.Variable(0), iterator=iter(dataset))
    other.restore(manager.latest_checkpoint)
    assert (int(other.step), int(next(other.iterator))) == (1, 1)
