"""Elements without repetitions."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.data import UNKNOWN_CARDINALITY, Dataset
from ringlet.errors import InvalidArgumentError
from tests.data.state_cases import through_a_file


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([3, 1, 3, 2, 1], [3, 1, 2]),
        (["a", "b", "a"], ["a", "b"]),
        (np.array([b"a", b"b", b"a"], object), [b"a", b"b"]),
        (np.array([[1, 2], [1, 2], [2, 1]]), [[1, 2], [2, 1]]),
        (np.array([1, 2, 1], np.uint8), [1, 2]),
    ],
)
def test_every_element_comes_when_it_comes_first(values, expected):
    dataset = Dataset.from_tensor_slices(values).unique()
    assert [np.asarray(x).tolist() for x in dataset] == [np.asarray(x).tolist() for x in expected]
    assert dataset.cardinality() == UNKNOWN_CARDINALITY


def test_a_restored_iterator_knows_what_came():
    def open_it():
        return iter(Dataset.range(4).repeat(2).unique())

    iterator = open_it()
    next(iterator), next(iterator)
    restored = open_it()
    restored.set_state(through_a_file(iterator.get_state()))
    assert [int(x) for x in restored] == [2, 3]


def test_only_whole_numbers_and_text_are_compared():
    with pytest.raises(TypeError, match="float64"):
        list(Dataset.from_tensor_slices([1.5]).unique())
    with pytest.raises(InvalidArgumentError, match="one component"):
        list(Dataset.zip(Dataset.range(2), Dataset.range(2)).unique())
