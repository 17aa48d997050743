"""Between the structures of single replicas and structures of distributed values."""

from __future__ import annotations

import collections
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet import nest
from ringlet.values import Mirrored, PerReplica, regroup, select_replica, split_arguments

Point = collections.namedtuple("Point", ["x", "y"])


class State:
    def __init__(self, weights: Any) -> None:
        self.weights = weights


nest.register(State, lambda state: ((state.weights,), None), lambda _, children: State(*children))

shapes = st.recursive(
    st.just("leaf"),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.tuples(inner)
        | st.dictionaries(st.sampled_from("ab"), inner)
        | st.builds(Point, inner, inner)
    ),
    max_leaves=8,
)


def components(value: Any) -> Any:
    return value.values if isinstance(value, PerReplica) else value


# --- regroup --------------------------------------------------------------------------------------------------------


@given(shape=shapes, num_replicas=st.integers(1, 4))
def test_selecting_each_replica_undoes_regroup(shape, num_replicas):
    counter = iter(range(10**6))
    structures = [nest.map_structure(lambda _: (f"value {next(counter)}",)[0], shape) for _ in range(num_replicas)]
    grouped = regroup(structures)
    assert [select_replica(i, grouped) for i in range(num_replicas)] == structures


@pytest.mark.parametrize("same", [7, None, "text", np.arange(3), object()], ids=repr)
def test_the_identical_object_comes_back_as_itself(same):
    assert regroup([same, same]) is same


def test_equal_objects_are_not_identical():
    assert components(regroup([np.float32(1), np.float32(1)])) == (1, 1)


def test_identical_objects_are_wrapped_on_demand():
    assert components(regroup([7, 7], always_wrap=True)) == (7, 7)


def test_one_replica_gives_bare_values():
    array = np.ones(2)
    assert regroup([{"a": array}])["a"] is array


def test_components_may_be_wrapped_as_something_else():
    assert regroup([1.5, 2.5], Mirrored).values == (1.5, 2.5)


def test_structures_are_those_of_the_replicas():
    grouped = regroup([{"b": Point(1.5, [None]), "a": ()}, {"b": Point(2.5, [None]), "a": ()}])
    assert (components(grouped["b"].x), grouped["b"].y, grouped["a"]) == ((1.5, 2.5), [None], ())


def test_dictionaries_match_by_key_and_not_by_order():
    grouped = regroup([{"a": 1.5, "b": 2.5}, {"b": 4.5, "a": 3.5}])
    assert (components(grouped["a"]), components(grouped["b"])) == ((1.5, 3.5), (2.5, 4.5))


def test_registered_classes_are_structures():
    assert components(regroup([State(1.5), State(2.5)]).weights) == (1.5, 2.5)


@pytest.mark.parametrize(
    ("first", "second"),
    [((1,), (1, 2)), ([1], (1,)), ({"a": 1}, {"b": 1}), ((1,), 1), (Point(1, 2), (1, 2)), ([], [1])],
)
def test_structures_that_differ_are_refused_and_shown(first, second):
    with pytest.raises(ValueError, match=r"replica 0 .* replica 2 ") as caught:
        regroup([first, first, second])
    assert "different structures" in str(caught.value)


# --- select_replica and split_arguments -------------------------------------------------------------------------------


def test_selecting_shares_leaves_and_makes_new_containers():
    array = np.ones(2)
    structure = [array]
    selected = select_replica(0, structure)
    assert selected == [array]
    assert selected is not structure
    assert selected[0] is array


@pytest.mark.parametrize("kind", [PerReplica, Mirrored])
def test_every_replica_is_called_with_its_components(kind):
    rows, keywords = split_arguments((kind([1, 2]), "shared", [kind([3, 4])]), {"k": {"x": kind([5, 6])}}, 2)
    assert rows == [(1, "shared", [3]), (2, "shared", [4])]
    assert keywords == [{"k": {"x": 5}}, {"k": {"x": 6}}]


def test_distributed_values_inside_of_registered_classes_are_split():
    rows, _ = split_arguments((State(PerReplica([1, 2])),), {}, 2)
    assert [row[0].weights for row in rows] == [1, 2]


def test_replicas_do_not_share_containers():
    rows, _ = split_arguments(([1],), {}, 2)
    assert rows[0][0] is not rows[1][0]


@pytest.mark.parametrize("value", [PerReplica([1, 2, 3]), Mirrored([1]), {"a": PerReplica([1])}], ids=repr)
def test_a_value_of_another_number_of_replicas_is_refused(value):
    with pytest.raises(ValueError, match=r"with \d components cannot be split over 2 replicas"):
        split_arguments((value,), {}, 2)


def test_no_arguments_are_no_arguments_for_every_replica():
    rows, keywords = split_arguments((), {}, 3)
    assert [(list(row), dict(named)) for row, named in zip(rows, keywords, strict=True)] == [([], {})] * 3
