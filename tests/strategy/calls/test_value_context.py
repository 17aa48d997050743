"""The argument of functions that create a component."""

from __future__ import annotations

import dataclasses

import pytest

from ringlet.strategy.calls.value_context import ValueContext


def test_it_prints_as_in_tensorflow():
    assert str(ValueContext()) == "tf.distribute.ValueContext(replica id 0,  total replicas in sync: 1)"


def test_it_is_a_value():
    assert ValueContext(1, 2) == ValueContext(replica_id_in_sync_group=1, num_replicas_in_sync=2)
    with pytest.raises(dataclasses.FrozenInstanceError):
        ValueContext().num_replicas_in_sync = 3
