"""Elements that are batches, as rows."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.data import TensorSpec
from ringlet.data.graph.batch_rows import empty_like_spec, example_rows, join_rows, num_rows, zeros_like_spec
from ringlet.errors import InvalidArgumentError


def test_all_arrays_have_the_rows_of_a_batch():
    assert num_rows(np.zeros((3, 2))) == num_rows((np.zeros(3), {"x": np.zeros((3, 1))})) == 3


@pytest.mark.parametrize("batch", [np.float64(1), "text", (np.zeros(2), 1)])
def test_what_has_no_rows_is_refused(batch):
    with pytest.raises(InvalidArgumentError, match="must be non-scalar"):
        num_rows(batch)


def test_arrays_of_different_lengths_are_named():
    with pytest.raises(InvalidArgumentError, match=r"element\['a'\]: 2, element\['b'\]: 3"):
        num_rows({"a": np.zeros(2), "b": np.zeros(3)})


def test_joined_rows_are_read_only():
    joined = join_rows([np.zeros((1, 2)), np.ones((2, 2))])
    assert joined.shape == (3, 2)
    assert not joined.flags.writeable


def test_rows_of_different_shapes_cannot_be_joined():
    with pytest.raises(InvalidArgumentError, match=r"\(1, 2\), \(1, 3\)"):
        join_rows([np.zeros((1, 2)), np.zeros((1, 3))])


def test_an_empty_array_follows_its_spec_as_far_as_that_goes():
    empty = empty_like_spec(TensorSpec([4, None, 2], np.int8))
    assert (empty.shape, empty.dtype, empty.flags.writeable) == ((0, 0, 2), np.int8, False)
    assert empty_like_spec(TensorSpec(None, np.int8)).shape == (0,)


def test_an_example_has_as_many_rows_as_are_wanted():
    example = example_rows((np.array([[1, 2]]), np.zeros((0, 3))), 2)
    assert [array.tolist() for array in example] == [[[1, 2]] * 2, [[0.0] * 3] * 2]


def test_zeros_of_text_are_empty_text():
    assert zeros_like_spec(TensorSpec([], object)) == b""
    assert zeros_like_spec(TensorSpec([None, 2], object)).tolist() == [[b"", b""]]
    assert example_rows(np.empty((0, 2), object), 3).tolist() == [[b"", b""]] * 3
