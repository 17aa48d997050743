"""One buffer for several replicas: what they write is combined first."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import ringlet
from ringlet import Variable, VariableAggregation
from ringlet.values import PerReplica

AGG = VariableAggregation


@pytest.fixture
def strategy():
    return ringlet.experimental.CentralStorageStrategy(["CPU:0", "CPU:1"])


def make(strategy, value=0.0, **keywords):
    with strategy.scope():
        return Variable(value, name="v", **keywords)


def replica_id():
    return int(ringlet.get_replica_context().replica_id_in_sync_group)


@pytest.mark.parametrize(("aggregation", "expected"), [(AGG.SUM, 3), (AGG.MEAN, 1.5), (AGG.ONLY_FIRST_REPLICA, 1)])
def test_what_replicas_write_is_combined(strategy, aggregation, expected):
    v = make(strategy, aggregation=aggregation)
    result = strategy.run(lambda: v.assign_add(np.array(float(replica_id() + 1))))
    assert type(result) is np.ndarray
    assert float(result) == v.numpy() == expected


def test_without_an_aggregation_replicas_cannot_write(strategy):
    v = make(strategy)
    with pytest.raises(ValueError, match=r"specify an aggregation method to update a AggregatingVariable.*merge_call"):
        strategy.run(lambda: v.assign(1.0))


def test_outside_of_replicas_it_is_written_to_and_read(strategy):
    v = make(strategy)
    before = v.read_value()
    assert float(v.assign(2.0)) == 2
    assert float(v.assign(PerReplica([np.array(5.0), np.array(6.0)]))) == 5
    assert v.assign(7.0, read_value=False) is None
    assert (float(before), v.numpy(), float(v + 1)) == (0, 7, 8)


def test_an_update_visits_it_once(strategy):
    v = make(strategy)
    strategy.extended.update(v, lambda c, x: c.assign_add(x), args=(PerReplica([np.array(1.0), np.array(2.0)]),))
    assert v.numpy() == 1


def test_each_replica_reads_an_array_object_of_its_own(strategy):
    v = make(strategy)
    assert isinstance(strategy.run(v.read_value), PerReplica)


def test_rows_of_all_replicas_are_scattered(strategy):
    v = make(strategy, [0.0, 0.0], aggregation=AGG.SUM)
    strategy.run(lambda: v.scatter_add(ringlet.IndexedSlices(np.array([1.0]), np.array([replica_id()]))))
    assert v.numpy().tolist() == [1, 1]


@pytest.mark.parametrize("aggregation", AGG)
@pytest.mark.parametrize(
    ("scatter", "expected"),
    [("scatter_add", [7, 8]), ("scatter_div", [4 / 3, 1]), ("scatter_min", [3, 4]), ("scatter_update", [3, 4])],
)
def test_each_replica_scatters_its_own_rows_whatever_the_aggregation(strategy, aggregation, scatter, expected):
    v = make(strategy, [4.0, 4.0], aggregation=aggregation)

    def step():
        return getattr(v, scatter)(ringlet.IndexedSlices(np.array([3.0 + replica_id()]), [replica_id()]))

    assert isinstance(strategy.run(step), PerReplica)
    assert v.numpy().tolist() == expected


def test_a_replica_may_scatter_alone_and_not_to_a_variable_of_another_strategy(strategy):
    v = make(strategy, [0.0])
    slices = ringlet.IndexedSlices([1.0], [0])
    strategy.run(lambda: v.scatter_add(slices) if replica_id() else None)
    assert v.numpy().tolist() == [1]
    with pytest.raises(RuntimeError, match="Mixing different strategies"):
        ringlet.MirroredStrategy(["CPU:0"]).run(lambda: v.scatter_add(slices))


def test_a_mean_that_integers_cannot_hold_is_refused_when_replicas_write(strategy):
    v = make(strategy, np.array([1, 2]), aggregation=AGG.MEAN)
    v.assign(np.array([3, 4]))
    with pytest.raises(ValueError, match=r"variable 'v:0' holds int64, which cannot represent the MEAN of"):
        strategy.run(lambda: v.assign(np.array([5, 6])))
    assert v.numpy().tolist() == [3, 4]
    same = np.array([7, 8])
    strategy.run(lambda: v.assign(same))
    assert v.numpy().tolist() == [7, 8]


def test_a_variable_in_one_place_counts_for_each_replica_that_gives_it(strategy):
    v, same = make(strategy, 2.0), np.array(2.0)
    for value in (v, same):
        total = strategy.run(lambda value=value: ringlet.get_replica_context().all_reduce("SUM", value))
        assert [float(part) for part in total.values] == [4, 4]


def test_another_strategy_is_refused(strategy):
    v = make(strategy)
    with ringlet.MirroredStrategy(["CPU:0"]).scope(), pytest.raises(RuntimeError, match="Mixing different strategies"):
        v.assign(1.0)


def test_a_deep_copy_has_a_value_of_its_own(strategy):
    v = make(strategy, aggregation=AGG.SUM)
    twin = copy.deepcopy(v)
    v.assign(5.0)
    assert (type(twin), twin.numpy(), twin.distribute_strategy) == (type(v), 0, strategy)
