"""PerWorkerValues hold a RemoteValue for each worker."""

from __future__ import annotations

import pickle
import time

import pytest

from ringlet.coordinator import PerWorkerValue, PerWorkerValues, RemoteValue
from ringlet.coordinator.per_worker_values import PerWorkerDistributedIterator
from tests.coordinator.in_threads import coordinator_of, wait_for


def test_other_values_are_refused_as_in_tensorflow():
    assert PerWorkerValue is PerWorkerValues
    with pytest.raises(AssertionError, match="`PerWorkerValues` should only take `RemoteValue`s"):
        PerWorkerValues([RemoteValue(), 3])


def test_an_iterator_of_all_workers_has_no_elements_here():
    iterator = PerWorkerDistributedIterator([RemoteValue()])
    assert iter(iterator) is iterator
    for call in (iterator.get_next, lambda: next(iterator)):
        with pytest.raises(NotImplementedError, match="Iterating over an `AsyncDistributedIterator`"):
            call()


def test_it_belongs_to_its_coordinator():
    with pytest.raises(TypeError, match="as an argument to schedule"):
        pickle.dumps(PerWorkerValues([RemoteValue()]))


def test_whoever_schedules_hears_that_a_value_is_not_there():
    lost = RemoteValue._promised()
    lost._settle(error=OSError("gone"))
    with coordinator_of(workers=1) as coordinator:
        with pytest.raises(OSError, match="gone"):
            coordinator.schedule(len, args=(PerWorkerValues([lost]),))
        coordinator.join()


def test_values_of_functions_are_handed_to_each_worker_its_own():
    with coordinator_of(workers=2) as coordinator:
        values = PerWorkerValues([coordinator.schedule(lambda i: [i], args=(i,)) for i in range(2)])

        def step(mine):
            from ringlet.coordinator import get_current_worker_index

            return mine == [get_current_worker_index()]

        assert all(coordinator.schedule(step, args=(values,)).fetch() for _ in range(20))


def test_values_of_a_cluster_of_another_size_are_refused():
    with coordinator_of(workers=1) as coordinator:
        values = PerWorkerValues([RemoteValue(), RemoteValue()])
        with pytest.raises(ValueError, match="PerWorkerValues of 2 workers were passed to a cluster of 1"):
            coordinator.schedule(len, args=(values,))


def test_a_function_may_refer_to_them_instead():
    with coordinator_of(workers=2) as coordinator:
        values = coordinator.create_per_worker_resource(list, ("ab",))
        assert coordinator.schedule(lambda: values).fetch() == ["a", "b"]


def test_a_function_that_refers_to_them_is_sent_once_they_are_there():
    with coordinator_of(workers=1) as coordinator:
        values = PerWorkerValues([coordinator.schedule(lambda: time.sleep(0.1) or "late")])
        value = coordinator.schedule(lambda: values)
        wait_for(lambda: value._status.name == "READY")
        assert value.fetch() == "late"
