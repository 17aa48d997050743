"""The devices that arrays lie on together."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import ringlet
from ringlet.errors import ShardingError
from ringlet.sharding import Mesh, Sharding, shard
from ringlet.sharding.creation import place
from ringlet.sharding.layout.device_group import DeviceGroup, common_group
from ringlet.sharding.layout.layout import Layout
from ringlet.testing import run_on_ranks


def test_the_first_devices_of_a_process_are_the_same_object_each_time():
    assert DeviceGroup.of(4) is DeviceGroup.of(4)
    assert DeviceGroup.of(4).local_devices == (0, 1, 2, 3)


def test_names_make_no_difference():
    named = DeviceGroup(2, ("one", "other"))
    assert named == DeviceGroup.of(2)
    assert hash(named) == hash(DeviceGroup.of(2))
    assert named != DeviceGroup.of(3)


def test_operations_take_arrays_of_several_replicas():
    first, other = (DeviceGroup(2, ("one", "other"), replica=replica) for replica in (0, 3))
    assert first != other
    assert first.joined(other) is other
    assert other.joined(first) is first


def test_a_process_has_the_devices_that_it_owns():
    def devices(member):
        return DeviceGroup(3, ("a", "b", "c"), member, owner=(0, 1, 0)).local_devices

    assert run_on_ranks(2, devices) == [(0, 2), (1,)]


def test_a_group_goes_with_one_that_has_places_in_a_topology():
    topology = ringlet.cluster_resolver.TPUClusterResolver(accelerator_type="v4-8").topology
    one, other = (
        ringlet.tpu.DeviceAssignment(topology, assignment)
        for assignment in ([[[0, 0, 0, 0], [0, 0, 0, 1]]], [[[0, 1, 0, 0], [0, 1, 0, 1]]])
    )
    plain, placed = DeviceGroup.of(2), DeviceGroup(2, ("a", "b"), assignment=one)
    assert plain.joined(placed) is placed.joined(plain) is placed
    assert placed.joined(DeviceGroup(2, ("a", "b"), assignment=other)) is None
    assert placed.joined(DeviceGroup.of(3)) is None
    x, y = shard(np.ones(4), Sharding.tiled((2,))), place(np.ones(4), Layout.replicated(2, 1), placed)
    assert (x + y)._group is placed
    assert shard(y, Sharding.tiled((2,)))._group is placed


def test_arrays_on_different_groups_are_named_with_what_was_called():
    x, y = (shard(np.zeros(4), Sharding.tiled((count,))) for count in (2, 4))
    assert common_group("add", [x, x]) is DeviceGroup.of(2)
    with pytest.raises(ShardingError, match="add was given arrays on different device groups: 2 devices, and 4 devic"):
        x + y
    with pytest.raises(ShardingError, match="subtract was given"):
        np.subtract(x, 1, out=y)


def test_a_group_says_how_many_processes_have_its_devices():
    member = SimpleNamespace(rank=0, num_ranks=2)
    groups = [Mesh({"x": 2}, member=member, owner=owner).group for owner in ([0, 1], [0, 0])]
    assert list(map(str, groups)) == ["2 devices of 2 processes", "2 devices of 1 process"]
