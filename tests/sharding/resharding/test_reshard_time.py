"""Predicted times of collectives."""

from __future__ import annotations

import numpy as np
import pytest

import ringlet
from ringlet.sharding import Mesh, Sharding, shard
from ringlet.sharding.layout.device_group import DeviceGroup
from ringlet.sharding.resharding.collective_record import Collective
from ringlet.sharding.resharding.reshard_time import hops_of, timed

TOPOLOGY = ringlet.tpu.Topology.from_accelerator_type("v4-16")
ASSIGNMENT = ringlet.tpu.DeviceAssignment.build(TOPOLOGY, num_replicas=2, computation_shape=[1, 2, 2, 1])
ALL = (0, 1, 2, 3)


def group(replica: int = 0) -> DeviceGroup:
    return DeviceGroup(4, tuple("abcd"), assignment=ASSIGNMENT, replica=replica)


@pytest.mark.parametrize(
    ("kind", "name", "sent"),
    [
        # ours, the cost model's, bytes that all four send together for 1 MB as the cost model counts them
        ("all-reduce", "all_reduce", 6e6),
        ("all-gather", "all_gather", 3e6),
        ("reduce-scatter", "reduce_scatter", 3e6),
        ("all-to-all", "all_to_all", 0.75e6),
        ("broadcast", "broadcast", 3e6),
    ],
)
def test_a_collective_takes_what_the_cost_model_says(kind, name, sent):
    collective = timed(Collective(kind, (1,), "float32", (ALL,), nbytes=int(sent)), group(1))
    assert collective.seconds == pytest.approx(ASSIGNMENT.cost(name, 1e6, groups=[[4, 5, 6, 7]]).seconds)


def test_groups_work_at_the_same_time():
    halves = Collective("all-gather", (1,), "float32", ((0, 1), (2, 3)), nbytes=2_000_000)
    one = Collective("all-gather", (1,), "float32", ((0, 1),), nbytes=1_000_000)
    assert timed(halves, group()).seconds == timed(one, group()).seconds


@pytest.mark.parametrize("kind", ["collective-permute", "point-to-point"])
def test_messages_take_longer_the_more_bytes_they_have(kind):
    small, large = (
        timed(Collective(kind, (1,), "float32", pairs=((0, 1), (2, 3)), nbytes=nbytes), group()).seconds
        for nbytes in (1000, 1_000_000)
    )
    assert 0 < small < large


def test_what_one_device_gathers_takes_as_long_as_the_messages():
    gather = timed(Collective("gather", (1,), "float32", ((2, 0, 1, 3),), nbytes=300), group())
    pairs = timed(Collective("point-to-point", (1,), "float32", pairs=((0, 2), (1, 2), (3, 2)), nbytes=300), group())
    assert gather.seconds == pairs.seconds > 0


def test_groups_of_different_sizes_have_a_time():
    collective = Collective("all-to-all", (1,), "float32", ((0, 1, 2), (3,)), nbytes=100)
    assert timed(collective, group()).seconds > 0


def test_without_places_there_are_no_times_and_no_distances():
    collective = Collective("all-gather", (1,), "float32", (ALL,), nbytes=8)
    assert timed(collective, DeviceGroup.of(4)) is collective
    assert hops_of(DeviceGroup.of(4)) is None


def test_where_speeds_are_not_known_there_are_no_times():
    topology = ringlet.tpu.Topology(mesh_shape=[2, 1, 1, 1], device_coordinates=[[[0, 0, 0, 0], [1, 0, 0, 0]]])
    assignment = ringlet.tpu.DeviceAssignment(topology, [[[0, 0, 0, 0], [1, 0, 0, 0]]])
    placed = DeviceGroup(2, ("a", "b"), assignment=assignment)
    assert timed(Collective("all-gather", (1,), "float32", ((0, 1),), nbytes=8), placed).seconds is None
    assert hops_of(placed) == [[0, 1], [1, 0]]


def test_distances_are_links_between_chips():
    hops = hops_of(group())
    assert [hops[0][device] for device in ALL] == [0, 1, 1, 2]


def test_arrays_of_another_replica_have_the_times_of_its_devices():
    near_and_far = ringlet.tpu.DeviceAssignment(TOPOLOGY, [[[0, 0, 0, 0], [0, 0, 0, 1]], [[0, 0, 1, 0], [1, 1, 0, 0]]])

    def on(replica):
        return Mesh({"x": 2}, assignment=near_and_far, replica=replica).sharding("x", None)

    def seconds(replica):
        with ringlet.sharding.explain() as report:
            shard(np.ones((64, 64)), on(replica)).reshard(Sharding.replicated(2))
        return report.seconds

    assert seconds(0) < seconds(1)
    moved = shard(shard(np.ones((64, 64)), on(0)), on(1))
    assert moved._group.replica == 1
    assert (moved + shard(np.ones((64, 64)), on(0))).sum() == 2 * 64 * 64
