"""Into how many shards a variable is cut; recorded cases are in tests/conformance."""

from __future__ import annotations

import math

import ml_dtypes  # noqa: F401  # bfloat16 by its name
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.values.variables.partitioner import (
    FixedShardsPartitioner,
    MaxSizePartitioner,
    MinSizePartitioner,
    Partitioner,
)

shapes = st.lists(st.integers(1, 50), min_size=1, max_size=3)
DTYPES = ["float32", "int64", "int8", "bool", "bfloat16"]


@given(shape=shapes, most=st.integers(1, 4096), dtype=st.sampled_from(DTYPES))
def test_shards_of_a_maximal_size_are_no_larger_unless_a_row_is(shape, most, dtype):
    rows, row_bytes = shape[0], math.prod(shape[1:]) * {"float32": 4, "int64": 8, "bfloat16": 2}.get(dtype, 1)
    [shards, *others] = MaxSizePartitioner(most)(shape, dtype)
    assert set(others) <= {1}
    assert math.ceil(rows / shards) * row_bytes <= max(most, row_bytes)


@given(shape=shapes, least=st.integers(1, 4096), most=st.integers(1, 20))
def test_shards_of_a_minimal_size_are_no_more_than_their_bytes_allow(shape, least, most):
    [shards, *_] = MinSizePartitioner(least, most)(shape, "float32")
    assert 1 <= shards <= min(most, shape[0])
    assert (shards - 1) * least < math.prod(shape) * 4


@pytest.mark.parametrize("partitioner", [FixedShardsPartitioner(2), MinSizePartitioner(), MaxSizePartitioner(8)])
@pytest.mark.parametrize(("shape", "axis"), [((), 0), ((4, 4), 2), ((4, 4), -3)])
def test_an_axis_that_a_shape_does_not_have_is_named(partitioner, shape, axis):
    with pytest.raises(ValueError, match=rf"Cannot partition variable along axis {axis} when shape is only \("):
        partitioner(shape, "float32", axis=axis)


@pytest.mark.parametrize("partitioner", [FixedShardsPartitioner(2), MinSizePartitioner(), MaxSizePartitioner(8)])
@pytest.mark.parametrize("shape", [None, (None, 3), (3, None)])
def test_a_shape_that_is_not_known_is_refused(partitioner, shape):
    with pytest.raises(ValueError, match="shape is not fully defined"):
        partitioner(shape, "float32")


def test_a_number_is_the_only_size_of_a_shape():
    assert MinSizePartitioner(8, max_shards=4)(5, "float32") == [3]


@pytest.mark.parametrize("partitioner", [MinSizePartitioner(), MaxSizePartitioner(8)])
def test_a_dtype_is_asked_for_where_sizes_are_bytes(partitioner):
    with pytest.raises(TypeError, match="dtype is what the variable holds, got None"):
        partitioner((3, 4), None)


@pytest.mark.parametrize("shape", [(0, 5), (5, 0)])
def test_what_has_no_elements_is_one_shard_however_small_shards_are_to_be(shape):
    assert MaxSizePartitioner(1)(shape, "float32") == [1, 1]


@pytest.mark.parametrize("dtype", ["<U7", "S3", object])
def test_text_counts_as_many_bytes_as_are_given_for_it(dtype):
    assert MaxSizePartitioner(32, bytes_per_string=16)((6,), dtype) == [3]
    assert MinSizePartitioner(32, 10, bytes_per_string=16)((6,), dtype) == [3]


def test_a_limit_of_zero_shards_is_none_as_in_tensorflow():
    assert MaxSizePartitioner(4, max_shards=0)((6, 1), "float32") == [6, 1]


def test_the_base_says_what_it_lacks():
    with pytest.raises(NotImplementedError, match="lacks __call__"):
        Partitioner()((1,), "float32")
