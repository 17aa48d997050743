"""Elements cut into their rows."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.data import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Dataset, TensorSpec
from ringlet.errors import InvalidArgumentError


def test_rows_come_one_by_one_as_views():
    rows = np.arange(6).reshape(2, 3)
    dataset = Dataset.from_tensors((rows, ["a", "b"])).unbatch()
    assert [(x.tolist(), str(name)) for x, name in dataset] == [([0, 1, 2], "a"), ([3, 4, 5], "b")]
    assert np.shares_memory(next(iter(dataset))[0], rows)
    assert dataset.element_spec[0] == TensorSpec([3], np.int64)


@pytest.mark.parametrize(
    ("dataset", "cardinality"),
    [
        (Dataset.range(7).batch(2), UNKNOWN_CARDINALITY),
        (Dataset.range(7).batch(2, drop_remainder=True), 6),
        (Dataset.range(7).map(lambda x: np.full(3, x)), 21),
        (Dataset.range(7).repeat().batch(2), INFINITE_CARDINALITY),
        (Dataset.range(7).batch(2).filter(lambda x: True), UNKNOWN_CARDINALITY),
    ],
)
def test_the_cardinality_is_known_where_the_first_size_is(dataset, cardinality):
    assert dataset.unbatch().cardinality() == cardinality


def test_elements_without_rows_give_none():
    dataset = Dataset.from_iterable([np.zeros(0), np.ones(2), np.zeros(0), np.ones(1)]).unbatch()
    assert [float(x) for x in dataset] == [1, 1, 1]


@pytest.mark.parametrize(
    ("tensors", "words"),
    [
        (3, "is a scalar"),
        ((np.arange(2), 3), "is a scalar"),
        ((np.arange(2), np.arange(3)), r"equal numbers of rows, got \[2, 3\]"),
    ],
)
def test_what_has_no_rows_in_common_is_refused_at_once_where_it_is_known(tensors, words):
    with pytest.raises(ValueError, match=words):
        Dataset.from_tensors(tensors).unbatch()


def test_what_has_no_rows_in_common_is_refused_where_it_comes_and_iteration_goes_on():
    elements = [(np.arange(2), np.arange(2)), (np.arange(2), np.arange(3)), (np.int64(1), np.int64(1)), ([1], [1])]
    iterator = iter(Dataset.range(4).map(lambda i: elements[i]).unbatch())
    assert [next(iterator) for _ in range(2)] == [(0, 0), (1, 1)]
    with pytest.raises(InvalidArgumentError, match="same batch size"):
        next(iterator)
    with pytest.raises(InvalidArgumentError, match="must be non-scalar"):
        next(iterator)
    assert list(iterator) == [(1, 1)]


def test_elements_without_rows_say_nothing_about_the_number_of_all():
    assert Dataset.from_tensors(np.zeros((0, 2))).unbatch().cardinality() == UNKNOWN_CARDINALITY
