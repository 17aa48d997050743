"""What single replicas see of structures of distributed values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ringlet
from ringlet.values import Mirrored, PerReplica, check_components, select_replica, split_arguments
from tests.values.structures import Answer, Node, Sized, State


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


def test_distributed_values_inside_of_dataclasses_are_split():
    rows, keywords = split_arguments(
        ([Answer(PerReplica([1, 2]), "a")],), {"k": Sized(PerReplica(["x", "y"]).values)}, 2
    )
    assert [row[0][0] for row in rows] == [Answer(1, "a"), Answer(2, "a")]
    assert [named["k"].x for named in keywords] == [("x", "y")] * 2


def test_a_dataclass_without_distributed_values_is_shared_by_the_replicas():
    node = Node([1], [2])
    rows, _ = split_arguments((node, {"n": node}), {}, 2)
    assert all(row[0] is node for row in rows)
    assert all(row[1]["n"] is node for row in rows)


def test_an_object_that_contains_itself_is_an_argument_like_any_other():
    node = Node(1)
    node.neighbours.append(node)
    assert select_replica(0, [node])[0] is node


def test_values_of_another_strategy_are_found_inside_of_dataclasses():
    with pytest.raises(ValueError, match="with 3 components cannot be split over 2 replicas"):
        split_arguments((Answer(PerReplica([1, 2, 3])),), {}, 2)
    with pytest.raises(ValueError, match="merge_fn gave a PerReplica with 3 components for 2 replicas"):
        check_components([Answer(PerReplica([1, 2, 3]))], 2, "merge_fn gave")


def test_a_model_of_variables_is_shared_by_the_replicas():
    with ringlet.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
        model = Node(ringlet.Variable(np.ones(2)), [ringlet.Variable(1.0)])
    rows, _ = split_arguments((model, {"m": model}), {}, 2)
    assert all(row[0] is model and row[1]["m"] is model for row in rows)


@pytest.mark.parametrize("kind", [list, tuple, dict])
def test_rows_of_leaves_and_of_components_are_split_as_other_structures_are(kind):
    array = np.ones(1)

    def structure(*leaves: Any) -> Any:
        return dict(zip("bac", leaves, strict=False)) if kind is dict else kind(leaves)

    one, other = PerReplica([1, 2]), PerReplica([array, "text"])
    for given, expected in (
        (structure(array, "text", None), [structure(array, "text", None)] * 2),
        (structure(one, other), [structure(1, array), structure(2, "text")]),
        (structure(one, array, [other]), [structure(1, array, [array]), structure(2, array, ["text"])]),
        (structure(), [structure()] * 2),
    ):
        for value, wrapped in ((given, False), ([given], True)):
            rows, _ = split_arguments((value,), {}, 2)
            seen = [row[0][0] if wrapped else row[0] for row in rows]
            assert seen == expected
            assert [list(s) for s in seen] == [list(given)] * 2 or kind is not dict
            assert all(type(s) is kind for s in seen)


@pytest.mark.parametrize("wrap", [list, tuple, lambda values: dict(enumerate(values)), lambda values: [values]])
def test_a_component_too_many_in_a_row_is_refused(wrap):
    with pytest.raises(ValueError, match="with 3 components cannot be split over 2 replicas"):
        split_arguments((wrap([PerReplica([1, 2]), PerReplica([1, 2, 3])]),), {}, 2)
