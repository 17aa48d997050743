"""A function may ask which worker runs it."""

from __future__ import annotations

import pytest

from ringlet.coordinator.current_worker import as_worker, experimental_get_current_worker_index
from ringlet.data import Dataset


def test_outside_of_workers_there_is_no_index():
    with pytest.raises(RuntimeError, match="Cannot retrieve the worker index"):
        experimental_get_current_worker_index()


def test_workers_may_be_inside_of_each_other():
    with as_worker(3):
        with as_worker(4):
            assert experimental_get_current_worker_index() == 4
        assert experimental_get_current_worker_index() == 3


def test_the_threads_of_a_dataset_have_the_index_of_who_iterates_it():
    dataset = (
        Dataset.range(4).map(lambda x: x + experimental_get_current_worker_index(), num_parallel_calls=2).prefetch(2)
    )
    with as_worker(10):
        assert [int(x) for x in dataset] == [10, 11, 12, 13]
