"""The default strategy: one replica, which is the program itself."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import ringlet
from ringlet.values import PerReplica

DEFAULT = ringlet.get_strategy()


def test_it_is_always_the_same_object():
    assert ringlet.get_strategy() is DEFAULT
    assert repr(DEFAULT) == "<default strategy>"


@pytest.mark.parametrize("another", [type(DEFAULT), lambda: copy.deepcopy(DEFAULT)])
def test_there_is_no_second_one(another):
    with pytest.raises(RuntimeError, match="single instance"):
        another()


def test_its_scope_changes_nothing():
    with DEFAULT.scope() as strategy, DEFAULT.scope():
        assert strategy is DEFAULT
        assert not ringlet.has_strategy()
        assert not ringlet.in_cross_replica_context()


def test_its_scope_does_not_nest_in_another_ones():
    with (
        ringlet.MirroredStrategy(["CPU:0"]).scope(),
        pytest.raises(RuntimeError, match="Must not nest"),
        DEFAULT.scope(),
    ):
        pytest.fail("entered")


def test_run_calls_the_function():
    assert DEFAULT.run(lambda x, *, y: (x, y), args=[PerReplica([1])], kwargs={"y": [2]}) == (1, [2])


@pytest.mark.parametrize("op", ["SUM", "MEAN"])
def test_reduce_without_an_axis_gives_the_value(op):
    value = {"a": np.ones(2)}
    assert DEFAULT.reduce(op, value, axis=None) is value


def test_reduce_over_an_axis_reduces_the_value():
    assert DEFAULT.reduce("SUM", np.array([1.0, 3.0]), axis=0) == 4
    assert DEFAULT.reduce("MEAN", np.array([1, 2]), axis=0) == 1.5


def test_its_replica_is_current_outside_of_every_scope():
    replica = ringlet.get_replica_context()
    assert replica is not None
    assert (replica.strategy, replica.num_replicas_in_sync) == (DEFAULT, 1)
    assert type(replica.replica_id_in_sync_group) is int
    assert replica.all_reduce("SUM", [np.ones(2)])[0].tolist() == [1, 1]
    assert replica.merge_call(lambda strategy, x: (strategy is DEFAULT, x), args=(5,)) == (True, 5)


def test_its_replica_is_not_current_in_another_scope():
    replica = ringlet.get_replica_context()
    assert replica is not None
    with ringlet.MirroredStrategy(["CPU:0"]).scope(), pytest.raises(RuntimeError, match="Mismatching strategies"):
        replica.merge_call(lambda _: None)


def test_merge_fn_is_in_cross_replica_context():
    replica = ringlet.get_replica_context()
    assert replica is not None
    assert replica.merge_call(lambda _: (ringlet.in_cross_replica_context(), ringlet.has_strategy())) == (True, False)


@pytest.mark.parametrize("name", ["worker_devices", "parameter_devices"])
def test_it_has_no_devices(name):
    with pytest.raises(RuntimeError, match=f"{name} is unsupported by the default strategy"):
        getattr(DEFAULT.extended, name)


def test_values_and_datasets_stay_as_they_are():
    dataset = ringlet.data.Dataset.range(3)
    assert DEFAULT.experimental_distribute_values_from_function(lambda c: c.num_replicas_in_sync) == 1
    assert DEFAULT.experimental_local_results((1, 2)) == ((1, 2),)
    assert DEFAULT.experimental_distribute_dataset(dataset) is dataset
    assert DEFAULT.distribute_datasets_from_function(lambda c: (dataset, c.num_input_pipelines)) == (dataset, 1)


def test_variables_of_no_scope_belong_to_the_default_strategy():
    extended = ringlet.get_strategy().extended
    variable = ringlet.Variable(1.0)
    assert extended.variable_created_in_scope(variable)
    with extended.colocate_vars_with(variable):
        assert extended.variable_created_in_scope(ringlet.Variable(2.0))
    with ringlet.MirroredStrategy(["CPU:0"]).scope():
        assert not extended.variable_created_in_scope(ringlet.Variable(2.0))
        with pytest.raises(RuntimeError, match="Mixing"):
            extended.colocate_vars_with(variable)


def test_values_are_combined_as_they_are():
    strategy, array = ringlet.get_strategy(), np.ones(2)
    assert strategy.extended.reduce_to("SUM", array, "CPU:0") is array
    assert strategy.extended.batch_reduce_to("MEAN", [(array, "CPU:0")]) == [array]
    assert strategy.extended.broadcast_to(array, "") is array
    assert strategy.gather(array, axis=0) is array
    assert strategy.extended.update(array, lambda a, x: a + x, args=(1,)).tolist() == [2, 2]
    assert strategy.extended.update_non_slot(array, lambda x: x, args=(1,), group=False) == (1,)
