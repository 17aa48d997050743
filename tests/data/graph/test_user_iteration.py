"""Iterables of the user: when they are begun, how they are closed, and how their place is saved."""

from __future__ import annotations

import itertools

import pytest

from ringlet.data import Dataset
from ringlet.errors import FailedPreconditionError, OutOfRangeError
from tests.data.state_cases import through_a_file


class Counter:
    """Can only count up; remembers how often it was asked."""

    def __init__(self, size):
        self.size, self.asked = size, 0

    def __iter__(self):
        for number in range(self.size):
            self.asked += 1
            yield number


class Loader(Counter):
    """Tells its place, as PyTorch's stateful loaders and Hugging Face's streams do."""

    def __init__(self, size):
        super().__init__(size)
        self.start, self.at = 0, 0

    def __iter__(self):
        start, self.start = self.start, 0
        for number in range(start, self.size):
            self.asked += 1
            self.at = number + 1
            yield number

    def state_dict(self):
        return {"at": self.at, "nested": {"none": None}}

    def load_state_dict(self, state):
        assert state["nested"] == {"none": None}
        self.start = state["at"]


class Place:
    """An iterator that tells its place."""

    def __init__(self):
        self.at = 0

    def __iter__(self):
        return self

    def __next__(self):
        self.at += 1
        if self.at > 6:
            raise StopIteration
        return self.at - 1

    def get_state(self):
        return self.at

    def set_state(self, state):
        self.at = state


class Anew:
    """Gives an iterator that tells its place."""

    def __iter__(self):
        return Place()


def continued(first_iterable, second_iterable, taken=2):
    first, second = (iter(Dataset.from_iterable(i)) for i in (first_iterable, second_iterable))
    for _ in range(taken):
        next(first)
    second.set_state(through_a_file(first.get_state()))
    return [int(x) for x in second]


def test_an_iterable_is_begun_when_the_first_element_is_asked_for():
    counter = Counter(3)
    iterator = iter(Dataset.from_iterable(counter))
    assert counter.asked == 0
    next(iterator)
    assert counter.asked == 1


def test_an_iterator_that_nothing_was_read_from_is_still_whole():
    numbers = iter(range(3))
    dataset = Dataset.from_iterable(numbers)
    iter(dataset).close()
    assert [int(x) for x in dataset] == [0, 1, 2]


@pytest.mark.parametrize("make", [Counter, range, lambda n: list(range(n)), lambda n: iter(range(n)), Loader])
def test_a_restored_iterator_goes_on_behind_the_elements_that_were_taken(make):
    assert continued(make(6), make(6)) == [2, 3, 4, 5]
    assert continued(make(6), make(6), 6) == []


def test_elements_that_were_taken_are_read_again_where_the_iterable_cannot_tell_its_place():
    counter = Counter(6)
    continued(Counter(6), counter)
    assert counter.asked == 6


def test_an_iterable_that_tells_its_place_is_not_read_again():
    loader = Loader(6)
    assert continued(Loader(6), loader) == [2, 3, 4, 5]
    assert loader.asked == 4


def test_an_iterator_that_tells_its_place_is_asked_before_the_iterable():
    assert continued(Anew(), Anew()) == [2, 3, 4, 5]


def test_a_place_that_a_state_cannot_hold_is_counted_instead():
    class Odd(Loader):
        def state_dict(self):
            return {"object": object()}

    assert continued(Odd(6), Odd(6)) == [2, 3, 4, 5]


def test_an_iterable_that_has_become_too_short_is_named():
    with pytest.raises(
        OutOfRangeError, match=r"after 4 elements of the list, but this iterable yields only 3\. Pass an iterable that"
    ):
        continued([1] * 5, [1] * 3, 4)


def test_an_iterable_that_can_no_longer_go_to_a_place_is_named():
    class Plain(Counter):
        pass

    Plain.__name__ = "Loader"  # the class is a setting of the graph
    with pytest.raises(FailedPreconditionError, match="neither set_state nor load_state_dict"):
        continued(Loader(6), Plain(6))


def test_an_exception_carries_the_number_of_the_element():
    def generate():
        yield from (1, 2)
        raise KeyError("broken")

    iterator = iter(Dataset.from_iterable(generate()))
    assert [int(x) for x in itertools.islice(iterator, 2)] == [1, 2]
    with pytest.raises(KeyError, match="broken") as caught:
        next(iterator)
    assert caught.value.__notes__ == ["the generator raised this for element 2 of this iteration"]
