"""Elements put together."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.data.graph.stacking import stack
from ringlet.errors import InvalidArgumentError


@pytest.mark.parametrize(
    "leaf",
    [
        np.float32(2.5),
        np.int8(3),
        np.bool_(True),
        np.datetime64("2020-01-01"),
        np.zeros((2, 3), np.float16),
        np.zeros((0, 3)),
        np.zeros((3, 0), np.int16),
        np.array(["a", "b"]),
        np.arange(4, dtype=">i4"),
    ],
)
def test_leaves_are_stacked_as_numpy_stacks_them(leaf):
    stacked, expected = stack([leaf, leaf, leaf]), np.stack([leaf, leaf, leaf])
    np.testing.assert_array_equal(stacked, expected)
    assert stacked.dtype == expected.dtype
    assert not stacked.flags.writeable


def test_text_of_numpy_may_differ_in_length():
    assert stack([np.str_("a"), np.str_("longer")]).tolist() == ["a", "longer"]
    assert stack([np.array(["a"]), np.array(["longer"])]).tolist() == [["a"], ["longer"]]


def test_text_of_python_becomes_an_array_of_objects():
    stacked = stack([b"a\0", b"longer"])
    assert stacked.dtype == object
    assert stacked.tolist() == [b"a\0", b"longer"]


@pytest.mark.parametrize("other", ["b", b"b", np.bytes_(b"b")])
def test_text_of_numpy_and_of_python_becomes_an_array_of_objects(other):
    assert stack([np.str_("a"), other]).tolist() == ["a", other]
    stacked = stack([np.array(["a", "c"]), np.array([other, other], object)])
    assert stacked.dtype == object
    assert stacked.tolist() == [["a", "c"], [other, other]]


def test_every_leaf_of_a_structure_is_stacked():
    stacked = stack([{"a": (np.int64(i), np.full(2, i))} for i in range(3)])
    np.testing.assert_array_equal(stacked["a"][0], [0, 1, 2])
    np.testing.assert_array_equal(stacked["a"][1], [[0, 0], [1, 1], [2, 2]])


def test_different_shapes_are_named_with_component_and_element():
    with pytest.raises(InvalidArgumentError, match=r"component 1 \(element\[1\]\).*\[8\].*element 2 has shape \[7\]"):
        stack([(np.int64(0), np.zeros(8)), (np.int64(0), np.zeros(8)), (np.int64(0), np.zeros(7))])


def test_different_dtypes_are_named_instead_of_promoted():
    with pytest.raises(InvalidArgumentError, match="component 0: the first element is int64, element 1 is float64"):
        stack([np.int64(1), np.float64(1.5)])


def test_different_structures_are_named():
    with pytest.raises(InvalidArgumentError, match="element 1"):
        stack([{"a": 1}, {"b": 1}])
