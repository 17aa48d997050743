"""Datasets of the rows of arrays."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.data import Dataset, TensorSpec
from ringlet.errors import InvalidArgumentError


def test_elements_are_the_rows_of_the_array_as_views_of_it():
    array = np.arange(6).reshape(3, 2)
    elements = list(Dataset.from_tensor_slices(array))
    np.testing.assert_array_equal(elements, array)
    assert all(np.shares_memory(element, array) for element in elements)


def test_rows_of_a_vector_are_scalars_of_its_dtype():
    assert [type(x) for x in Dataset.from_tensor_slices(np.array([1, 2], np.int16))] == [np.int16, np.int16]


def test_a_structure_of_arrays_gives_structures_of_rows():
    elements = list(Dataset.from_tensor_slices({"x": np.arange(2), "y": (["a", "b"], np.eye(2))}))
    assert [e["x"] for e in elements] == [0, 1]
    assert [e["y"][0] for e in elements] == ["a", "b"]
    np.testing.assert_array_equal(elements[1]["y"][1], [0, 1])


def test_a_list_of_arrays_is_one_array():
    assert Dataset.from_tensor_slices([np.zeros(3), np.ones(3)]).element_spec == TensorSpec([3], np.float64)


def test_arrays_of_length_zero_give_no_elements():
    dataset = Dataset.from_tensor_slices(np.zeros((0, 3)))
    assert len(dataset) == 0
    assert list(dataset) == list(dataset.shuffle(3).repeat().batch(2)) == []


def test_bytes_are_kept_whole():
    dataset = Dataset.from_tensor_slices([b"a\0", b"b"])
    assert list(dataset) == [b"a\0", b"b"]
    assert [x.tolist() for x in dataset.batch(2)] == [[b"a\0", b"b"]]


@pytest.mark.parametrize("value", [3, np.zeros(()), "text", (np.zeros(2), 1.5)])
def test_a_scalar_has_no_slices(value):
    with pytest.raises(InvalidArgumentError, match="is a scalar"):
        Dataset.from_tensor_slices(value)


def test_arrays_of_different_lengths_are_named_with_their_lengths():
    with pytest.raises(InvalidArgumentError, match=r"tensors\['a'\]: 3, tensors\['b'\]: 2"):
        Dataset.from_tensor_slices({"a": np.zeros(3), "b": np.zeros(2)})


@pytest.mark.parametrize("value", [(), {}, ((), {})])
def test_a_structure_without_arrays_is_refused(value):
    with pytest.raises(InvalidArgumentError, match="at least one array"):
        Dataset.from_tensor_slices(value)


def test_a_change_of_the_array_is_seen_because_nothing_is_copied():
    array = np.zeros(2)
    dataset = Dataset.from_tensor_slices(array)
    array[:] = 5
    assert list(dataset) == [5, 5]
