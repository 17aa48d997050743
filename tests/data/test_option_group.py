"""Settings with names and types."""

from __future__ import annotations

import pytest

from ringlet.data import AutoShardPolicy, DistributeOptions, Options


def distribute(policy=AutoShardPolicy.AUTO, num_devices=None):
    options = DistributeOptions()
    options.auto_shard_policy = policy
    if num_devices is not None:
        options.num_devices = num_devices
    return options


def test_merging_takes_what_the_other_sets():
    merged = distribute(AutoShardPolicy.OFF, 2).merge(distribute(AutoShardPolicy.DATA))
    assert merged == distribute(AutoShardPolicy.DATA, 2)
    assert distribute(AutoShardPolicy.OFF).merge(distribute()) == distribute(AutoShardPolicy.OFF)


def test_merging_changes_neither():
    first, second = distribute(AutoShardPolicy.OFF), distribute(num_devices=2)
    first.merge(second).num_devices = 5
    assert (first, second) == (distribute(AutoShardPolicy.OFF), distribute(num_devices=2))


def test_groups_within_groups_are_merged():
    first, second = Options(), Options()
    first.experimental_distribute = distribute(AutoShardPolicy.OFF)
    second.experimental_distribute = distribute(num_devices=2)
    assert first.merge(second).experimental_distribute == distribute(AutoShardPolicy.OFF, 2)


@pytest.mark.parametrize("other", [Options(), None, 5])
def test_another_class_is_not_merged(other):
    with pytest.raises(TypeError, match="Could not merge incompatible options"):
        DistributeOptions().merge(other)


def test_what_is_frozen_refuses_changes_and_its_origin_does_not():
    options = Options()
    frozen = options.frozen()
    with pytest.raises(ValueError, match="are read-only"):
        frozen.threading.private_threadpool_size = 2
    options.threading.private_threadpool_size = 2
    assert frozen == Options()


def test_options_cannot_be_keys():
    with pytest.raises(TypeError, match="unhashable"):
        hash(Options())
