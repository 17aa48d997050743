"""Datasets of one element."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.data import Dataset, DatasetSpec, NoneTensorSpec, TensorSpec
from ringlet.errors import InvalidArgumentError


def test_the_element_is_what_was_given():
    array = np.arange(6.0).reshape(2, 3)
    dataset = Dataset.from_tensors((array, {"a": [1, 2], "b": "text"}, b"bytes\0", 2.5))
    ((x, nest, text, number),) = dataset
    assert np.shares_memory(x, array)
    assert x.tolist() == array.tolist()
    assert (nest["a"].tolist(), nest["b"], text, number) == ([1, 2], "text", b"bytes\0", 2.5)
    assert len(dataset) == 1
    assert dataset.element_spec[0] == TensorSpec([2, 3], np.float64)
    assert dataset.element_spec[2] == TensorSpec([], np.object_)


def test_elements_cannot_be_written_to():
    assert not next(iter(Dataset.from_tensors(np.zeros(3)))).flags.writeable


def test_repeated_elements_are_batched():
    assert [x.tolist() for x in Dataset.from_tensors([1, 2]).repeat(3).batch(2)] == [[[1, 2], [1, 2]], [[1, 2]]]


@pytest.mark.parametrize("nothing", [(), {}, ({},), (None, None)])
def test_an_element_needs_an_array(nothing):
    with pytest.raises(InvalidArgumentError, match="requires at least one array"):
        Dataset.from_tensors(nothing)


def test_what_numpy_makes_only_objects_of_is_refused():
    with pytest.raises(TypeError, match="object"):
        Dataset.from_tensors(object())


def test_none_is_a_component_and_not_an_element():
    dataset = Dataset.from_tensors((1, {"b": None})).repeat(2)
    assert list(dataset) == [(1, {"b": None})] * 2
    assert dataset.element_spec == (TensorSpec([], np.int64), {"b": NoneTensorSpec()})
    with pytest.raises(InvalidArgumentError, match="Only components may be None"):
        Dataset.from_tensors(None)


def test_a_dataset_is_one_array_of_an_element():
    dataset = Dataset.from_tensors((1, Dataset.range(3)))
    assert dataset.element_spec == (TensorSpec([], np.int64), DatasetSpec(TensorSpec([], np.int64)))
    assert [int(x) for x in dataset.flat_map(lambda _, inner: inner.batch(3)).unbatch()] == [0, 1, 2]


def test_the_spec_of_a_dataset_calls_functions_only_when_it_is_asked_for():
    calls = []
    dataset = Dataset.from_tensors(Dataset.range(3).map(lambda x: (calls.append(x), x)[1]))
    assert calls == []
    assert dataset.element_spec == DatasetSpec(TensorSpec([], np.int64))
