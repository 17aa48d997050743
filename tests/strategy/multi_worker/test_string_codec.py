"""The codec of arrays of text."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.errors import InvalidArgumentError
from ringlet.strategy.multi_worker.cross_worker_ops import text_from_bytes, text_to_bytes


@given(items=st.lists(st.one_of(st.text(max_size=9), st.binary(max_size=9)), max_size=6))
def test_strings_and_bytes_come_back_as_they_were(items):
    array = np.empty(len(items), object)
    array[:] = items
    found = text_from_bytes(text_to_bytes(array))
    assert found.tolist() == items
    assert [type(item) for item in found.tolist()] == [type(item) for item in items]


@pytest.mark.parametrize("array", [np.array([["a", "bc"]]), np.array([b"a", b"bc"]), np.empty((0, 3), "U5")])
def test_shape_and_dtype_are_kept(array):
    found = text_from_bytes(text_to_bytes(array))
    assert (found.shape, found.dtype) == (array.shape, array.dtype)
    np.testing.assert_array_equal(found, array)


def test_other_objects_are_refused_by_their_type():
    with pytest.raises(InvalidArgumentError, match="array of object that holds NoneType, dict between processes"):
        text_to_bytes(np.array([None, {}, "a"], object))
