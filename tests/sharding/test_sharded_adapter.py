"""Sharded arrays where collectives, strategies, variables, checkpoints and datasets meet them."""

from __future__ import annotations

import numpy as np
import pytest

import ringlet
from ringlet.collectives.adapters.array_adapters import in_kind_of, kind_of
from ringlet.sharding import ShardedArray, Sharding, mode, shard, strict
from ringlet.values import PerReplica, VariableAggregation, VariableSynchronization

VALUES = np.arange(8.0).reshape(4, 2)
COLUMNS = Sharding.tiled((1, 2))


@pytest.fixture(params=["shared", "copy"], autouse=True)
def memory(request):
    with mode(request.param), strict():
        yield request.param


@pytest.fixture
def columns():
    return shard(VALUES.copy(), COLUMNS)


def assert_columns(found, values):
    assert isinstance(found, ShardedArray)
    assert str(found.sharding) == str(COLUMNS)
    np.testing.assert_array_equal(found._gathered(), values)


def two_replicas():
    return ringlet.MirroredStrategy(["CPU:0", "CPU:1"])


def test_replicas_combine_sharded_arrays_to_sharded_ones(columns):
    def step(x):
        replica = ringlet.get_replica_context()
        return replica.all_reduce("SUM", x), replica.all_gather(x, 0), replica.merge_call(lambda _, y: y, (x,))

    total, joined, merged = two_replicas().run(step, args=(columns,))
    for component in total.values:
        assert_columns(component, VALUES * 2)
    assert_columns(joined.values[1], np.concatenate([VALUES] * 2))
    assert_columns(merged, VALUES)


def test_what_replicas_gave_is_reduced_and_joined_outside_of_them(columns):
    strategy, other = two_replicas(), shard(VALUES + 1, COLUMNS)
    given = PerReplica([columns, other])
    assert_columns(strategy.reduce("MEAN", given, axis=None), VALUES + 0.5)
    assert_columns(strategy.gather(given, axis=0), np.concatenate([VALUES, VALUES + 1]))
    along = strategy.reduce("SUM", given, axis=0)
    np.testing.assert_array_equal(along._gathered(), (VALUES * 2 + 1).sum(0))


def test_results_are_written_to_only_where_that_was_asked_for(columns):
    def step(x):
        total = ringlet.get_replica_context().all_reduce("SUM", x)
        total[0] = ringlet.get_replica_context().replica_id_in_sync_group
        return total

    with pytest.raises(ValueError, match="read-only"):
        two_replicas().run(step, args=(columns,))
    totals = two_replicas().run(step, args=(columns,), options=ringlet.RunOptions(writable_results=True)).values
    assert [total._gathered()[0].tolist() for total in totals] == [[0, 0], [1, 1]]
    assert_columns(columns, VALUES)


def test_what_one_replica_alone_is_given_is_a_copy(columns):
    total = ringlet.get_replica_context().all_reduce("SUM", columns)
    columns[0] = -1.0
    assert_columns(total, VALUES)


def test_partial_sums_are_combined_before_replicas_meet(columns):
    def step(x):
        return ringlet.get_replica_context().all_reduce("SUM", x.sum(axis=1))

    total = two_replicas().run(step, args=(columns,))
    np.testing.assert_array_equal(total.values[0]._gathered(), VALUES.sum(1) * 2)


def test_a_plain_array_and_a_sharded_one_are_not_combined(columns):
    given = PerReplica([columns, VALUES])
    with pytest.raises(ValueError, match=r"replica 0 has|rank 0 has a ShardedArray, but rank 1 has a numpy.ndarray"):
        two_replicas().reduce("SUM", given, axis=None)


def test_a_result_of_fewer_dimensions_keeps_the_cuts_of_the_last_ones(columns):
    assert str(in_kind_of(columns, np.ones(2)).sharding) == "{devices=[2]<=[2]}"
    assert str(in_kind_of(columns, np.ones(())).sharding) == "{replicated}"
    assert str(in_kind_of(columns, np.ones((3, 4, 2))).sharding) == "{devices=[1,1,2]<=[2]}"


def test_variables_that_begin_with_a_sharded_array_read_as_one(columns):
    variable = ringlet.Variable(columns)
    before = variable.read_value()
    variable.assign_add(columns)
    assert_columns(before, VALUES)
    assert_columns(variable.value(), VALUES * 2)
    assert_columns(variable + columns, VALUES * 3)
    assert_columns(columns + variable, VALUES * 3)
    assert_columns(np.exp(variable), np.exp(VALUES * 2))
    assert_columns(np.concatenate([columns, variable]), np.concatenate([VALUES, VALUES * 2]))
    np.testing.assert_array_equal(np.mean(variable, axis=0)._gathered(), (VALUES * 2).mean(0))
    np.testing.assert_array_equal(variable.numpy(), VALUES * 2)
    assert "numpy=array([[ 0.,  2.]" in repr(variable)


def test_a_value_that_was_read_is_not_written_to(columns):
    value = ringlet.Variable(columns).read_value()
    with pytest.raises(ValueError, match="read-only"):
        value[0] = 5.0


def test_the_first_value_may_be_made_when_the_variable_is():
    calls = []

    def first():
        calls.append(1)
        return shard(VALUES, COLUMNS)

    assert_columns(ringlet.Variable(first, dtype="float32").read_value(), VALUES)
    assert len(calls) == 1


@pytest.mark.parametrize("synchronization", ["ON_WRITE", "ON_READ"])
def test_variables_of_strategies_read_as_sharded_arrays(columns, synchronization):
    strategy = two_replicas()
    with strategy.scope():
        variable = ringlet.Variable(
            columns,
            synchronization=VariableSynchronization[synchronization],
            aggregation=VariableAggregation.SUM,
        )

    def step():
        read = variable.read_value()
        variable.assign_add(read)
        return read, variable.value()

    before, after = strategy.run(step)
    both = 2 if synchronization == "ON_WRITE" else 1
    for component in before.values:
        assert_columns(component, VALUES)
    for component in after.values:
        assert_columns(component, VALUES * (1 + both))
    assert_columns(variable.read_value(), VALUES * (3 if both == 2 else 4))


def test_variables_take_sharded_arrays_and_stay_what_they_are(columns):
    variable = ringlet.Variable(VALUES)
    variable.assign(columns)
    assert type(variable.read_value()) is np.ndarray
    variable.assign_sub(columns)
    assert not variable.numpy().any()


def test_checkpoints_restore_what_was_sharded(columns, tmp_path):
    variable, state = ringlet.Variable(columns), {"x": columns}
    path = ringlet.train.Checkpoint(v=variable, state=state).save(str(tmp_path / "ckpt"))
    variable.assign(np.zeros_like(VALUES))
    fresh = {"x": shard(np.zeros_like(VALUES), COLUMNS)}
    ringlet.train.Checkpoint(v=variable, state=fresh).restore(path).assert_consumed()
    assert_columns(variable.read_value(), VALUES)
    assert_columns(fresh["x"], VALUES)


def test_a_dataset_of_a_sharded_array_has_sharded_rows(columns):
    rows = list(ringlet.data.Dataset.from_tensor_slices(columns).batch(2))
    assert_columns(rows[1], VALUES[2:])


def test_arrays_on_the_devices_of_several_processes_are_not_looked_at_from_one(columns):
    class Elsewhere:
        member = object()

    class Remote:
        _group = Elsewhere()

    with pytest.raises(ValueError, match=r"this process holds only a part: pass np\.asarray"):
        kind_of(columns).as_ndarray(Remote())
