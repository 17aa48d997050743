"""One dataset behind another."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.data import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Dataset, TensorSpec
from ringlet.data.graph.table import ArrayColumn
from ringlet.data.operations.concatenate import JoinedColumn

KNOWN, ENDLESS, UNKNOWN = Dataset.range(3), Dataset.range(3).repeat(), Dataset.range(3).filter(lambda x: True)


@pytest.mark.parametrize(
    ("first", "second", "cardinality"),
    [
        (KNOWN, KNOWN, 6),
        (KNOWN, ENDLESS, INFINITE_CARDINALITY),
        (UNKNOWN, ENDLESS, INFINITE_CARDINALITY),
        (KNOWN, UNKNOWN, UNKNOWN_CARDINALITY),
    ],
)
def test_the_cardinality_is_the_sum(first, second, cardinality):
    assert first.concatenate(second).cardinality() == cardinality


def test_a_batch_of_rows_spans_both():
    dataset = Dataset.from_tensor_slices(np.arange(3)).concatenate(Dataset.range(10, 14))
    assert [x.tolist() for x in dataset.batch(2)] == [[0, 1], [2, 10], [11, 12], [13]]
    assert sorted(int(x) for x in dataset.shuffle(99)) == [0, 1, 2, 10, 11, 12, 13]


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4], [4, 0, 3, 1], [3, 4], [1, 1], []])
def test_rows_of_two_columns_are_gathered_in_any_order(order):
    column = JoinedColumn(ArrayColumn(np.array([5, 6, 7])), ArrayColumn(np.array([8, 9])), 3)
    gathered = column.rows(np.array(order, np.int64))
    assert gathered.tolist() == [[5, 6, 7, 8, 9][i] for i in order]
    assert not gathered.flags.writeable


def test_text_of_the_second_keeps_its_length():
    dataset = Dataset.from_tensor_slices(["a"]).concatenate(Dataset.from_tensor_slices(["long"]))
    assert [x.tolist() for x in dataset.batch(2)] == [["a", "long"]]
    assert dataset.shuffle(2, seed=0).batch(2).get_single_element().tolist() in (["a", "long"], ["long", "a"])


def test_text_of_numpy_and_text_of_python_are_concatenated():
    dataset = Dataset.from_tensor_slices(["a", "b"]).concatenate(Dataset.from_list([b"c"]))
    assert dataset.element_spec == TensorSpec((), object)
    assert [x.tolist() for x in dataset.batch(3)] == [["a", "b", b"c"]]


def test_sizes_that_differ_are_unknown():
    dataset = Dataset.from_tensor_slices(np.zeros((1, 3))).concatenate(Dataset.from_tensor_slices(np.zeros((1, 4))))
    assert dataset.element_spec == TensorSpec([None], np.float64)
    assert [x.shape for x in dataset] == [(3,), (4,)]
    other_rank = Dataset.from_tensor_slices(np.zeros((1, 3, 2)))
    assert dataset.concatenate(other_rank).element_spec == TensorSpec(None, np.float64)


@pytest.mark.parametrize(
    "other",
    [
        Dataset.from_tensor_slices([1.5]),
        Dataset.zip(KNOWN, KNOWN),
        Dataset.from_tensors({"a": 1}),
        [1, 2],
    ],
)
def test_what_is_of_another_kind_is_refused(other):
    with pytest.raises(TypeError):
        KNOWN.concatenate(other)


def test_elements_of_functions_are_compared_when_the_spec_is_asked_for():
    dataset = KNOWN.concatenate(KNOWN.map(float))
    with pytest.raises(TypeError, match="incompatible"):
        _ = dataset.element_spec


def test_the_second_is_opened_when_the_first_has_ended():
    begun = []
    second = Dataset.range(2).map(lambda x: begun.append(int(x)) or x)
    iterator = iter(Dataset.range(2).map(lambda x: x).concatenate(second))
    assert [int(next(iterator)) for _ in range(2)] == [0, 1]
    assert begun == []
    assert [int(x) for x in iterator] == begun == [0, 1]


def test_a_shuffle_in_both_has_two_orders():
    shuffled = Dataset.range(50).shuffle(50, seed=1)
    elements = [int(x) for x in shuffled.concatenate(shuffled)]
    assert elements[:50] != elements[50:]
    assert sorted(elements[:50]) == sorted(elements[50:])


def test_a_cache_in_both_is_filled_once():
    cached = Dataset.range(50).shuffle(50).cache()
    elements = [int(x) for x in cached.concatenate(cached)]
    assert elements[:50] == elements[50:]


def test_a_long_chain_of_datasets_is_one_table():
    dataset = Dataset.range(1)
    for number in range(1, 100):
        dataset = dataset.concatenate(Dataset.range(number, number + 1))
    assert dataset.batch(100).get_single_element().tolist() == list(range(100))
