"""What goes through a dataset once."""

from __future__ import annotations

import pytest

from ringlet.data import Dataset
from ringlet.errors import FailedPreconditionError, InvalidArgumentError, OutOfRangeError


def test_the_end_is_stop_iteration_for_next_and_out_of_range_for_get_next():
    iterator = iter(Dataset.range(1))
    assert iterator.get_next() == 0
    for _ in range(2):
        with pytest.raises(StopIteration):
            next(iterator)
        with pytest.raises(OutOfRangeError, match="new iterator"):
            iterator.get_next()


def test_an_optional_has_a_value_until_the_end():
    iterator = iter(Dataset.range(2).batch(1))
    found = [iterator.get_next_as_optional() for _ in range(4)]
    assert [optional.has_value() for optional in found] == [True, True, False, False]
    assert found[1].get_value() == [1]


def test_leaving_the_context_closes_the_iterator():
    with iter(Dataset.range(5)) as iterator:
        next(iterator)
    assert list(iterator) == []


def test_a_new_iterator_starts_afresh():
    dataset = Dataset.range(3)
    next(iter(dataset))
    assert [int(x) for x in dataset.as_numpy_iterator()] == [0, 1, 2]


def test_an_iterator_knows_the_spec_of_its_elements():
    dataset = Dataset.range(3).batch(2)
    assert iter(dataset).element_spec == dataset.element_spec


def test_an_iterator_of_numpy_arrays_is_saved_and_restored():
    dataset = Dataset.range(6).shuffle(6, seed=1)
    iterator, later = dataset.as_numpy_iterator(), dataset.as_numpy_iterator()
    first = iterator.next()
    later.restore(iterator.save())
    rest = list(iterator)
    assert list(later) == rest
    assert sorted([first, *rest]) == [0, 1, 2, 3, 4, 5]
    with pytest.raises(FailedPreconditionError, match="another dataset"):
        Dataset.range(5).as_numpy_iterator().restore(iterator.save())
    with pytest.raises(InvalidArgumentError, match="got 3"):
        Dataset.range(5).as_numpy_iterator().restore(3)
