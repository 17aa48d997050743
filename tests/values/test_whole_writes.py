"""A write is one: replicas write the same thing together, all components change or none, readers see it whole."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import ringlet
from ringlet import Variable, VariableAggregation, VariableSynchronization
from ringlet.errors import CollectiveMismatchError

AGG, SYNC = VariableAggregation, VariableSynchronization


@pytest.fixture
def strategy():
    return ringlet.MirroredStrategy(["CPU:0", "CPU:1", "CPU:2"])


def make(strategy, value=0.0, **keywords):
    with strategy.scope():
        return Variable(value, **keywords)


def replica_id():
    return int(ringlet.get_replica_context().replica_id_in_sync_group)


def values(variable):
    return [component.numpy().tolist() for component in variable.values]


@pytest.mark.parametrize(
    ("writes", "texts"),
    [
        (lambda a, b: (lambda: a.assign_add(1.0), lambda: b.assign_add(1.0)), ("assign_add of 'a:0'", "of 'b:0'")),
        (lambda a, b: (lambda: a.assign(1.0), lambda: a.assign_sub(1.0)), ("assign of 'a:0'", "assign_sub of 'a:0'")),
        (lambda a, b: (lambda: a.assign(1.0), lambda: None), ("assign of 'a:0'", "has returned")),
    ],
)
@pytest.mark.parametrize("kind", [ringlet.MirroredStrategy, ringlet.experimental.CentralStorageStrategy])
def test_replicas_that_write_different_things_are_told_so_and_nothing_is_written(kind, writes, texts):
    strategy = kind(["CPU:0", "CPU:1"])
    a, b = (make(strategy, name=name, aggregation=AGG.SUM) for name in "ab")
    with pytest.raises(CollectiveMismatchError) as caught:
        strategy.run(lambda: run_one_of(writes(a, b)))
    assert all(text in str(caught.value) for text in texts)
    assert (a.numpy(), b.numpy()) == (0, 0)


@pytest.mark.parametrize("is_diverged", [False, True])
def test_an_overflow_is_written_whole_as_in_tensorflow(strategy, is_diverged):
    v = make(strategy, [1e308, 1.0])
    if is_diverged:
        strategy.run(lambda: v.assign([1e308, 1.0 + replica_id()]))
    with np.errstate(all="raise"):
        v.assign_add([1e308, 1.0])
        v.scatter_add(ringlet.IndexedSlices(np.array([1.0]), [1]))
    assert values(v) == [[np.inf, 3 + (replica if is_diverged else 0)] for replica in range(3)]


def run_one_of(functions):
    return functions[replica_id()]()


def in_threads(count, function):
    threads = [threading.Thread(target=function) for _ in range(count)]
    for thread in threads:
        thread.start()
    return threads


@pytest.mark.usefixtures("_hasty_interpreter")
def test_all_replicas_get_the_result_of_their_write_and_of_no_other():
    strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
    shared, outside, different = make(strategy, 0, aggregation=AGG.SUM), make(strategy, 0), []

    def write():
        for _ in range(200):
            results = strategy.run(lambda: shared.assign_add(np.int64(1))).values, outside.assign_add(1).values
            different.extend(result for result in results if result[0] != result[1])

    for thread in in_threads(4, write):
        thread.join(60)
    assert different == []
    assert values(shared) == [1600, 1600]


@pytest.mark.usefixtures("_hasty_interpreter")
def test_the_total_that_is_read_was_assigned_at_some_moment(strategy):
    v, seen, stop = make(strategy, 0, synchronization=SYNC.ON_READ, aggregation=AGG.SUM), set(), threading.Event()

    def read():
        while not stop.is_set():
            seen.add(int(v.read_value()))

    threads = in_threads(3, read)
    for _ in range(500):
        seen |= {int(v.assign(11)), int(v.assign(22))}
    stop.set()
    for thread in threads:
        thread.join(60)
    assert seen <= {0, 11, 22}


def test_a_total_is_shared_out_where_the_dtype_does_not_hold_the_number_of_replicas():
    strategy = ringlet.MirroredStrategy([f"CPU:{i}" for i in range(200)])
    v = make(strategy, np.int8(0), synchronization=SYNC.ON_READ, aggregation=AGG.SUM)
    for total in (100, -7):
        assert v.assign(total) == total
