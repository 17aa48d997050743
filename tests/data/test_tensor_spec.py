"""What specs say about arrays."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.data import PerReplicaSpec, TensorSpec


def test_specs_of_equal_shape_and_dtype_are_equal_and_hash_alike():
    assert TensorSpec([2, None], "int64") == TensorSpec((2, None), np.int64)
    assert len({TensorSpec([2], np.int64), TensorSpec((2,), "int64"), TensorSpec([2], np.int32)}) == 2
    assert TensorSpec(None, np.int64) != TensorSpec([], np.int64)


def test_a_spec_cannot_be_changed():
    with pytest.raises(AttributeError):
        TensorSpec([2], np.int64).shape = (3,)


@pytest.mark.parametrize(
    ("array", "shape", "dtype"),
    [
        # array, shape, dtype
        (np.zeros((2, 0), np.float32), (2, 0), np.float32),
        (np.int8(3), (), np.int8),
        (np.array(["long", "x"]), (2,), np.dtype("U")),
        (np.str_("text"), (), np.dtype("U")),
        ("text", (), np.object_),
        (b"text", (), np.object_),
        (np.zeros(2, ">f4"), (2,), np.float32),
        (7, (), np.int64),
        ([[1.5]], (1, 1), np.float64),
    ],
)
def test_a_spec_of_an_array_has_its_shape_and_its_dtype_without_byte_order_and_length_of_text(array, shape, dtype):
    assert TensorSpec.from_array(array) == TensorSpec(shape, dtype)


@pytest.mark.parametrize(
    ("shape", "is_fully_defined"), [((), True), ((3, 4), True), ((None,), False), ((2, None), False), (None, False)]
)
def test_a_shape_is_fully_defined_when_every_size_is_known(shape, is_fully_defined):
    assert TensorSpec(shape, np.int64).is_fully_defined is is_fully_defined


def test_a_batch_of_arrays_of_unknown_rank_has_an_unknown_rank():
    assert TensorSpec(None, np.int64).with_batch(4) == TensorSpec(None, np.int64)


@pytest.mark.parametrize(
    ("spec", "value", "is_compatible"),
    [
        # spec, value, is_compatible
        (TensorSpec([None, 3], np.int64), np.zeros((5, 3), np.int64), True),
        (TensorSpec([None, 3], np.int64), np.zeros((5, 3), np.int32), False),
        (TensorSpec([None, 3], np.int64), np.zeros(3, np.int64), False),
        (TensorSpec(None, np.int64), np.zeros(3, np.int64), True),
        (TensorSpec([2], np.int64), TensorSpec([None], np.int64), True),
        (TensorSpec([2], np.int64), TensorSpec([3], np.int64), False),
        (TensorSpec([], np.object_), "text", True),
    ],
)
def test_a_value_is_compatible_when_no_size_contradicts_and_the_dtype_is_the_same(spec, value, is_compatible):
    assert spec.is_compatible_with(value) is is_compatible


def test_a_per_replica_spec_lists_the_specs_in_the_order_of_the_replicas():
    one, two = TensorSpec([1], np.int64), TensorSpec([2], np.int64)
    assert PerReplicaSpec(one, two).value_specs == (one, two)
    assert PerReplicaSpec(one, two) == PerReplicaSpec(one, two) != PerReplicaSpec(two, one)
