"""tf.distribute and tf.compat.v1.distribute have ringlet's classes under TensorFlow's names."""

from __future__ import annotations

import pytest

import ringlet
from ringlet.compat import tf


@pytest.mark.parametrize(
    "name",
    ["CrossDeviceOps", "InputContext", "InputOptions", "ReduceOp", "ReplicaContext", "Strategy", "StrategyExtended"],
)
def test_what_needs_no_tensors_is_ringlet_s(name):
    assert getattr(tf.distribute, name) is getattr(ringlet, name)


def test_distributed_values_are_ringlet_s():
    assert tf.types.experimental.distributed.PerReplica is ringlet.values.PerReplica
    assert tf.types.experimental.distributed.Mirrored is ringlet.values.Mirrored
    assert tf.distribute.DistributedValues is ringlet.DistributedValues


def test_names_that_may_change_are_below_experimental():
    assert tf.distribute.experimental.CommunicationOptions is ringlet.experimental.CommunicationOptions
    assert tf.distribute.experimental.ValueContext().num_replicas_in_sync == 1


def test_losses_are_added_in_tensorflow_1():
    assert tf.compat.v1.distribute.get_loss_reduction() is tf.distribute.ReduceOp.SUM


def test_a_namespace_is_imported_by_name():
    import ringlet.compat.tf as by_path  # both spellings are tried
    from ringlet.compat.tf.distribute import MirroredStrategy

    assert by_path is tf
    assert MirroredStrategy is tf.distribute.MirroredStrategy
