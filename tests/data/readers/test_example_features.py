from __future__ import annotations

import numpy as np
import pytest

from ringlet.data import FixedLenFeature, FixedLenSequenceFeature, VarLenFeature
from ringlet.errors import InvalidArgumentError


@pytest.mark.parametrize("dtype", [bytes, object, "string", np.dtype("S3")])
def test_bytes_have_several_names(dtype):
    assert VarLenFeature(dtype) == VarLenFeature(bytes)


@pytest.mark.parametrize("dtype", [np.float64, np.int32, bool, str])
def test_dtypes_that_no_example_has_are_refused(dtype):
    with pytest.raises(InvalidArgumentError, match="int64, float32 or bytes"):
        FixedLenFeature([], dtype)


def test_unknown_sizes_are_refused_with_what_takes_any_number():
    with pytest.raises(InvalidArgumentError, match=r"got \[None\]. For any number of values, use VarLenFeature"):
        FixedLenFeature([None], np.int64)
    with pytest.raises(InvalidArgumentError, match="must not be empty, got shape"):
        FixedLenSequenceFeature([0], np.int64, allow_missing=True)


def test_a_default_value_has_as_many_values_as_the_feature():
    assert FixedLenFeature([2, 1], np.int64, [1, 2]).default_value.tolist() == [[1], [2]]
    assert FixedLenFeature([], bytes, "é").default_value.item() == "é".encode()
    with pytest.raises(InvalidArgumentError, match=r"has 1 values, but the feature has shape \[2\]"):
        FixedLenFeature([2], np.int64, 0)
