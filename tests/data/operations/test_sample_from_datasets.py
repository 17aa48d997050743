"""Elements of datasets drawn at random."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.data import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Dataset
from ringlet.errors import InvalidArgumentError
from tests.data.state_cases import through_a_file

SMALL, LARGE = Dataset.from_tensor_slices([1, 2]), Dataset.from_tensor_slices([10, 20, 30])


def sample(*arguments, **keywords):
    return [int(x) for x in Dataset.sample_from_datasets([SMALL, LARGE], *arguments, **keywords)]


def test_all_elements_come_once_each_dataset_s_in_their_order():
    elements = sample(seed=1)
    assert [x for x in elements if x < 10] == [1, 2]
    assert [x for x in elements if x >= 10] == [10, 20, 30]
    assert sample(seed=1) == elements


def test_weights_say_how_often_a_dataset_is_drawn():
    endless = [Dataset.from_tensors(0).repeat(), Dataset.from_tensors(1).repeat()]
    drawn = Dataset.sample_from_datasets(endless, [0.2, 0.8], seed=3).batch(2000).take(1).get_single_element()
    assert 0.76 < drawn.mean() < 0.84


@pytest.mark.parametrize("weight", [0.0, -1.0])
def test_a_dataset_without_weight_is_left_out(weight):
    assert sample([weight, 1.0]) == [10, 20, 30]
    assert sample([0.0, weight]) == []


def test_it_may_end_with_the_first_dataset_that_does():
    elements = sample([0.99, 0.01], seed=1, stop_on_empty_dataset=True)
    assert elements[-2:] == [1, 2] or 30 in elements


def test_orders_change_where_that_was_asked_for():
    def orders(changes):
        many = [Dataset.range(30), Dataset.range(100, 130)]
        dataset = Dataset.sample_from_datasets(many, seed=2, rerandomize_each_iteration=changes)
        return [[int(x) for x in dataset] for _ in range(2)]

    assert orders(False)[0] == orders(False)[1] == orders(None)[0]
    assert orders(True)[0] != orders(True)[1]


def test_the_cardinality_is_that_of_what_nothing_ends():
    endless = SMALL.repeat()
    assert Dataset.sample_from_datasets([endless, LARGE]).cardinality() == INFINITE_CARDINALITY
    stops = Dataset.sample_from_datasets([endless, LARGE], stop_on_empty_dataset=True)
    assert stops.cardinality() == UNKNOWN_CARDINALITY
    assert Dataset.sample_from_datasets([SMALL, LARGE]).cardinality() == UNKNOWN_CARDINALITY
    assert Dataset.sample_from_datasets([SMALL, LARGE], [0.0, 1.0]).cardinality() == 3


def test_an_iterator_goes_on_where_it_was_saved_without_a_seed():
    def open_it():
        return iter(Dataset.sample_from_datasets([Dataset.range(30), Dataset.range(100, 130)]))

    iterator = open_it()
    next(iterator), next(iterator)
    restored = open_it()
    restored.set_state(through_a_file(iterator.get_state()))
    assert list(restored) == list(iterator)


@pytest.mark.parametrize(
    ("weights", "error"), [([1.0], ValueError), ([1, 0], TypeError), (np.ones((2, 1)), ValueError)]
)
def test_there_are_as_many_weights_as_datasets(weights, error):
    with pytest.raises(error, match="weights"):
        sample(weights)
    with pytest.raises(ValueError, match="empty"):
        Dataset.sample_from_datasets([])


ENDLESS = [Dataset.from_tensors(0).repeat(), Dataset.from_tensors(1).repeat()]


def weighted(rows, datasets=None, **keywords):
    weights = Dataset.from_tensor_slices(np.array(rows))
    return Dataset.sample_from_datasets(datasets or [SMALL, LARGE], weights, **keywords)


def test_a_dataset_of_weights_has_those_of_each_draw():
    assert list(weighted([[1.0, 0.0], [0.0, 0.5], [-1.0, 2.0], [3.0, 0.0]])) == [1, 10, 20, 2]


def test_a_dataset_that_has_ended_is_passed_over_or_ends_all():
    rows = [[1.0, 0.0]] * 3 + [[0.0, 1.0]]
    assert list(weighted(rows)) == [1, 2, 10]
    assert list(weighted(rows, stop_on_empty_dataset=True)) == [1, 2]


def test_draws_follow_the_weights_of_their_element():
    rows = [[0.9, 0.1], [0.1, 0.9]] * 1000
    drawn = np.array(list(weighted(rows, ENDLESS, seed=3)))
    assert 0.05 < drawn[::2].mean() < 0.15
    assert 0.85 < drawn[1::2].mean() < 0.95
    assert drawn.tolist() == list(weighted(rows, ENDLESS, seed=3))


def test_weights_that_never_end_have_no_end():
    weights = Dataset.from_tensors([0.5, 0.5]).repeat()
    assert Dataset.sample_from_datasets(ENDLESS, weights).cardinality() == INFINITE_CARDINALITY
    assert weighted([[0.5, 0.5]], ENDLESS).cardinality() == UNKNOWN_CARDINALITY


@pytest.mark.parametrize("row", [[1.0], [1.0, 2.0, 3.0], [0.0, 0.0], [np.nan, 1.0], [[1.0], [1.0]]])
def test_weights_of_a_draw_are_one_for_each_dataset_and_one_is_positive(row):
    with pytest.raises(InvalidArgumentError, match="weight"):
        list(weighted([row]))


def test_weights_of_a_draw_are_floats():
    with pytest.raises(TypeError, match="floats"):
        list(weighted([[1, 0]]))


def test_draws_by_weights_go_on_from_a_state():
    dataset = weighted([[0.5, 0.5]] * 50, ENDLESS)
    iterator, later = iter(dataset), iter(dataset)
    first = [next(iterator) for _ in range(20)]
    later.set_state(through_a_file(iterator.get_state()))
    assert len(first) == 20
    assert list(later) == list(iterator)
