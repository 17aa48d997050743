"""The place of a worker."""

from __future__ import annotations

import pytest

from ringlet.data.distribution.input_placement import Place
from ringlet.errors import InvalidArgumentError


def test_all_replicas_of_all_workers_are_counted():
    assert (Place(3).total, Place(3, 2, 1).total) == (3, 6)


def test_sums_are_asked_of_others_only_where_there_are_others():
    assert Place(2, sum_over_workers=lambda n: n + 10).sum(1) == 1
    assert Place(2, 2).sum(1) == 1
    assert Place(2, 2, 0, lambda n: n + 10).sum(1) == 11


@pytest.mark.parametrize("numbers", [(0,), (1, 0), (1, 2, 2), (1, 2, -1)])
def test_numbers_out_of_range_are_refused(numbers):
    with pytest.raises(InvalidArgumentError):
        Place(*numbers)
