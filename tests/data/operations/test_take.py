"""The first elements."""

from __future__ import annotations

import pytest

from ringlet.data import Dataset


@pytest.mark.parametrize(("count", "expected"), [(0, []), (2, [0, 1]), (3, [0, 1, 2]), (9, [0, 1, 2]), (-1, [0, 1, 2])])
@pytest.mark.parametrize("operation", [lambda d: d, lambda d: d.map(lambda x: x)])
def test_as_many_elements_are_kept_as_there_are_up_to_the_count(operation, count, expected):
    assert [int(x) for x in operation(Dataset.range(3)).take(count)] == expected


def test_no_more_elements_are_made_than_are_taken():
    made = []
    assert len(list(Dataset.range(9).map(lambda x: made.append(x) or x).take(2))) == 2
    assert made == [0, 1]


def test_an_endless_dataset_ends_with_the_count():
    assert [x.tolist() for x in Dataset.range(2).repeat().take(5).batch(3)] == [[0, 1, 0], [1, 0]]
