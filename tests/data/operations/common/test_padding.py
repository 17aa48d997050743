"""Padding of components."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ringlet.data import TensorSpec
from ringlet.data.operations.common.padding import Padding
from ringlet.errors import InvalidArgumentError

arrays = hnp.arrays(np.int64, hnp.array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=4), elements=st.just(1))


@given(st.lists(arrays, min_size=1, max_size=4))
def test_every_array_stands_in_its_corner_and_the_rest_is_padding(found):
    (padded,) = [Padding.of(TensorSpec([None, None], np.int64), None, 7).batch(found)]
    assert padded.shape[1:] == tuple(max(a.shape[axis] for a in found) for axis in range(2))
    for row, array in zip(padded, found, strict=True):
        assert (row[: array.shape[0], : array.shape[1]] == array).all()
        assert row.sum() == array.sum() + 7 * (row.size - array.size)


def test_elements_of_another_structure_or_dtype_are_refused():
    padding = Padding.of(TensorSpec([None], np.int64), None, None)
    with pytest.raises(InvalidArgumentError, match="different structure"):
        padding.batch([np.zeros(1), (np.zeros(1), np.zeros(2))])
    with pytest.raises(InvalidArgumentError, match="different dtypes"):
        padding.batch([np.zeros(1), np.zeros(1, np.int64)])


def test_a_number_of_dimensions_that_nobody_knows_must_be_given():
    with pytest.raises(ValueError, match="requires padded_shapes"):
        Padding.of(TensorSpec(None, np.int64), None, None)
    assert Padding.of(TensorSpec(None, np.int64), [None], None).components[0].shape == (None,)
