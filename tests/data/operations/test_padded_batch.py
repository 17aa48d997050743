"""Batches of elements of different sizes."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.data import Dataset, TensorSpec
from ringlet.errors import DataLossError, InvalidArgumentError

RAGGED = Dataset.range(1, 5).map(lambda x: np.full(x, x))


def batches(*arguments, dataset=RAGGED, **keywords):
    return [x.tolist() for x in dataset.padded_batch(*arguments, **keywords)]


def test_elements_are_padded_to_the_longest_of_their_batch():
    expected = [[[1, 0], [2, 2]], [[3, 3, 3, 0], [4, 4, 4, 4]]]
    assert batches(2) == batches(2, [None]) == batches(2, [-1]) == batches(2, (None,)) == expected


def test_elements_are_padded_to_a_shape():
    assert batches(2, [5])[0] == [[1, 0, 0, 0, 0], [2, 2, 0, 0, 0]]


@pytest.mark.parametrize("value", [-1, np.int64(-1)])
def test_a_value_to_pad_with_may_be_given(value):
    assert batches(2, padding_values=value)[0] == [[1, -1], [2, 2]]


def test_a_short_batch_may_be_dropped():
    assert len(batches(3)) == 2
    assert batches(3, drop_remainder=True) == [[[1, 0, 0], [2, 2, 0], [3, 3, 3]]]
    assert RAGGED.padded_batch(3, drop_remainder=True).cardinality() == 1


def test_components_have_their_own_shapes_and_values():
    dataset = RAGGED.map(lambda x: (x, x.astype(np.float32)))
    first, second = next(iter(dataset.padded_batch(2, ([None], [3]), (None, 0.5))))
    assert first.tolist() == [[1, 0], [2, 2]]
    assert second.tolist() == [[1, 0.5, 0.5], [2, 2, 0.5]]
    assert second.dtype == np.float32


def test_one_value_counts_for_all_components():
    dataset = RAGGED.map(lambda x: {"a": x, "b": x * 2})
    assert next(iter(dataset.padded_batch(2, padding_values=9)))["b"].tolist() == [[2, 9], [4, 4]]


@pytest.mark.parametrize(
    ("make", "value", "expected"),
    [
        (lambda x: x.astype(str), None, [["1", ""], ["2", "2"]]),
        (lambda x: x.astype(str), "long", [["1", "long"], ["2", "2"]]),
        (lambda x: x.astype("S").astype(object), None, [[b"1", b""], [b"2", b"2"]]),
        (lambda x: x.astype("U").astype(object)[1:], None, [[""], ["2"]]),
        (lambda x: x > 1, None, [[False, False], [True, True]]),
        (lambda x: x > 1, True, [[False, True], [True, True]]),
        (lambda x: x + 1j, 7, [[1 + 1j, 7], [2 + 1j, 2 + 1j]]),
        (lambda x: x.astype(np.float16), 7, [[1, 7], [2, 2]]),
    ],
)
def test_every_dtype_is_padded(make, value, expected):
    assert batches(2, dataset=RAGGED.map(make), padding_values=value)[0] == expected


def test_several_dimensions_are_padded_at_their_ends():
    dataset = RAGGED.map(lambda x: np.full((len(x), 3), x[0]))
    assert batches(2, [-1, 4], dataset=dataset)[0] == [[[1, 1, 1, 0], [0] * 4], [[2, 2, 2, 0]] * 2]


def test_scalars_are_batched():
    assert batches(2, dataset=Dataset.range(3)) == batches(2, [], dataset=Dataset.range(3)) == [[0, 1], [2]]


def test_results_are_read_only():
    assert not next(iter(RAGGED.padded_batch(2))).flags.writeable


def test_the_spec_knows_the_sizes_that_were_given():
    assert RAGGED.padded_batch(2).element_spec == TensorSpec([None, None], np.int64)
    assert RAGGED.padded_batch(2, [5]).element_spec == TensorSpec([None, 5], np.int64)
    assert RAGGED.padded_batch(2, [5], drop_remainder=True).element_spec == TensorSpec([2, 5], np.int64)
    rows = Dataset.from_tensor_slices(np.zeros((4, 3)))
    assert rows.padded_batch(2).element_spec == TensorSpec([None, 3], np.float64)


def test_an_element_that_is_too_long_is_not_cut():
    with pytest.raises(DataLossError, match="which would truncate it"):
        batches(2, [1])


def test_an_element_must_have_as_many_dimensions_as_its_shape():
    dataset = RAGGED.map(lambda x: x if len(x) < 3 else x.reshape(1, -1))
    with pytest.raises(InvalidArgumentError, match="as many dimensions"):
        batches(3, dataset=dataset)


@pytest.mark.parametrize(
    ("keywords", "error"),
    [
        ({"padded_shapes": [3, 3]}, ValueError),
        ({"padded_shapes": [-2]}, ValueError),
        ({"padded_shapes": ([3], [3])}, ValueError),
        ({"padded_shapes": 3}, ValueError),
        ({"padded_shapes": 3.0}, ValueError),
        ({"padded_shapes": [3.0]}, TypeError),
        ({"padded_shapes": ["a"]}, TypeError),
        ({"padding_values": [1, 2]}, ValueError),
        ({"padding_values": 1.5}, TypeError),
        ({"padding_values": np.int32(7)}, TypeError),
        ({"padding_values": "x"}, TypeError),
        ({"padding_values": True}, TypeError),
    ],
)
def test_shapes_and_values_that_do_not_fit_are_refused_at_once_where_elements_are_known(keywords, error):
    with pytest.raises(error):
        Dataset.from_tensor_slices(np.zeros((4, 2), np.int64)).padded_batch(2, **keywords)
    with pytest.raises(error):
        batches(2, **keywords)


@pytest.mark.parametrize("size", [0, -1])
def test_a_batch_has_an_element(size):
    with pytest.raises(InvalidArgumentError, match="batch_size"):
        RAGGED.padded_batch(size)


def test_text_stays_text():
    assert batches(2, dataset=Dataset.from_tensor_slices([b"a", b"bc", b"d"])) == [[b"a", b"bc"], [b"d"]]


@pytest.mark.parametrize("is_first", [False, True])
def test_text_of_numpy_and_text_of_python_are_padded_together(is_first):
    dataset = Dataset.range(2).map(lambda x: np.array(["text"] * 2) if x == is_first else np.array(["a"], object))
    expected = [["text", "text"], ["a", "-"]]
    assert batches(2, padding_values="-", dataset=dataset) == [expected[::-1] if is_first else expected]


def test_a_function_that_raises_on_the_first_element_does_so_in_its_place():
    iterator = iter(Dataset.range(6).map(lambda x: np.zeros(6 // int(x))).padded_batch(2))
    with pytest.raises(ZeroDivisionError):
        next(iterator)
    assert [x.shape for x in iterator] == [(2, 6), (2, 2), (1, 1)]


@pytest.mark.parametrize("is_text_first", [True, False])
def test_text_is_not_padded_together_with_numbers(is_text_first):
    text, numbers = np.array(["a", "bb"], object), np.array([1], np.int32)
    dataset = Dataset.range(2).map(lambda x: text if (x == 0) == is_text_first else numbers).padded_batch(2)
    with pytest.raises(InvalidArgumentError, match="different dtypes"):
        list(dataset)


def test_bytes_of_different_lengths_are_padded_together():
    dataset = Dataset.range(2).map(lambda x: np.array([[b"a"], [b"bcd", b"e"]][int(x)]))
    (batch,) = dataset.padded_batch(2)
    assert (batch.dtype, batch.tolist()) == (np.dtype("S3"), [[b"a", b""], [b"bcd", b"e"]])
    (batch,) = dataset.padded_batch(2, padding_values=b"long")
    assert batch.tolist() == [[b"a", b"long"], [b"bcd", b"e"]]
