"""Nested structures: order of the leaves, and rebuilding."""

from __future__ import annotations

import collections
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import optree
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


@pytest.mark.parametrize("leaf", [None, 0, 1.5, "text", b"bytes", np.zeros(3), object(), {1, 2}])
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


def test_an_entry_at_a_leaf_may_be_any_object():
    assert nest.same_structure_leaves(nest.flatten((1, 2))[1], ([5], {"a": 6})) == [[5], {"a": 6}]


@pytest.mark.parametrize(
    ("structure", "text"),
    [(1, "*"), ({"b": [1, ()], "a": Point(1, None)}, "{'b': [*, ()], 'a': Point(x=*, y=*)}"), ([0] * 1000, "[*, *, ")],
)
def test_a_shape_is_written_as_its_containers_are(structure, text):
    written = nest.describe(nest.flatten(structure)[1])
    assert written.startswith(text)
    assert len(written) <= 500


def test_a_shape_that_cannot_be_written_that_way_is_written_otherwise():
    class Broken(list):
        def __repr__(self) -> str:
            raise RuntimeError

    assert "Broken" in nest.describe(nest.flatten(Broken([1]))[1])


# --- classes that are learnt as they come ---------------------------------------------------------------------------


def test_a_class_that_was_seen_as_a_structure_can_still_be_registered_otherwise():
    @dataclass
    class Late:
        weights: Any
        name: str

    assert nest.flatten(Late(1, "a"))[0] == [1, "a"]
    nest.register(Late, lambda late: ((late.weights,), late.name), lambda name, children: Late(children[0], name))
    assert nest.flatten(Late(1, "a"))[0] == [1]
    assert nest.flatten_containers(Late(1, "a"))[0] == [1]
    assert not nest.is_composite(Late(1, "a"))


def test_a_class_that_was_seen_as_a_leaf_can_still_be_registered():
    class Late:
        def __init__(self, x):
            self.x = x

    assert not nest.is_nested(Late(1))
    nest.register(Late, lambda late: ((late.x,), None), lambda _, children: Late(*children))
    assert nest.flatten([Late(1)])[0] == nest.flatten_containers([Late(1)])[0] == [1]


@pytest.mark.parametrize("namespace", ["ringlet", optree.registry.__dict__["__GLOBAL_NAMESPACE"]])
def test_classes_registered_with_optree_itself_are_structures(namespace):
    class Registered:
        def __init__(self, x):
            self.x = x

    optree.register_pytree_node(
        Registered, lambda r: ((r.x,), None), lambda _, children: Registered(*children), namespace=namespace
    )
    assert nest.is_nested(Registered(1))
    assert nest.flatten([Registered(1)])[0] == nest.flatten_containers([Registered(1)])[0] == [1]


def test_classes_made_without_end_are_not_remembered_without_end():
    before = len(nest._seen)
    for _ in range(nest._MOST_SEEN + 100):
        assert not nest.is_nested(type("Leaf", (), {})())
    assert len(nest._seen) <= nest._MOST_SEEN + 1
    assert before <= nest._MOST_SEEN + 1
    assert nest.flatten_containers([State(1, "a"), 5])[0] == [1, 5]


def test_many_threads_may_flatten_a_new_class_at_once():
    for _ in range(20):
        new = type("New", (list,), {})
        barrier = threading.Barrier(4)

        def walk(new=new, barrier=barrier):
            barrier.wait(timeout=20)
            return nest.flatten([new([1])])[0]

        with ThreadPoolExecutor(4) as pool:
            assert [future.result(timeout=20) for future in [pool.submit(walk) for _ in range(4)]] == [[1]] * 4


def test_a_structure_that_contains_itself_is_an_error():
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(RecursionError):
        nest.flatten(loop)


keys = st.one_of(st.text(max_size=3), st.integers(-5, 5), st.tuples(st.integers(0, 2), st.integers(0, 2)))
leaves = st.integers(0, 99).map(np.array)
cached_structures = st.one_of(
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


@given(cached_structures)
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
    assert len(nest._dictionaries) <= 256
    assert nest._row_shape.cache_info().currsize <= 2 * 257
