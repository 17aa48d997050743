"""A number of elements that is said in advance."""

from __future__ import annotations

import pytest

from ringlet.data import INFINITE_CARDINALITY, Dataset, assert_cardinality
from ringlet.errors import FailedPreconditionError


def test_the_dataset_has_the_cardinality_that_was_said():
    dataset = Dataset.range(9).filter(lambda x: x < 7).apply(assert_cardinality(7))
    assert len(dataset) == 7
    assert len(list(dataset)) == 7


@pytest.mark.parametrize(
    ("count", "said", "words", "given"),
    [
        (5, 7, "contain 7 elements but contained only 5", 5),
        (9, 7, "contain 7 elements but contained at least 8", 7),
        (9, INFINITE_CARDINALITY, "infinite number of elements but contained only 9", 9),
    ],
)
def test_a_number_that_was_wrong_is_an_error_at_its_place(count, said, words, given):
    iterator = iter(Dataset.range(count).apply(assert_cardinality(said)))
    assert [int(next(iterator)) for _ in range(given)] == list(range(given))
    with pytest.raises(FailedPreconditionError, match=words):
        next(iterator)
    assert list(iterator) == []


def test_a_number_that_was_wrong_may_be_ignored():
    for said in (3, 7):
        dataset = Dataset.range(5).apply(assert_cardinality(said)).ignore_errors()
        assert [int(x) for x in dataset.take(9)] == list(range(min(said, 5)))
