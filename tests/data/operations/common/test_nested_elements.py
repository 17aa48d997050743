"""Inner datasets in turn."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.data import Dataset
from ringlet.data.graph.mapped_stream import RestoredError
from ringlet.data.graph.node import IterationContext
from ringlet.data.operations.common.nested_elements import DatasetFunction
from tests.data.state_cases import through_a_file

sizes = st.lists(st.integers(0, 5), max_size=7)


def tens(number, size):
    return Dataset.range(10 * number, 10 * number + size).map(lambda x: x)


def interleave(found, cycle_length, block_length, calls=None):
    numbered = (
        Dataset.from_iterable(list(enumerate(found))) if found else Dataset.zip(Dataset.range(0), Dataset.range(0))
    )
    return numbered.interleave(tens, cycle_length, block_length, num_parallel_calls=calls)


@given(sizes, st.integers(1, 4), st.integers(1, 3), st.data())
def test_threads_change_nothing_and_a_state_of_either_continues_in_the_other(found, cycle_length, block_length, data):
    calls = data.draw(st.integers(2, 4).filter(lambda n: n <= cycle_length) if cycle_length > 1 else st.none(), "calls")
    expected = [int(x) for x in interleave(found, cycle_length, block_length)]
    at = data.draw(st.integers(0, len(expected)), "saved after")
    kinds = data.draw(st.permutations([None, calls]), "from and to")
    iterator, restored = (iter(interleave(found, cycle_length, block_length, kind)) for kind in kinds)
    assert [int(x) for x in itertools.islice(iterator, at)] == expected[:at]
    restored.set_state(through_a_file(iterator.get_state()))
    assert [int(x) for x in iterator] == [int(x) for x in restored] == expected[at:]


def test_a_dataset_is_opened_in_a_round_of_its_own():
    opened = DatasetFunction(Dataset.range).open(7, 3, IterationContext())
    assert opened.context.rounds == (7,)
    assert list(opened.stream) == [0, 1, 2]


def test_an_exception_on_its_way_is_saved_as_text():
    def inner(x):
        return Dataset.range(3).map(lambda y: 6 // (int(y - 1) or int(x)))

    dataset = Dataset.range(2).interleave(inner, 2, 3, num_parallel_calls=2)
    iterator, restored = iter(dataset), iter(dataset)
    assert next(iterator) == -6
    restored.set_state(through_a_file(iterator.get_state()))
    with pytest.raises(RestoredError, match="ZeroDivisionError"):
        next(restored)
    with pytest.raises(ZeroDivisionError):
        next(iterator)
    assert list(iterator) == list(restored) == [6, -6, 6, 6]
