"""Replicas that combine structures combine the same ones."""

from __future__ import annotations

import collections
from typing import Any

import numpy as np
import pytest

from ringlet import nest
from ringlet.errors import CollectiveMismatchError, InvalidArgumentError
from ringlet.strategy.api.structure_agreement import KindShape
from tests.strategy.replicas import assert_usable, mirrored, replica, replica_id


@pytest.mark.parametrize("num_calls_before", [0, 1, 2])
@pytest.mark.parametrize(
    ("first", "other"),
    [
        ({"w": 1.0}, {"b": 1.0}),
        ({"w": 1.0, "x": 2.0}, {"w": 1.0, "y": 2.0}),
        ([1.0, [2.0]], [[1.0], 2.0]),
        (np.ones(2), {"w": np.ones(2)}),
        ({"w": np.ones(2)}, np.ones(2)),
    ],
)
def test_structures_with_different_keys_are_refused(first, other, num_calls_before):
    def step() -> Any:
        for _ in range(num_calls_before):
            replica().all_reduce("SUM", 1.0)
        return replica().all_reduce("SUM", first if replica_id() == 0 else other)

    strategy = mirrored(3)
    with pytest.raises(CollectiveMismatchError, match=r"different structures: replica 0 .*\*.*, replica [12] .*\*"):
        strategy.run(step)
    assert_usable(strategy)


@pytest.mark.parametrize(
    ("first", "other"),
    [
        ([1.0, 2.0], (1.0, 2.0)),
        ({"a": 1.0, "b": 2.0}, {"b": 2.0, "a": 1.0}),
        (collections.defaultdict(lambda: 0, w=1.0), collections.defaultdict(lambda: 1, w=1.0)),
        (1.0, np.float64(1)),
    ],
)
def test_structures_that_name_the_same_places_are_combined(first, other):
    def step() -> list[float]:
        return nest.flatten(replica().all_reduce("SUM", first if replica_id() == 0 else other))[0]

    for sums in mirrored().run(lambda: sum(step())).values:
        assert sums == 2 * sum(nest.flatten(first)[0])


def test_structures_that_change_from_call_to_call_are_no_mismatch():
    def step() -> None:
        for i in range(50):
            replica().all_reduce("SUM", {str(i): np.ones(2)} if i % 3 else np.ones(2))

    assert mirrored(3).run(step) is None


def test_a_call_that_fails_on_one_replica_alone_does_not_shift_the_others():
    def step() -> None:
        if replica_id() == 1:
            with pytest.raises(InvalidArgumentError):
                replica().all_reduce("SUM", {"w": "text"})
        for name in "abc":
            replica().all_reduce("SUM", {name: 1.0})

    mirrored(3).run(step)


def test_shapes_with_kinds_are_equal_if_structure_and_kinds_are():
    tree, other = nest.flatten({"w": 1})[1], nest.flatten({"b": 1})[1]
    shape = KindShape(tree, ("torch.Tensor",))
    assert len({shape, KindShape(nest.flatten({"w": 2})[1], ("torch.Tensor",))}) == 1
    assert len({shape, KindShape(tree, ("jax.Array",)), KindShape(other, ("torch.Tensor",))}) == 3
    assert shape != tree
