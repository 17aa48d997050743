"""Every worker has a dataset of its own, whole."""

from __future__ import annotations

import collections
import threading

import numpy as np
import pytest

import ringlet
from ringlet.coordinator import get_current_worker_index
from ringlet.data import Dataset
from tests.coordinator.in_threads import coordinator_of


@pytest.fixture
def coordinator():
    with coordinator_of(workers=2) as made:
        yield made


def seen_by_workers(coordinator, iterator, count=40):
    """The elements that each worker has taken."""

    def step(mine):
        return get_current_worker_index(), np.asarray(next(mine)).tolist()

    values = coordinator.fetch([coordinator.schedule(step, args=(iterator,)) for _ in range(count)])
    seen = collections.defaultdict(list)
    for index, element in values:
        seen[index].append(element)
    return seen


def of_function(coordinator):
    return lambda: Dataset.range(100)


def of_marked_function(coordinator):
    return ringlet.function(lambda: Dataset.range(100))


def of_function_of_strategy(coordinator):
    strategy = coordinator.strategy
    return lambda: strategy.distribute_datasets_from_function(lambda context: Dataset.range(100))


def of_function_of_any_iterable(coordinator):
    return lambda: list(range(100))


def of_dataset(coordinator):
    return Dataset.range(100).map(lambda x: x)


def of_distributed_dataset(coordinator):
    return coordinator.strategy.experimental_distribute_dataset(Dataset.range(100).batch(1).unbatch())


MAKERS = [
    of_function,
    of_marked_function,
    of_function_of_strategy,
    of_function_of_any_iterable,
    of_dataset,
    of_distributed_dataset,
]


@pytest.mark.parametrize("make", MAKERS)
def test_every_worker_has_all_elements_from_the_first_on(coordinator, make):
    iterator = iter(coordinator.create_per_worker_dataset(make(coordinator)))
    for elements in seen_by_workers(coordinator, iterator).values():
        assert sorted(elements) == list(range(len(elements)))  # a function may be taken back and run after a later one


def test_each_iteration_begins_anew(coordinator):
    dataset = coordinator.create_per_worker_dataset(lambda: Dataset.range(100))
    for iterator in (iter(dataset), iter(dataset)):
        for elements in seen_by_workers(coordinator, iterator, 10).values():
            assert elements[0] == 0


def test_a_dataset_may_depend_on_its_worker(coordinator):
    def dataset_fn():
        return Dataset.range(100).shard(2, get_current_worker_index())

    for index, elements in seen_by_workers(
        coordinator, iter(coordinator.create_per_worker_dataset(dataset_fn))
    ).items():
        assert elements == [2 * i + index for i in range(len(elements))]


def test_the_datasets_themselves_are_arguments_too(coordinator):
    datasets = coordinator.create_per_worker_dataset(lambda: Dataset.range(3)).build()
    assert coordinator.schedule(lambda mine: sum(map(int, mine)), args=(datasets,)).fetch() == 3


def test_its_spec_is_known_before_any_worker_has_made_it(coordinator):
    dataset = coordinator.create_per_worker_dataset(lambda: Dataset.range(3).batch(2))
    assert dataset.element_spec == Dataset.range(3).batch(2).element_spec


def test_variables_are_not_made_with_a_dataset(coordinator):
    def dataset_fn():
        ringlet.Variable(1.0)
        return Dataset.range(3)

    with pytest.raises(ValueError, match="Creating variables in `dataset_fn` is not allowed"):
        coordinator.create_per_worker_dataset(dataset_fn)


def test_a_mistake_of_a_function_is_raised_at_once(coordinator):
    with pytest.raises(ZeroDivisionError):
        coordinator.create_per_worker_dataset(lambda: 1 / 0)


def test_what_is_no_dataset_is_refused(coordinator):
    with pytest.raises(ValueError, match="Unexpected dataset type!"):
        coordinator.create_per_worker_dataset([1, 2])
    with pytest.raises(ValueError, match="Unexpected dataset type!"):
        coordinator.create_per_worker_dataset(lambda: 3)


def test_it_is_no_argument_itself_and_what_is_one_is_told(coordinator):
    dataset = coordinator.create_per_worker_dataset(lambda: Dataset.range(3))
    with pytest.raises(TypeError, match=r"argument 0 of len: .* pass iter\(dataset\), or dataset\.build\(\)"):
        coordinator.schedule(len, args=(dataset,))


def test_what_cannot_be_sent_in_it_is_named(coordinator):
    lock = threading.Lock()

    def dataset_fn():
        return [lock]

    with pytest.raises(TypeError, match=r"argument 0 of create_per_worker_dataset: .*'lock' of .*dataset_fn"):
        iter(coordinator.create_per_worker_dataset(dataset_fn))
