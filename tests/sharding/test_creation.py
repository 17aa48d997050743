"""Sharded arrays of plain ones."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.errors import ShardingError
from ringlet.sharding import Mesh, NamedSharding, PartitionSpec, Sharding, creation, device_put, mode, shard
from ringlet.sharding.creation import place
from ringlet.sharding.layout.device_group import DeviceGroup
from ringlet.sharding.layout.layout import WHOLE, Cut, Layout
from ringlet.testing import run_on_ranks

ROWS = Sharding.tiled((2, 1))


def test_an_ndarray_is_not_copied_and_anything_else_becomes_one():
    array = np.zeros((2, 3))
    assert shard(array, ROWS)._whole is array
    assert shard([[1, 2], [3, 4]], ROWS).shards[1].tolist() == [[3, 4]]
    assert shard(3.5, Sharding.replicated(2)).item() == 3.5


def test_devices_are_those_that_the_sharding_says_or_the_caller():
    assert shard(np.zeros(4), Sharding.parse("{replicated}"), num_devices=4)._group is DeviceGroup.of(4)
    mesh = Mesh({"x": 2, "y": 2})
    assert shard(np.zeros(4), mesh.sharding("y"))._group == mesh.group
    with pytest.raises(ShardingError, match="num_devices="):
        shard(np.zeros(4), Sharding.parse("{replicated}"))


def test_a_sharded_array_is_laid_out_anew():
    x = shard(np.arange(6).reshape(2, 3), ROWS)
    y = shard(x, Sharding.tiled((1, 2)))
    assert [tile.tolist() for tile in y.shards] == [[[0, 1], [3, 4]], [[2], [5]]]
    z = shard(x, Sharding.tiled((1, 3)))  # on other devices
    assert [tile.tolist() for tile in z.shards] == [[[0], [3]], [[1], [4]], [[2], [5]]]


@pytest.mark.parametrize("memory", ["shared", "copy"])
def test_the_first_part_of_a_partial_array_has_the_values(memory):
    with mode(memory):
        x = place(np.arange(3), Layout(4, (WHOLE,), Cut(2, (0, 1, 0, 1))), DeviceGroup.of(4))
        assert [x._tile(device).tolist() for device in range(4)] == [[0, 1, 2], [0, 0, 0]] * 2
        assert x.tolist() == [0, 1, 2]


@pytest.mark.parametrize("memory", ["shared", "copy"])
def test_each_process_keeps_the_part_of_its_devices_in_memory_of_its_own(memory):
    array = np.arange(8)

    def work(member):
        with mode(memory):
            mesh = Mesh({"x": 4}, member=member, owner=(0, 0, 1, 1))
            x = shard(array, mesh.sharding("x"))
            y = x * 2
            return [tile.tolist() for tile in y.shards], np.shares_memory(x._tile(2 * member.rank), array)

    assert run_on_ranks(2, work) == [([[0, 2], [4, 6]], False), ([[8, 10], [12, 14]], False)]


def test_a_masked_array_is_not_sharded_without_its_mask():
    with pytest.raises(TypeError, match="would lose its mask"):
        shard(np.ma.array([1, 2], mask=[0, 1]), Sharding.tiled((2,)))


@pytest.mark.parametrize("order", ["A", "K"])
def test_memory_of_each_device_is_in_the_order_of_what_was_given(order):
    whole = np.asfortranarray(np.arange(6).reshape(2, 3))
    for memory in ("shared", "copy"):
        with mode(memory):
            x = shard(whole, Sharding.tiled((2, 1)))
            assert np.ravel(x, order).tolist() == np.ravel(whole, order).tolist()


def test_versions_of_numpy_whose_dtypes_depend_on_values_are_refused(monkeypatch):
    monkeypatch.setattr(creation, "_IS_BEFORE_2", True)
    with pytest.raises(ImportError, match=r"NumPy 2\.0 or later"):
        shard(np.ones(2), Sharding.tiled((2,)))


def test_an_array_is_put_on_devices_as_in_jax():
    mesh = Mesh(np.arange(4).reshape(2, 2), ("x", "y"))
    x = device_put(np.arange(4.0), NamedSharding(mesh, PartitionSpec("y")))
    assert repr(x) == "float64[4] sharded ('y',) on Mesh(x=2, y=2)\n[0. 1. 2. 3.]"
    with pytest.raises(
        TypeError, match=r"or NamedSharding\(mesh, PartitionSpec\('x', None\)\), got PartitionSpec\('y'\)"
    ):
        device_put(np.arange(4.0), PartitionSpec("y"))
