"""Structures of arrays are taken apart as any others are, only sooner."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet import nest
from ringlet.strategy import flat

keys = st.one_of(st.text(max_size=3), st.integers(-5, 5), st.tuples(st.integers(0, 2), st.integers(0, 2)))
leaves = st.integers(0, 99).map(np.array)
structures = st.one_of(
    st.dictionaries(keys, leaves, max_size=9), st.lists(leaves, max_size=9), st.lists(leaves, max_size=9).map(tuple)
)


def assert_as_walked(structure: Any) -> None:
    found, shape = flat.flatten(structure)
    expected, walked = nest.flatten(structure)
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
        leaves, shape = flat.flatten(structure)
        assert leaves[0] is structure["a"]
        assert list(nest.unflatten(shape, leaves)) == list(nest.unflatten(*reversed(nest.flatten(structure))))


def test_new_keys_in_every_step_do_not_fill_the_memory():
    for number in range(1000):
        flat.flatten({f"{number}-{i}": np.ones(1) for i in range(4)})
        flat.flatten([np.ones(1)] * number)
    assert len(flat._dictionaries) <= 256
    assert len(flat._sequences) <= 256
