"""Elements that are there already."""

from __future__ import annotations

import numpy as np

from ringlet.data import Dataset
from ringlet.data.operations.elements import Elements


def test_they_are_given_in_order_every_time():
    dataset = Dataset(Elements((np.int64(3), np.int64(5))))
    assert list(dataset.repeat(2)) == [3, 5, 3, 5]
    assert len(dataset) == 2


def test_an_iterator_goes_on_where_it_was_saved():
    dataset = Dataset(Elements(tuple(map(np.int64, range(5)))))
    first, second = iter(dataset), iter(dataset)
    next(first), next(first)
    second.set_state(first.get_state())
    assert list(second) == [2, 3, 4]
