"""Functions of the items of a stream, in threads or not."""

from __future__ import annotations

import pytest

from ringlet.data import Dataset
from ringlet.data.graph.mapped_stream import RestoredFailure


@pytest.mark.parametrize(("saved_with", "restored_with"), [(4, None), (None, 4), (2, 3)])
def test_a_state_may_be_restored_with_another_number_of_threads(saved_with, restored_with):
    def make(threads):
        return iter(Dataset.range(9).map(lambda x: x * 2, num_parallel_calls=threads).batch(2))

    with make(saved_with) as first, make(restored_with) as second:
        next(first)
        second.set_state(first.get_state())
        assert [x.tolist() for x in second] == [x.tolist() for x in first] == [[4, 6], [8, 10], [12, 14], [16]]


@pytest.mark.parametrize("restored_with", [None, 2])
def test_an_error_of_the_input_is_saved_behind_the_items_before_it(restored_with):
    def fail(x):
        if x == 2:
            raise ValueError("from the input")
        return x

    def make(threads):
        return iter(Dataset.range(5).map(fail).map(lambda x: x, num_parallel_calls=threads))

    with make(4) as first, make(restored_with) as second:
        assert next(first) == 0
        second.set_state(first.get_state())
        assert next(second) == 1
        with pytest.raises(RestoredFailure, match="ValueError: from the input"):
            next(second)
        assert [int(x) for x in second] == [3, 4]


def test_numbers_of_elements_go_on_in_notes_behind_a_restored_state():
    def fail(x):
        raise KeyError(int(x))

    with iter(Dataset.range(9).map(fail)) as first, iter(Dataset.range(9).map(fail)) as second:
        with pytest.raises(KeyError):
            next(first)
        second.set_state(first.get_state())
        with pytest.raises(KeyError) as caught:
            next(second)
        assert "for element 1 of" in caught.value.__notes__[0]
