"""Random numbers."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.data import INFINITE_CARDINALITY, Dataset, TensorSpec
from tests.data.state_cases import through_a_file


def first(dataset, count=20):
    return [int(x) for x in dataset.take(count)]


def test_numbers_are_the_same_in_every_iteration_and_for_one_seed():
    dataset = Dataset.random(seed=3)
    assert first(dataset) == first(dataset) == first(Dataset.random(seed=3)) != first(Dataset.random(seed=4))
    unseeded = Dataset.random()
    assert first(unseeded) == first(unseeded) != first(Dataset.random())


def test_numbers_change_where_that_was_asked_for():
    dataset = Dataset.random(seed=3, rerandomize_each_iteration=True)
    again = Dataset.random(seed=3, rerandomize_each_iteration=True)
    assert first(dataset) == first(again)
    assert first(dataset) != first(dataset)
    rounds = [int(x) for x in Dataset.random(seed=3, rerandomize_each_iteration=True).take(5).repeat(2)]
    assert rounds[:5] != rounds[5:]


def test_numbers_are_int64_below_two_to_the_32():
    dataset = Dataset.random(seed=1)
    assert dataset.cardinality() == INFINITE_CARDINALITY
    assert dataset.element_spec == TensorSpec([], np.int64)
    numbers = dataset.batch(1000).take(1).get_single_element()
    assert numbers.min() >= 0
    assert numbers.max() < 2**32
    assert numbers.max() > 2**31


@pytest.mark.parametrize("seed", [None, 5])
def test_an_iterator_goes_on_where_it_was_saved(seed):
    iterator = iter(Dataset.random(seed, rerandomize_each_iteration=True).take(9))
    next(iterator), next(iterator)
    restored = iter(Dataset.random(seed, rerandomize_each_iteration=True).take(9))
    restored.set_state(through_a_file(iterator.get_state()))
    assert list(restored) == list(iterator)


def test_a_seed_is_an_integer():
    with pytest.raises(TypeError, match="seed"):
        Dataset.random("3")
