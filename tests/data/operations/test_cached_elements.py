"""The streams of a cache in memory."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.data import Dataset
from ringlet.data.node import Run
from ringlet.data.operations.cached_elements import CachedElements, CachedRows, Store, same_state


@pytest.mark.parametrize(
    ("one", "other", "are_same"),
    [
        ({"a": [1, None]}, {"a": [1, None]}, True),
        ({"a": 1}, {"b": 1}, False),
        ([1], [1, 2], False),
        (np.arange(2), np.arange(2), True),
        (np.arange(2), np.arange(2.0), False),
        (np.arange(2), [0, 1], False),
        (1, True, False),
    ],
)
def test_states_are_the_same_where_all_their_parts_are(one, other, are_same):
    assert same_state(one, other) is are_same


def test_the_store_takes_the_first_iteration_that_ends():
    node, store = Dataset.range(3).map(lambda x: x).node, Store()
    first, second = CachedElements(node, Run(), store), CachedElements(node, Run(), store)
    assert list(second) == [0, 1, 2]
    kept = store.kept
    assert list(first) == kept
    assert store.kept is kept


def test_rows_are_kept_as_numbers():
    node, store = Dataset.range(6).shuffle(6, seed=1).node, Store()
    rows = CachedRows(node.open_rows(Run()), store)
    first = [*rows.next_rows(4), *rows.next_rows(4)]
    assert sorted(first) == list(range(6))
    again = CachedRows(node.open_rows(Run()), store)
    assert again.next_rows(9).tolist() == first
    assert not store.kept.flags.writeable
