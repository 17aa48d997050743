"""Windows of elements."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.data import INFINITE_CARDINALITY, Dataset, TensorSpec
from ringlet.data.dataset_spec import DatasetSpec
from ringlet.errors import InvalidArgumentError
from tests.data.state_cases import through_a_file

KINDS = [lambda d: d, lambda d: d.map(lambda x: x)]

# (size, shift, stride), whether short ones are dropped: windows of range(7), as TensorFlow 2.21 gives them
WINDOWS = [
    ((3,), False, [[0, 1, 2], [3, 4, 5], [6]]),
    ((3,), True, [[0, 1, 2], [3, 4, 5]]),
    ((3, 1), True, [[0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, 5], [4, 5, 6]]),
    ((3, None, 2), False, [[0, 2, 4], [3, 5], [6]]),
    ((3, None, 2), True, [[0, 2, 4]]),
    ((3, 1, 2), False, [[0, 2, 4], [1, 3, 5], [2, 4, 6], [3, 5], [4, 6], [5], [6]]),
    ((3, 5), False, [[0, 1, 2], [5, 6]]),
    ((3, 5), True, [[0, 1, 2]]),
    ((3, 5, 2), False, [[0, 2, 4], [5]]),
    ((8,), False, [[0, 1, 2, 3, 4, 5, 6]]),
    ((8,), True, []),
    ((2, 3, 3), False, [[0, 3], [3, 6], [6]]),
    ((2, 9), False, [[0, 1]]),
]


def test_windows_of_elements_of_different_sizes_are_padded():
    rows = Dataset.from_list([[1], [2, 3], [4, 5, 6]])
    padded = rows.window(2).flat_map(lambda window: window.padded_batch(2))
    assert [x.tolist() for x in padded] == [[[1, 0], [2, 3]], [[4, 5, 6]]]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("arguments", "drop", "expected"), WINDOWS)
def test_windows_are_tensorflow_s(kind, arguments, drop, expected):
    dataset = kind(Dataset.range(7)).window(*arguments, drop_remainder=drop)
    assert [[int(x) for x in window] for window in dataset] == expected
    assert dataset.cardinality() == len(expected)


def test_an_endless_dataset_has_endless_windows():
    assert Dataset.range(2).repeat().window(3).cardinality() == INFINITE_CARDINALITY
    assert [int(x) for x in next(iter(Dataset.range(2).repeat().window(3)))] == [0, 1, 0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_window_is_a_dataset_like_any_other(kind):
    (window, _) = kind(Dataset.range(5)).window(3)
    assert len(window) == 3
    assert [int(x) for x in window.repeat(2)] == [0, 1, 2, 0, 1, 2]
    assert window.batch(3).get_single_element().tolist() == [0, 1, 2]


def test_the_spec_is_that_of_datasets():
    dataset = Dataset.range(7).batch(2).window(2)
    assert dataset.element_spec == DatasetSpec(TensorSpec([None], np.int64))
    inner = dataset.flat_map(lambda window: window)
    assert inner.element_spec == TensorSpec([None], np.int64)


@pytest.mark.parametrize("kind", [lambda d: d, lambda d: d.prefetch(2), lambda d: d.filter(lambda e: True)])
def test_windows_of_nests_are_nests_of_datasets(kind):
    dataset = kind(Dataset.from_tensor_slices({"a": np.arange(3), "b": np.arange(10, 13)})).window(2)
    first = next(iter(dataset))
    assert sorted(first) == ["a", "b"]
    assert [int(x) for x in first["b"]] == [10, 11]
    pairs = dataset.flat_map(lambda w: Dataset.zip(w).batch(2))
    assert [x["b"].tolist() for x in pairs] == [[10, 11], [12]]


def test_windows_of_rows_that_lie_together_are_views():
    rows = np.arange(12.0).reshape(6, 2)
    for window in Dataset.from_tensor_slices(rows).window(4, shift=1, drop_remainder=True):
        assert np.shares_memory(window.batch(4).get_single_element(), rows)


def test_windows_can_be_mapped_reduced_and_batched():
    windows = Dataset.range(7).window(3)
    assert [int(x) for x in windows.map(lambda w: w.reduce(0, lambda a, b: a + b))] == [3, 12, 6]
    assert [x.tolist() for x in windows.map(lambda w: w.batch(9)).flat_map(lambda w: w)] == [[0, 1, 2], [3, 4, 5], [6]]


def test_an_exception_in_front_of_a_window_loses_one_element():
    iterator = iter(Dataset.range(5).map(lambda x: 6 // int(x - 1)).window(2))
    with pytest.raises(ZeroDivisionError):
        next(iterator)
    assert [[int(x) for x in window] for window in iterator] == [[-6, 6], [3, 2]]


@pytest.mark.parametrize("kind", KINDS)
def test_an_iterator_inside_a_window_is_saved_with_the_window(kind):
    def open_it():
        return iter(kind(Dataset.range(9)).window(4, shift=3).flat_map(lambda w: w))

    iterator = open_it()
    for _ in range(6):
        next(iterator)
    state = through_a_file(iterator.get_state())
    restored = open_it()
    restored.set_state(state)
    assert list(restored) == list(iterator)


def test_the_spec_of_a_dataset_fits_datasets_of_that_kind():
    spec = Dataset.range(5).window(2).element_spec
    assert spec.is_compatible_with(Dataset.range(3))
    assert not spec.is_compatible_with(Dataset.range(3).batch(2))
    assert not spec.is_compatible_with(3)


@pytest.mark.parametrize("arguments", [(0,), (1, 0), (1, 1, 0), (-1,)])
def test_size_shift_and_stride_are_positive(arguments):
    with pytest.raises(InvalidArgumentError, match="greater than zero"):
        Dataset.range(7).window(*arguments)
