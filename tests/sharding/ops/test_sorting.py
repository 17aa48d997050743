"""Sorting, where lines lie on one device each."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.sharding import Mesh, ShardedArray, Sharding, explain, mode, shard, strict

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


@pytest.mark.parametrize("memory", ["shared", "copy"])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_tiles_of_lines_that_are_cut_move_to_another_dimension_and_back(call, memory):
    whole = np.concatenate([VALUES] * 2)[:8]
    with mode(memory), strict():
        x = shard(whole, MESH.sharding("x"))
        with explain() as report:
            found = call(x, 0)
        np.testing.assert_array_equal(found.numpy(), call(whole, 0))
    assert report.counts["all-to-all"] >= 2
    assert set(report.counts) == {"all-to-all"}


def test_a_sort_sends_each_half_once_and_back():
    x = shard(np.zeros((8, 6)), Sharding.tiled((2, 1)))
    with explain() as report:
        assert np.sort(x, 0).sharding == x.sharding
    assert [(each.kind, each.nbytes) for each in report.collectives] == [("all-to-all", 8 * 6 * 8 // 2)] * 2


LINES = {
    "numbers": np.random.default_rng(1).integers(0, 9, 53),
    "equal numbers": np.zeros(53, np.int8),
    "numbers and NaN": np.where(np.arange(53) % 7, np.random.default_rng(1).standard_normal(53), np.nan),
    "sorted backwards": np.arange(53.0)[::-1],
    "text": np.random.default_rng(2).integers(0, 200, 53).astype("U3"),
    "few": np.array([2, 1]),
    "none": np.empty(0),
}


@pytest.mark.parametrize("memory", ["shared", "copy"])
@pytest.mark.parametrize("axes", [("x",), (("x", "y"),), (("y", "x"),)])
@pytest.mark.parametrize("name", LINES)
def test_one_line_is_sorted_by_samples(name, axes, memory):
    line = LINES[name]
    with mode(memory), strict():
        x = shard(line.copy(), MESH.sharding(*axes))
        found, order = np.sort(x), np.argsort(x, kind="stable")
        assert found.sharding == order.sharding == x.sharding
        np.testing.assert_array_equal(found.numpy(), np.sort(line))
        np.testing.assert_array_equal(order.numpy(), np.argsort(line, kind="stable"))
        np.testing.assert_array_equal(np.partition(x, 0).numpy(), np.sort(line)) if line.size else None


def test_a_sample_sort_sends_little_more_than_the_line():
    line = np.random.default_rng(3).permutation(40000).astype(np.int32)
    x = shard(line, Sharding.tiled((4,)))
    with strict(), explain() as report:
        np.sort(x)
    assert line.nbytes // 2 < report.nbytes < 1.2 * line.nbytes


def test_keys_are_sorted_in_turn():
    keys = np.random.default_rng(4).integers(0, 3, (3, 20))
    x = shard(keys, MESH.sharding(None, "x"))
    with strict():
        np.testing.assert_array_equal(np.lexsort(x).numpy(), np.lexsort(keys))
        np.testing.assert_array_equal(np.lexsort((x[1], x[0])).numpy(), np.lexsort((keys[1], keys[0])))


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
