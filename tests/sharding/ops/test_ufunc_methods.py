"""The methods ``at`` and ``outer``; values and dtypes are in the sweep of operations."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.errors import ShardingError
from ringlet.sharding import Mesh, Sharding, explain, mode, shard
from ringlet.testing import run_on_ranks

VALUES = np.arange(12.0).reshape(4, 3)
SHARDINGS = [Sharding.tiled((2, 1)), Sharding.tiled((1, 2)), Sharding.replicated(2), Sharding.maximal(1, 2)]
PLACES = (np.array([[0, 3], [3, 1]]), np.array([2, 0]))


@pytest.mark.parametrize("memory", ["shared", "copy"])
@pytest.mark.parametrize("sharding", SHARDINGS)
def test_places_and_values_may_be_sharded_and_come_in_order(sharding, memory):
    expected = VALUES.copy()
    np.power.at(expected, PLACES, [[2, 3], [0.5, 1]])  # the order of equal places shows
    with mode(memory):
        x = shard(VALUES.copy(), sharding)
        values = shard(np.array([[2, 3], [0.5, 1]]), SHARDINGS[1])
        np.power.at(x, (shard(PLACES[0], SHARDINGS[0]), PLACES[1]), values)
        np.testing.assert_array_equal(x.numpy(), expected)
        plain = VALUES.copy()
        np.power.at(plain, PLACES, values)
        np.testing.assert_array_equal(plain, expected)


def test_what_reads_the_memory_keeps_its_values():
    x = shard(VALUES.copy(), SHARDINGS[0])
    y = x[1:]
    np.add.at(x, slice(None), 1)
    np.testing.assert_array_equal(y.numpy(), VALUES[1:])
    with pytest.raises(ShardingError, match="read-only"):
        np.add.at(y, 0, 1)


def test_values_that_lie_on_one_device_are_sent_to_the_others():
    x, values = shard(VALUES.copy(), SHARDINGS[0]), shard(np.ones(3), Sharding.maximal(0, 2))
    with explain() as report:
        np.add.at(x, 0, values)
    assert [operation.name for operation in report.operations] == ["add.at"]
    assert report.nbytes == 24


def test_an_outer_product_lies_as_its_factors_do():
    mesh = Mesh({"x": 2, "y": 2})
    x, y = (shard(np.arange(4), mesh.sharding(axis)) for axis in "xy")
    found = np.multiply.outer(x, y)
    np.testing.assert_array_equal(found.numpy(), np.multiply.outer(np.arange(4), np.arange(4)))
    assert found.sharding == mesh.sharding("x", "y").for_ndim(2)


def test_processes_change_the_places_that_they_have():
    def work(member):
        x = shard(VALUES.copy(), Mesh({"x": 2}, member=member, owner=(0, 1)).sharding("x"))
        np.subtract.at(x, PLACES, 1)
        return x.tolist()

    expected = VALUES.copy()
    np.subtract.at(expected, PLACES, 1)
    assert run_on_ranks(2, work) == [expected.tolist()] * 2


@pytest.mark.parametrize("key", [(), ..., True])
def test_a_single_number_is_changed_in_place_where_each_device_has_its_own(key):
    with mode("copy"):
        x = shard(np.array(2.0), Sharding.replicated(2))
        np.add.at(x, key, 3)
    assert [float(each) for each in x.shards] == [5, 5]
