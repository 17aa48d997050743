"""Nested structures are taken apart in a known order and put together as they were."""

from __future__ import annotations

import collections
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet import nest

Point = collections.namedtuple("Point", ["x", "y"])

structures = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=2), inner, max_size=3)
        | st.builds(Point, inner, inner)
    ),
    max_leaves=12,
)


@dataclass
class State:
    weights: Any
    name: str


nest.register(State, lambda s: ((s.weights,), s.name), lambda name, children: State(children[0], name))


@given(structure=structures)
def test_unflatten_gives_back_what_flatten_took_apart(structure):
    leaves, shape = nest.flatten(structure)
    assert nest.unflatten(shape, leaves) == structure


def test_dictionaries_are_walked_in_the_order_of_their_keys():
    assert nest.flatten({"b": 1, "a": 2, "c": 0})[0] == [2, 1, 0]


def test_dictionaries_keep_the_order_in_which_they_were_written():
    assert list(nest.map_structure(lambda x: x, {"b": 1, "a": 2})) == ["b", "a"]


def test_none_is_a_leaf():
    assert nest.flatten((None, [None]))[0] == [None, None]


def test_named_tuples_keep_their_type():
    assert nest.map_structure(lambda x: -x, Point(1, 2)) == Point(-1, -2)


@pytest.mark.parametrize("leaf", [None, 0, 1.5, "text", b"bytes", np.zeros(3), object(), {1, 2}], ids=repr)
def test_anything_else_is_a_leaf(leaf):
    assert not nest.is_nested(leaf)
    assert nest.flatten(leaf)[0] == [leaf] or nest.flatten(leaf)[0][0] is leaf


@pytest.mark.parametrize("structure", [[], (), {}, [1], Point(1, 2), collections.OrderedDict(), collections.deque()])
def test_containers_are_nested_even_when_empty(structure):
    assert nest.is_nested(structure)


def test_a_registered_class_is_a_structure():
    state = State({"w": np.ones(2)}, "layer")
    assert nest.is_nested(state)
    doubled = nest.map_structure(lambda x: 2 * x, state)
    assert (doubled.weights["w"].tolist(), doubled.name) == ([2, 2], "layer")


def test_a_class_can_be_registered_once():
    with pytest.raises(ValueError, match="already registered"):
        nest.register(State, lambda s: ((), None), lambda rest, children: State(0, ""))


def test_map_structure_walks_several_structures_together():
    assert nest.map_structure(lambda a, b: (a, b), {"x": 1, "y": [2]}, {"y": [4], "x": 3}) == {
        "x": (1, 3),
        "y": [(2, 4)],
    }


@pytest.mark.parametrize("other", [(1, 2, 3), [1, 2], 5, (1, (2, 3), 4)])
def test_another_structure_is_refused(other):
    with pytest.raises(ValueError, match=r"[Ee]xpected"):
        nest.same_structure_leaves(nest.flatten((1, 2))[1], other)


def test_where_the_shape_has_a_leaf_anything_may_stand():
    assert nest.same_structure_leaves(nest.flatten((1, 2))[1], ([5], {"a": 6})) == [[5], {"a": 6}]
