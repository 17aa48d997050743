"""Between the structures of single replicas and structures of distributed values."""

from __future__ import annotations

import collections
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ringlet
from ringlet import nest
from ringlet.values import Mirrored, PerReplica, leaf_columns, regroup, select_replica
from tests.values.structures import Answer, Node, Sized, State

Point = collections.namedtuple("Point", ["x", "y"])

shapes = st.recursive(
    st.just("leaf"),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.tuples(inner)
        | st.dictionaries(st.sampled_from("ab"), inner)
        | st.builds(Point, inner, inner)
        | st.builds(Answer, inner, inner)
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


@pytest.mark.parametrize("same", [7, None, "text", np.arange(3), object()])
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
    [
        (Answer([1]), Answer((1,))), (Answer(1), Node(1)), (Answer(1), 1),
        ((1,), (1, 2)), ([1], (1,)), ({"a": 1}, {"b": 1}), ((1,), 1), (Point(1, 2), (1, 2)), ([], [1]),
    ],
)  # fmt: skip
def test_structures_that_differ_are_refused_and_shown(first, second):
    with pytest.raises(ValueError, match=r"replica 0 .* replica 2 ") as caught:
        regroup([first, first, second])
    assert "different structures" in str(caught.value)


def test_structures_that_differ_are_written_as_their_containers_are():
    with pytest.raises(
        ValueError,
        match=r"replica 0 has \{'a': \(\*, \*\)\}, replica 1 has Answer\(loss=\*, parts=\*\), where \*",
    ):
        regroup([{"a": (1, 2)}, Answer(1, 2)])


def test_dataclasses_are_structures_of_their_fields():
    grouped = regroup([{"a": [Answer(1.5, Point("same", ()))]}, {"a": [Answer(2.5, Point("same", ()))]}])
    (answer,) = grouped["a"]
    assert type(answer) is Answer
    assert components(answer.loss) == (1.5, 2.5)
    assert answer.parts == Point("same", ())


def test_fields_that_are_computed_are_regrouped_like_others():
    grouped = regroup([Sized("a"), Sized("bc")])
    assert (components(grouped.x), components(grouped.size)) == (("a", "bc"), (1, 2))


def test_the_identical_dataclass_comes_back_as_itself():
    answer = Answer(np.ones(2))
    assert regroup([(answer, 1.5), (answer, 2.5)])[0] is answer


def test_an_object_that_contains_itself_is_a_leaf():
    nodes = [Node(1.5), Node(2.5)]
    for node in nodes:
        node.neighbours.append(node)
    assert components(regroup(nodes)) == tuple(nodes)


@pytest.mark.parametrize("order", [lambda i: i, lambda i: 1 - i, lambda i: 0])
def test_components_of_a_variable_become_the_variable(order):
    with ringlet.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
        variable = ringlet.Variable(np.ones(2))
        other = ringlet.Variable(np.ones(2))
    answers = [[variable.values[order(i)], Answer(variable.values[order(i)])] for i in range(2)]
    grouped = regroup(answers)
    assert grouped[0] is variable
    assert grouped[1].loss is variable
    assert regroup([variable, variable]) is variable
    assert type(regroup([variable.values[0], other.values[1]])) is PerReplica


class Table(dict):
    pass


class Stack(list):
    pass


def test_subclasses_of_containers_keep_their_class():
    grouped = regroup([Table(a=Stack([1.5])), Table(a=Stack([2.5]))])
    assert (type(grouped), type(grouped["a"]), components(grouped["a"][0])) == (Table, Stack, (1.5, 2.5))


def test_default_dictionaries_keep_what_makes_their_values():
    grouped = regroup([collections.defaultdict(list, a=1.5), collections.defaultdict(list, a=2.5)])
    assert (grouped.default_factory, components(grouped["a"])) == (list, (1.5, 2.5))


@pytest.mark.parametrize("make", [lambda x: {x}, lambda x: iter([x]), Exception])
def test_sets_generators_and_other_objects_are_leaves(make):
    values = [make(1.5), make(2.5)]
    assert components(regroup(values)) == tuple(values)


@pytest.mark.parametrize("kind", [list, tuple, dict])
@pytest.mark.parametrize("always_wrap", [False, True])
def test_rows_of_leaves_are_grouped_as_other_structures_are(kind, always_wrap):
    same, arrays = np.ones(1), [np.zeros(1), np.zeros(1), np.zeros(1)]

    def structure(*leaves: Any) -> Any:
        return dict(zip("bac", leaves, strict=False)) if kind is dict else kind(leaves)

    answers = [structure(same, array, "text") for array in arrays]
    for grouped in (
        regroup(answers, always_wrap=always_wrap),
        *regroup([[a] for a in answers], always_wrap=always_wrap),
    ):
        assert type(grouped) is kind
        assert kind is not dict or list(grouped) == ["b", "a", "c"]
        first, second, third = grouped.values() if kind is dict else grouped
        assert [components(second)[i] is array for i, array in enumerate(arrays)] == [True] * 3
        assert (components(first), components(third)) == (
            ((same,) * 3, ("text",) * 3) if always_wrap else (same, "text")
        )


def test_a_structure_in_the_place_of_a_leaf_is_a_component():
    grouped = regroup([[1.5, 2.5], [[1], (2,)]])
    assert [components(leaf) for leaf in grouped] == [(1.5, [1]), (2.5, (2,))]
    assert components(regroup([{"a": 1.5}, {"a": {}}])["a"]) == (1.5, {})


def test_leaves_are_given_in_columns():
    columns, shape = leaf_columns([{"b": 1, "a": [2]}, {"a": [4], "b": 3}], "anything")
    assert (columns, nest.unflatten(shape, "xy")) == ([(2, 4), (1, 3)], {"b": "y", "a": ["x"]})
    with pytest.raises(
        ValueError, match=r"anything got different structures: replica 0 has \[\*\], replica 2 has \(\*,\)"
    ):
        leaf_columns([[1], [1], (1,)], "anything")
