"""Structures of arrays are taken apart as any others are, only sooner."""

from __future__ import annotations

from typing import Any

import numpy as np
import optree
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet import nest, structure_cache

keys = st.one_of(st.text(max_size=3), st.integers(-5, 5), st.tuples(st.integers(0, 2), st.integers(0, 2)))
leaves = st.integers(0, 99).map(np.array)
structures = st.one_of(
    st.dictionaries(keys, leaves, max_size=9), st.lists(leaves, max_size=9), st.lists(leaves, max_size=9).map(tuple)
)


def assert_as_walked(structure: Any) -> None:
    found, shape = nest.flatten(structure)
    expected, walked = optree.tree_flatten(structure, none_is_leaf=True, namespace=nest.NAMESPACE)
    assert all(one is other for one, other in zip(found, expected, strict=True))
    assert shape == walked
    again = nest.unflatten(shape, found)
    assert type(again) is type(structure)
    assert repr(again) == repr(nest.unflatten(walked, expected))


@given(structures)
def test_leaves_and_shapes_are_those_of_a_walk(structure):
    assert_as_walked(structure)
    assert_as_walked(structure)


@pytest.mark.parametrize(
    "structure",
    [
        3,
        None,
        [np.ones(1), 2, None, [np.ones(1)], (), {}],
        {"a": np.ones(1), "b": 2.5, "c": [np.ones(1)], "d": {}},
        dict.fromkeys([list, 4, 5, 6], np.ones(1)),
    ],
    ids=repr,
)
def test_other_structures_are_walked(structure):
    assert_as_walked(structure)


def test_the_order_of_keys_in_a_dictionary_is_kept():
    one = {name: np.array(0) for name in "dcba"}
    other = {name: np.array(0) for name in "abcd"}
    for structure in (one, other, one):
        leaves, shape = nest.flatten(structure)
        assert leaves[0] is structure["a"]
        assert list(nest.unflatten(shape, leaves)) == list(structure)


def test_keys_that_are_equal_and_differ_are_kept_apart():
    for keys in ((1, 2), (True, 2), (1.0, 2)):
        structure = dict.fromkeys(keys, np.array(0))
        leaves, shape = nest.flatten(structure)
        assert list(map(repr, nest.unflatten(shape, leaves))) == list(map(repr, keys))


def test_new_keys_in_every_step_do_not_fill_the_memory():
    for number in range(1000):
        nest.flatten({f"{number}-{i}": np.ones(1) for i in range(4)})
        nest.flatten([np.ones(1)] * number)
    assert len(structure_cache._dictionaries) <= 256
    assert structure_cache._row_shape.cache_info().currsize <= 2 * 257
