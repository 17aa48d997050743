"""Elements in an order that another dataset names."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.data import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Dataset, TensorSpec
from ringlet.errors import InvalidArgumentError

SMALL, LARGE = Dataset.from_tensor_slices([1, 2]), Dataset.from_tensor_slices([10, 20, 30])


def choose(choices, **keywords):
    dataset = Dataset.choose_from_datasets([SMALL, LARGE], Dataset.from_tensor_slices(choices), **keywords)
    return [int(x) for x in dataset]


def test_the_named_dataset_gives_its_next_element():
    assert choose([0, 1, 1, 0, 1]) == [1, 10, 20, 2, 30]


def test_it_ends_where_a_dataset_without_elements_is_named():
    assert choose([0, 0, 0, 1]) == [1, 2]


def test_choices_of_datasets_without_elements_may_be_passed_over():
    assert choose([0, 0, 0, 1, 1, 0, 1, 1, 0], stop_on_empty_dataset=False) == [1, 2, 10, 20, 30]


@pytest.mark.parametrize("choice", [2, -1])
def test_a_choice_must_name_a_dataset(choice):
    with pytest.raises(InvalidArgumentError, match="the indices of datasets are 0 to 1"):
        choose([0, choice])


def test_it_is_endless_only_where_nothing_can_end_it():
    endless, numbers = SMALL.repeat(), Dataset.range(2)
    assert Dataset.choose_from_datasets([endless] * 2, numbers.repeat()).cardinality() == INFINITE_CARDINALITY
    assert Dataset.choose_from_datasets([endless, LARGE], numbers.repeat()).cardinality() == UNKNOWN_CARDINALITY
    assert Dataset.choose_from_datasets([endless] * 2, numbers).cardinality() == UNKNOWN_CARDINALITY


def test_sizes_that_differ_are_unknown():
    datasets = [Dataset.from_tensors(np.zeros(2)), Dataset.from_tensors(np.zeros(3))]
    assert Dataset.choose_from_datasets(datasets, Dataset.range(2)).element_spec == TensorSpec([None], np.float64)


@pytest.mark.parametrize(
    ("datasets", "choices", "error"),
    [
        ([], Dataset.range(2), ValueError),
        ([SMALL, Dataset.from_tensor_slices([1.5])], Dataset.range(2), TypeError),
        ([SMALL, 3], Dataset.range(2), TypeError),
        ([SMALL], [0], TypeError),
        ([SMALL], Dataset.range(2, output_type=np.int32), TypeError),
        ([SMALL], Dataset.range(2).batch(1), TypeError),
    ],
)
def test_what_cannot_be_chosen_from_is_refused(datasets, choices, error):
    with pytest.raises(error):
        Dataset.choose_from_datasets(datasets, choices)
