"""The place of an input pipeline."""

from __future__ import annotations

import dataclasses

import pytest

from ringlet.data import InputContext


def test_one_pipeline_for_one_replica_unless_told_otherwise():
    assert InputContext() == InputContext(1, 0, 1)
    assert str(InputContext(3, 2, 6)) == "tf.distribute.InputContext(input pipeline id 2, total: 3)"


def test_a_global_batch_is_split_evenly():
    assert InputContext(num_replicas_in_sync=3).get_per_replica_batch_size(9) == 3


@pytest.mark.parametrize(("size", "nearest"), [(10, "8 or 12"), (3, "4")])
def test_a_global_batch_that_cannot_be_split_evenly_is_refused_with_the_next_ones_that_can(size, nearest):
    with pytest.raises(ValueError, match=rf"global_batch_size {size} .*num_replicas_in_sync 4\. Use {nearest}\.$"):
        InputContext(num_replicas_in_sync=4).get_per_replica_batch_size(size)


def test_it_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        InputContext().input_pipeline_id = 1
