"""Digests: equal for equal structures, different for others."""

from __future__ import annotations

import enum

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import ringlet
from ringlet.rank_zero.value_digest import Leaf, ValueDigest

ml_dtypes = pytest.importorskip("ml_dtypes")


class Colour(enum.Enum):
    RED = 1


class Shade(enum.Enum):
    RED = 1


def digest(value):
    value_digest = ValueDigest(value)
    assert value_digest.error is None, value_digest.error
    return value_digest.digest


@given(array=hnp.arrays(st.sampled_from(["f4", "i8", "?", "c16"]), hnp.array_shapes(min_dims=0), elements={}))
def test_copies_are_equal_whatever_their_layout(array):
    assert digest(array) == digest(array.copy("F")) == digest([array][0][...])


DIFFERENT = [
    # one, another
    (np.zeros(3), np.zeros(4)),
    (np.zeros((2, 3)), np.zeros((3, 2))),
    (np.zeros(3), np.zeros(3, np.float32)),
    (np.zeros(3, np.int64), np.zeros(3)),
    (0.0, -0.0),
    (1, True),
    (1, 1.0),
    (2**70, 2**70 + 1),
    ("a", b"a"),
    ("1", 1),
    (None, "None"),
    (Colour.RED, Shade.RED),
    ([1, 2], [2, 1]),
    ({"a": 1}, {"b": 1}),
    ([1], 1),
    (np.array(["a"]), np.array(["b"])),
    (np.array(["2020-01-01"], "M8[D]"), np.array(["2020-01-02"], "M8[D]")),
    (np.ones(2, ml_dtypes.bfloat16), np.zeros(2, ml_dtypes.bfloat16)),
]


@pytest.mark.parametrize(("one", "another"), DIFFERENT, ids=repr)
def test_different_values_have_different_digests(one, another):
    assert digest(one) != digest(another)
    assert digest(one) == digest(one)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, ml_dtypes.bfloat16, np.float16])
def test_all_nans_count_as_one_value(dtype):
    one = np.array([1, np.nan, 2], np.complex64 if dtype is np.complex64 else np.float32).astype(dtype)
    other = one.copy()
    bits = other.view(np.uint8).reshape(3, -1)
    bits[1, 0] ^= 1  # another NaN
    assert digest(one) == digest(other)
    assert other.tobytes() != one.tobytes(), "the array itself is not changed"


def test_variables_and_slices_of_arrays_are_compared_by_what_they_hold():
    assert digest(ringlet.Variable([1.0, 2.0])) == digest(np.array([1.0, 2.0]))
    slices = ringlet.IndexedSlices(np.ones((2, 3)), np.array([0, 4]))
    assert list(ValueDigest({"s": slices}).leaves) == ["['s'].values", "['s'].indices"]


@pytest.mark.parametrize("value", [object(), {"a": {3}}, np.array([object()]), lambda: None])
def test_incomparable_values_are_an_error_with_a_remedy(value):
    assert "cannot be compared: use arrays, numbers, text" in str(ValueDigest(value).error)


def test_the_first_element_that_differs_is_found_in_any_piece():
    array = np.arange(5_000_000.0).reshape(5000, 1000)
    other = array.copy()
    other[4321, 7] = -1
    leaves = [Leaf("", array), Leaf("", other)]
    digests = [leaf.piece_digests() for leaf in leaves]
    assert len(digests[0]) <= 1024
    (number,) = [i for i, pair in enumerate(zip(*digests, strict=True)) if len(set(pair)) > 1]
    assert leaves[0].first_difference(number, [leaf.piece(number) for leaf in leaves]) == ((4321, 7), [4321007.0, -1.0])


def test_an_empty_array_has_one_piece():
    assert len(Leaf("", np.empty((0, 3))).piece_digests()) == 1
