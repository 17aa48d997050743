"""Options of datasets, as TensorFlow names them."""

from __future__ import annotations

import copy
import pickle

import pytest

from ringlet.data import AutoShardPolicy, DistributeOptions, ExternalStatePolicy, Options, ThreadingOptions


def test_policies_have_tensorflows_numbers():
    assert {policy.name: policy.value for policy in AutoShardPolicy} == {
        "OFF": -1,
        "AUTO": 0,
        "FILE": 1,
        "DATA": 2,
        "HINT": 3,
    }
    assert [policy.name for policy in ExternalStatePolicy] == ["WARN", "IGNORE", "FAIL"]


def test_what_was_not_set_is_none_or_a_group():
    options = Options()
    assert options.deterministic is options.experimental_external_state_policy is options.experimental_slack is None
    assert options.experimental_distribute == DistributeOptions()
    assert options.experimental_distribute.auto_shard_policy is AutoShardPolicy.AUTO
    assert options.experimental_distribute.num_devices is None
    assert options.threading == ThreadingOptions()


def test_older_names_are_the_same_settings():
    options = Options()
    options.experimental_deterministic = False
    options.experimental_threading.private_threadpool_size = 2
    assert (options.deterministic, options.threading.private_threadpool_size) == (False, 2)


def test_a_group_can_be_set_as_a_whole():
    group = DistributeOptions()
    group.auto_shard_policy = AutoShardPolicy.HINT
    options = Options()
    options.experimental_distribute = group
    assert options.experimental_distribute.auto_shard_policy is AutoShardPolicy.HINT


@pytest.mark.parametrize(
    ("make", "name", "value"),
    [
        (DistributeOptions, "auto_shard_policy", 2),
        (DistributeOptions, "num_devices", "2"),
        (ThreadingOptions, "private_threadpool_size", 1.5),
        (Options, "deterministic", 1),
        (Options, "experimental_distribute", None),
        (Options, "experimental_external_state_policy", "WARN"),
    ],
)
def test_a_value_of_another_type_is_refused(make, name, value):
    with pytest.raises(TypeError, match=f'Property "{name}" must be of type'):
        setattr(make(), name, value)


@pytest.mark.parametrize("make", [Options, DistributeOptions, ThreadingOptions])
def test_a_setting_that_does_not_exist_is_refused(make):
    with pytest.raises(AttributeError, match=f"Cannot set the property foo on {make.__name__}"):
        make().foo = 1
    with pytest.raises(AttributeError, match="and no foo"):
        _ = make().foo


def test_copies_are_apart_and_equal():
    options = Options()
    options.experimental_distribute.auto_shard_policy = AutoShardPolicy.DATA
    for twin in (copy.copy(options), copy.deepcopy(options), pickle.loads(pickle.dumps(options))):
        assert twin == options
        twin.experimental_distribute.auto_shard_policy = AutoShardPolicy.OFF
        assert options.experimental_distribute.auto_shard_policy is AutoShardPolicy.DATA


def test_options_are_listed_and_shown():
    options = Options()
    options.threading.private_threadpool_size = 2
    assert "deterministic" in dir(options)
    assert repr(options) == "Options(threading=ThreadingOptions(private_threadpool_size=2))"
    assert Options() != DistributeOptions()
