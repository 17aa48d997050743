"""Elements with their numbers."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.data import Dataset, TensorSpec
from ringlet.errors import InvalidArgumentError


@pytest.mark.parametrize("kind", [lambda d: d, lambda d: d.map(lambda x: x)])
@pytest.mark.parametrize("start", [0, 5, -3])
def test_numbers_count_up_from_the_first(kind, start):
    dataset = kind(Dataset.range(10, 13)).enumerate(start)
    assert [(int(n), int(x)) for n, x in dataset] == [(start, 10), (start + 1, 11), (start + 2, 12)]
    assert len(dataset) == 3


def test_numbers_are_int64_in_front_of_the_element():
    dataset = Dataset.from_tensor_slices((np.zeros((2, 3)), ["a", "b"])).enumerate()
    assert dataset.element_spec[0] == TensorSpec([], np.int64)
    assert dataset.element_spec[1][0] == TensorSpec([3], np.float64)
    assert next(iter(dataset))[0].dtype == np.int64


def test_rows_keep_their_numbers_through_a_shuffle_without_a_loop():
    rows = np.arange(20, 70)
    dataset = Dataset.from_tensor_slices(rows).enumerate().shuffle(50, seed=2)
    assert dataset.node.table is not None
    numbers, values = dataset.batch(50).get_single_element()
    assert (values == numbers + 20).all()
    assert numbers.tolist() != list(range(50))


def test_an_enumeration_behind_a_shuffle_counts_in_the_new_order():
    dataset = Dataset.range(30).shuffle(30, seed=2).enumerate()
    assert [int(n) for n, _ in dataset] == list(range(30))


@pytest.mark.parametrize(("start", "error"), [(1.5, TypeError), ("0", TypeError), (2**63, InvalidArgumentError)])
def test_the_first_number_is_an_int64(start, error):
    with pytest.raises(error, match="start"):
        Dataset.range(2).enumerate(start)


def test_an_element_at_fault_takes_its_number_with_it():
    iterator = iter(Dataset.range(4).map(lambda x: 1 // int(x) if x < 2 else x).enumerate())
    with pytest.raises(ZeroDivisionError):
        next(iterator)
    assert list(iterator) == [(1, 1), (2, 2), (3, 3)]
