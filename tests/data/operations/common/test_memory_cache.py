"""The streams of a cache in memory."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ringlet.data import Dataset
from ringlet.data.graph.node import IterationContext
from ringlet.data.operations.common.memory_cache import CachedElements, CachedRows, Store, same_state
from tests.data.state_cases import through_a_file


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
    cache, store = Dataset.range(3).map(lambda x: x).cache().node, Store()
    first, second = CachedElements(cache, IterationContext(), store), CachedElements(cache, IterationContext(), store)
    assert list(second) == [0, 1, 2]
    kept = store.kept
    assert list(first) == kept
    assert store.kept is kept


def test_rows_are_kept_as_numbers():
    cache, store = Dataset.range(6).shuffle(6, seed=1).cache().node, Store()
    rows = CachedRows(cache, IterationContext(), store)
    first = [*rows.next_rows(4), *rows.next_rows(4)]
    assert sorted(first) == list(range(6))
    again = CachedRows(cache, IterationContext(), store)
    assert again.next_rows(9).tolist() == first
    assert not store.kept.flags.writeable


def _rows():
    return Dataset.range(5).shuffle(5, seed=3)


def _elements():
    return _rows().map(lambda x: x)


@pytest.mark.parametrize(
    "ends_early",
    [
        lambda d: d.map(lambda x: x),
        lambda d: d.prefetch(9).map(abs),
        lambda d: d.batch(2).map(abs, num_parallel_calls=4),
    ],
)
@pytest.mark.parametrize("source", [_rows, _elements])
def test_later_rounds_of_a_restored_iteration_give_what_was_kept_before(source, ends_early):
    def make():
        return ends_early(source().cache()).repeat(3)

    for count in (1, 4, 7):
        iterator, restored = iter(make()), iter(make())
        list(itertools.islice(iterator, count))
        restored.set_state(through_a_file(iterator.get_state()))
        assert [x.tolist() for x in restored] == [x.tolist() for x in iterator]


def test_a_restored_iteration_does_not_go_over_to_what_another_one_kept():
    dataset, again = _rows().cache(), _rows().cache()
    saved, _ = iter(dataset.repeat(3)), iter(again)
    list(itertools.islice(saved, 7))
    assert list(again) != list(dataset)  # the second iteration of a shuffle
    other = iter(again.repeat(3))
    other.set_state(saved.get_state())
    assert list(other) == list(saved)
