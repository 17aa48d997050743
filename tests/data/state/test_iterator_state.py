"""States belong to the dataset that they were saved from."""

from __future__ import annotations

import pytest

from ringlet.data import Dataset
from ringlet.data.state.iterator_state import fingerprint
from ringlet.errors import FailedPreconditionError, InvalidArgumentError


def test_the_fingerprint_names_the_operations_and_their_plain_settings():
    dataset = Dataset.range(5).shuffle(3, seed=1).map(abs).batch(2, drop_remainder=True)
    assert fingerprint(dataset.node) == (
        "TableSource(rows=5, spec=TensorSpec(shape=(), dtype=int64)) -> Shuffle(buffer_size=3, reshuffles=True) -> "
        "Map() -> Batch(batch_size=2, drop_remainder=True)"
    )


OTHER = {
    "operation": lambda: Dataset.range(5).batch(2).take(2),
    "setting": lambda: Dataset.range(5).batch(3),
    "source": lambda: Dataset.range(6).batch(2),
    "order": lambda: Dataset.range(5).take(2).batch(2),
}


@pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in OTHER.items()])
def test_the_state_of_another_dataset_is_refused_and_both_are_shown(make):
    here, other = Dataset.range(5).batch(2), make()
    iterator = iter(here)
    next(iterator)
    with pytest.raises(FailedPreconditionError) as caught:
        iterator.set_state(iter(other).get_state())
    assert fingerprint(here.node) in str(caught.value)
    assert fingerprint(other.node) in str(caught.value)
    assert next(iterator).tolist() == [2, 3], "the iterator goes on"


def test_seeds_functions_and_numbers_of_threads_may_differ():
    first = iter(Dataset.range(9).shuffle(4, seed=1).map(lambda x: x, num_parallel_calls=2).prefetch(2))
    second = iter(Dataset.range(9).shuffle(4, seed=2).map(int).prefetch(2))
    next(first)
    second.set_state(first.get_state())
    assert list(second) == list(first)


@pytest.mark.parametrize("state", [None, {}, [], {"version": 1}])
def test_what_is_no_state_is_refused(state):
    with pytest.raises(InvalidArgumentError, match=r"a result of get_state\(\) of an iterator"):
        iter(Dataset.range(3)).set_state(state)


def test_a_state_of_another_version_is_refused():
    iterator = iter(Dataset.range(3))
    with pytest.raises(InvalidArgumentError, match="version 99"):
        iterator.set_state({**iterator.get_state(), "version": 99})
