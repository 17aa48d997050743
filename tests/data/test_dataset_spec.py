"""The spec of datasets among elements."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.data import Dataset, TensorSpec
from ringlet.data.dataset_spec import DatasetSpec
from ringlet.errors import InvalidArgumentError


def test_it_is_equal_where_elements_are():
    assert DatasetSpec(TensorSpec([], np.int64)) == DatasetSpec(TensorSpec([], np.int64))
    assert DatasetSpec(TensorSpec([], np.int64)) != DatasetSpec(TensorSpec([1], np.int64))


def test_it_has_no_dimension_and_nothing_unknown():
    spec = Dataset.range(3).batch(2).window(2).element_spec
    assert spec.shape == ()
    assert spec.is_fully_defined
    assert spec.dtype == object


def test_a_batch_of_datasets_is_an_array_of_datasets():
    windows = Dataset.range(5).window(2)
    assert windows.batch(2).element_spec == DatasetSpec(TensorSpec([], np.int64), [None])
    batches = windows.batch(2, drop_remainder=True)
    assert batches.element_spec == DatasetSpec(TensorSpec([], np.int64), (2,))
    assert [[[int(x) for x in window] for window in batch] for batch in batches] == [[[0, 1], [2, 3]]]
    assert batches.unbatch().element_spec == windows.element_spec
    assert [int(x) for x in batches.unbatch().flat_map(lambda window: window)] == [0, 1, 2, 3]


def test_a_list_of_datasets_has_slices():
    dataset = Dataset.from_tensor_slices([Dataset.range(3).batch(3), Dataset.range(2).batch(2)])
    assert dataset.element_spec == DatasetSpec(TensorSpec([None], np.int64))
    assert [int(x.sum()) for x in dataset.flat_map(lambda inner: inner)] == [3, 1]


def test_one_dataset_has_no_slices():
    with pytest.raises(InvalidArgumentError, match=r"is a dataset: .*Dataset\.from_tensors"):
        Dataset.from_tensor_slices(Dataset.range(3))


@pytest.mark.parametrize(
    ("value", "is_compatible"),
    [
        (Dataset.range(4).batch(2, drop_remainder=True), True),
        (Dataset.range(4).batch(2), True),
        (Dataset.range(4), False),
        (Dataset.range(4).map(lambda x: (x, None)), False),
        (DatasetSpec(TensorSpec([2], np.int64)), True),
        (DatasetSpec(TensorSpec([2], np.int64), [2]), False),
        (3, False),
        (None, False),
    ],
)
def test_it_is_compatible_where_the_specs_of_elements_are(value, is_compatible):
    assert DatasetSpec(TensorSpec([None], np.int64)).is_compatible_with(value) is is_compatible


def test_datasets_whose_elements_differ_do_not_follow_each_other():
    with pytest.raises(TypeError, match="incompatible"):
        Dataset.from_tensors(Dataset.range(3)).concatenate(Dataset.from_tensors(Dataset.from_tensors(1.5)))


def test_datasets_are_not_padded_and_not_made_numpy_arrays():
    with pytest.raises(TypeError, match="not an array"):
        Dataset.range(4).window(2).padded_batch(2)
    with pytest.raises(TypeError, match="flat_map"):
        list(Dataset.range(4).window(2).as_numpy_iterator())


def test_a_state_holds_datasets_and_arrays_of_datasets():
    dataset = Dataset.range(8).window(2).batch(2).prefetch(2).shuffle(2, seed=1)
    iterator, later = iter(dataset), iter(dataset)
    later.set_state(iterator.get_state())
    assert [[[int(x) for x in window] for window in batch] for batch in later] == [
        [[int(x) for x in window] for window in batch] for batch in iterator
    ]
