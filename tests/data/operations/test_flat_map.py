"""Datasets that a function makes, one behind another."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.data import UNKNOWN_CARDINALITY, Dataset, TensorSpec
from tests.data.state_cases import through_a_file


def test_the_elements_of_all_datasets_come_one_dataset_behind_another():
    assert [int(x) for x in Dataset.range(5).flat_map(Dataset.range)] == [0, 0, 1, 0, 1, 2, 0, 1, 2, 3]


def test_a_tuple_comes_as_several_arguments():
    dataset = Dataset.zip(Dataset.range(3), Dataset.range(2, 5)).flat_map(Dataset.range)
    assert [int(x) for x in dataset] == [0, 1, 1, 2, 2, 3]


def test_the_spec_is_that_of_the_inner_datasets_and_the_cardinality_unknown():
    dataset = Dataset.range(3).flat_map(lambda x: Dataset.from_tensors((x, np.zeros(2))))
    assert dataset.element_spec == (TensorSpec([], np.int64), TensorSpec([2], np.float64))
    assert dataset.cardinality() == UNKNOWN_CARDINALITY


def test_sizes_that_depend_on_unknown_sizes_are_unknown():
    batches = Dataset.range(8).batch(4)
    assert batches.flat_map(Dataset.from_tensors).element_spec == TensorSpec([None], np.int64)
    assert batches.flat_map(Dataset.from_tensor_slices).element_spec == TensorSpec([], np.int64)


def test_the_function_is_called_as_elements_are_asked_for():
    calls = []
    iterator = iter(Dataset.range(3).flat_map(lambda x: calls.append(int(x)) or Dataset.range(2)))
    assert calls == []
    next(iterator), next(iterator)
    assert calls == [0]


def test_an_exception_names_its_element_and_iteration_goes_on_behind_it():
    iterator = iter(Dataset.range(3).flat_map(lambda x: Dataset.range(6 // int(x - 1) + 7)))
    assert next(iterator) == 0
    with pytest.raises(ZeroDivisionError) as caught:
        next(iterator)
    assert "map_func" in caught.value.__notes__[0]
    assert "element 1" in caught.value.__notes__[0]
    assert len(list(iterator)) == 13


def test_an_exception_in_an_inner_dataset_loses_one_element_only():
    iterator = iter(Dataset.range(2).flat_map(lambda x: Dataset.range(3).map(lambda y: 6 // int(y - 1))))
    found = []
    for _ in range(6):
        try:
            found.append(int(next(iterator)))
        except ZeroDivisionError:
            found.append("error")
    assert found == [-6, "error", 6] * 2


@pytest.mark.parametrize("answer", [3, (Dataset.range(1), Dataset.range(1)), np.zeros(2), None])
def test_the_function_must_give_a_dataset(answer):
    with pytest.raises(TypeError, match="must return a Dataset"):
        list(Dataset.range(2).flat_map(lambda x: answer))
    with pytest.raises(TypeError, match="requires a function"):
        Dataset.range(2).flat_map(answer)


def test_closing_closes_the_inner_dataset():
    closed = []

    class Source:
        def __iter__(self):
            try:
                yield from range(5)
            finally:
                closed.append(True)

    with iter(Dataset.range(2).flat_map(lambda x: Dataset.from_iterable(Source()))) as iterator:
        next(iterator)
    assert closed == [True]


def test_a_shuffle_that_the_function_did_not_make_gives_each_dataset_another_order():
    inner = Dataset.range(30).shuffle(30, seed=1)
    elements = [int(x) for x in Dataset.range(2).flat_map(lambda _: inner)]
    assert elements[:30] != elements[30:]


@pytest.mark.parametrize("at", [1, 3, 6])
def test_a_shuffle_that_the_function_did_not_make_goes_on_where_it_was_saved(at):
    inner = Dataset.range(6).shuffle(6)
    dataset = Dataset.range(4).flat_map(lambda _: inner)
    iterator, restored = iter(dataset), iter(dataset)
    for _ in range(at):
        next(iterator)
    restored.set_state(through_a_file(iterator.get_state()))
    assert list(restored) == list(iterator)


def test_the_inner_dataset_of_the_example_can_be_looked_at():
    node = Dataset.range(3).flat_map(lambda x: Dataset.range(5)).node
    assert node.inner_example.cardinality == 5
    assert node.inner_example is node.inner_example
