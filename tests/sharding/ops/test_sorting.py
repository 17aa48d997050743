"""Sorting, where lines lie on one device each."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.errors import GatherWarning
from ringlet.sharding import Mesh, ShardedArray, Sharding, explain, mode, shard

MESH = Mesh({"x": 2, "y": 2})
VALUES = np.random.default_rng(0).integers(0, 20, (5, 6, 3)).astype(float)
VALUES[0, 1] = np.nan
CALLS = {
    "sort": np.sort,
    "stable sort": lambda x, axis: np.sort(x, axis=axis, kind="stable"),
    "stable argsort": lambda x, axis: np.argsort(x, axis, "stable"),
    "partition": lambda x, axis: np.sort(np.partition(x, 1, axis), axis),
    "argpartition": lambda x, axis: np.take_along_axis(x, np.argpartition(x, [0, 2], axis=axis), axis).take(0, axis),
}


@pytest.mark.parametrize("memory", ["shared", "copy"])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_lines_that_are_not_cut_are_sorted_where_they_are(call, axis, memory):
    axes = [name if place != axis % 3 else None for place, name in enumerate(["x", "y", "x"])]
    axes = [axes[0], axes[1], None if "x" in axes[:2] else axes[2]]
    with mode(memory):
        x = shard(VALUES, MESH.sharding(*axes))
        with explain() as report:
            found = call(x, axis)
    assert isinstance(found, ShardedArray)
    assert report.nbytes == 0
    np.testing.assert_array_equal(found, call(VALUES, axis))


def test_an_array_is_sorted_in_place():
    x = shard(VALUES.copy(), MESH.sharding("x", "y"))
    with explain() as report:
        x.sort()
    np.testing.assert_array_equal(x, np.sort(VALUES))
    assert report.nbytes == 0


def test_a_sum_is_known_before_it_is_sorted():
    total = shard(VALUES, MESH.sharding(None, None, "x")).sum(axis=2)
    assert total._layout.is_partial
    np.testing.assert_array_equal(np.sort(total, axis=0), np.sort(VALUES.sum(axis=2), axis=0))


def test_lines_that_are_cut_are_gathered():
    x = shard(VALUES, MESH.sharding("x"))
    with pytest.warns(GatherWarning, match="np.sort"):
        np.testing.assert_array_equal(np.sort(x, 0), np.sort(VALUES, 0))
    with pytest.warns(GatherWarning, match="np.argsort"):
        np.testing.assert_array_equal(np.argsort(x, None), np.argsort(VALUES, None))


def test_structures_are_sorted_by_their_fields():
    records = np.array([[(2, 1.0), (1, 5.0), (2, 0.0)]] * 2, [("a", "i4"), ("b", "f8")])
    x = shard(records, MESH.sharding("x"))
    np.testing.assert_array_equal(np.sort(x, order="b"), np.sort(records, order="b"))


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda x: np.sort(x, 3), IndexError),
        (lambda x: np.sort(x, kind="other"), ValueError),
        (lambda x: np.partition(x, 3, 2), ValueError),
        (lambda x: np.sort(x, order="f"), ValueError),
        (lambda x: np.sort(x, axes=1), TypeError),
    ],
)
def test_nonsense_is_refused_as_by_numpy(call, error):
    with pytest.raises(error) as expected:
        call(VALUES)
    with pytest.raises(type(expected.value)) as caught:
        call(shard(VALUES, MESH.sharding("x")))
    assert not getattr(caught.value, "__notes__", [])


def test_what_lies_on_one_device_stays_there():
    x = shard(VALUES, Sharding.maximal(1, 3))
    assert np.sort(x).sharding == x.sharding
