"""Datasets of the elements of a list."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.compat import tf
from ringlet.data import Dataset, TensorSpec
from ringlet.errors import InvalidArgumentError


def test_elements_keep_their_structure_and_order():
    dataset = Dataset.from_list([{"a": 1, "b": [1, 2]}, {"a": 2, "b": [3, 4]}])
    assert dataset.cardinality() == 2
    assert dataset.element_spec == {"a": TensorSpec([], np.int64), "b": TensorSpec([2], np.int64)}
    assert [(x["a"], x["b"].tolist()) for x in dataset] == [(1, [1, 2]), (2, [3, 4])]
    assert [x["b"].tolist() for x in dataset.batch(2)] == [[[1, 2], [3, 4]]]


def test_sizes_that_differ_are_unknown_and_the_others_stay():
    dataset = Dataset.from_list([(np.zeros((2, 5)), "a"), (np.ones((3, 5)), "b")])
    assert dataset.element_spec[0] == TensorSpec([None, 5], np.float64)
    assert dataset.cardinality() == 2
    assert [(x.shape, text) for x, text in dataset] == [((2, 5), "a"), ((3, 5), "b")]
    assert [x.shape for x, _ in dataset.padded_batch(2)] == [(2, 3, 5)]


@pytest.mark.parametrize("shapes", [(2, 2), (2, 3)])
def test_arrays_are_copied(shapes):
    arrays = [np.zeros(size) for size in shapes]
    dataset = Dataset.from_list(arrays)
    arrays[0][:] = 7
    assert next(iter(dataset)).tolist() == [0, 0]


def test_an_iterator_continues_where_its_state_was_taken():
    dataset = Dataset.from_list([[1], [2, 3], [4, 5, 6]])
    iterator, other = iter(dataset), iter(dataset)
    next(iterator)
    other.set_state(iterator.get_state())
    assert [x.tolist() for x in other] == [[2, 3], [4, 5, 6]]


@pytest.mark.parametrize("value", [[], (1, 2), 3, "ab", {"a": 1}, np.arange(3), [()]])
def test_only_lists_that_hold_arrays_are_taken(value):
    with pytest.raises(InvalidArgumentError, match="from_list requires"):
        Dataset.from_list(value)


@pytest.mark.parametrize("elements", [[1, 2.5], [1, "a"], [(1, 2), {"a": 1}]])
def test_structures_and_dtypes_must_be_the_same(elements):
    with pytest.raises(TypeError, match="Structures and dtypes must be equal"):
        Dataset.from_list(elements)


def test_the_compat_spelling_has_tensorflow_s_dtypes():
    dataset = tf.data.experimental.from_list([(1, 2.0), (3, 4.0)])
    assert [spec.dtype for spec in dataset.element_spec] == [tf.int32, tf.float32]
    assert list(dataset.as_numpy_iterator()) == [(1, 2.0), (3, 4.0)]
    assert tf.data.experimental.from_list([[1, 2], [3]]).element_spec.shape == (None,)
