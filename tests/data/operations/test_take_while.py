"""Elements in front of the first that a predicate stops at."""

from __future__ import annotations

import pytest

from ringlet.data import UNKNOWN_CARDINALITY, Dataset
from ringlet.errors import InvalidArgumentError


def test_the_dataset_ends_in_front_of_the_first_that_fails():
    seen = []
    dataset = Dataset.range(9).map(lambda x: seen.append(int(x)) or x % 4).take_while(lambda x: x < 3)
    assert [int(x) for x in dataset] == [0, 1, 2]
    assert seen == [0, 1, 2, 3]
    assert dataset.cardinality() == UNKNOWN_CARDINALITY


def test_the_end_is_the_end():
    iterator = iter(Dataset.range(9).take_while(lambda x: x % 4 != 3))
    assert len(list(iterator)) == 3
    assert list(iterator) == []


def test_a_predicate_gives_one_bool():
    with pytest.raises(InvalidArgumentError, match="one bool"):
        list(Dataset.range(3).take_while(lambda x: x))
