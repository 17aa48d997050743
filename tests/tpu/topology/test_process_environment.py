"""The variables that processes are started with: read again, they give the slice, and every chip is opened once."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.tpu import GENERATIONS, AcceleratorType, Topology, TPUEnvironment, environment
from ringlet.tpu.topology.accelerator_type import shapes_by_chips

KINDS = [
    AcceleratorType.of(generation, shape)
    for generation in GENERATIONS.values()
    for chips, shape in shapes_by_chips(generation).items()
    if chips <= 256
]


@given(st.sampled_from(KINDS), st.data())
def test_what_is_written_is_read_as_the_same_slice(kind, data):
    hosts = math.prod(kind.shape) // math.prod(kind.generation.host_shape_of(kind.shape))
    each = math.prod(kind.generation.host_shape_of(kind.shape))
    shares = [share for share in range(1, each * kind.generation.devices_per_chip + 1) if each % share == 0]
    processes = hosts * data.draw(st.sampled_from([*shares, each * kind.generation.devices_per_chip]))
    blocks = environment(kind, processes)
    assert len(blocks) == processes
    for task, block in enumerate(blocks[:3]):
        found = TPUEnvironment.read(block)
        assert (found.accelerator_type, found.shape, found.task_id) == (kind.name, kind.shape, task)
        assert found.num_processes == processes
    topology = Topology.from_env(blocks[-1])
    assert topology.num_tasks == processes
    assert topology.missing_devices.size == 0


@given(st.sampled_from(KINDS))
def test_every_chip_of_a_host_is_opened_by_one_process(kind):
    each = math.prod(kind.generation.host_shape_of(kind.shape))
    blocks = environment(kind, math.prod(kind.shape))
    for worker in (0, len(blocks) // each - 1):
        own = [block["TPU_VISIBLE_CHIPS"] for block in blocks if block["TPU_WORKER_ID"] == str(worker)]
        assert own == [str(chip) for chip in range(each)]


@pytest.mark.parametrize(
    ("name", "processes", "chips", "bounds", "visible"),
    [
        # slice, processes, chips of each, grid of processes, chips that the last one opens
        ("v4-16", None, "2,2,1", "1,1,2", "0,1,2,3"),
        ("v4-16", 4, "1,2,1", "2,1,2", "2,3"),
        ("v4-16", 8, "1,1,1", "2,2,2", "3"),
        ("v5litepod-8", 2, "2,2,1", "1,2,1", "4,5,6,7"),
        ("tpu7x-8", 8, "1,1,1", "2,2,1,2", "3"),
        ("v2-8", 4, "1,1,1", "2,2,1", "3"),
    ],
)
def test_processes_share_the_chips_of_a_host(name, processes, chips, bounds, visible):
    last = environment(name, processes)[-1]
    assert last["TPU_CHIPS_PER_PROCESS_BOUNDS"] == chips
    assert last["TPU_PROCESS_BOUNDS"] == bounds
    assert last["TPU_VISIBLE_CHIPS"] == visible


def test_two_processes_on_a_chip_have_one_device_each():
    topology = Topology.from_env(environment("tpu7x-8", 8)[0])
    assert topology.device_coordinates[:4, 0].tolist() == [[0, 0, 0, 0], [0, 0, 0, 1], [1, 0, 0, 0], [1, 0, 0, 1]]


def test_hosts_and_ports_are_those_that_are_given():
    blocks = environment("v4-16", 4, hostnames=["a", "b"], base_port=9000)
    assert blocks[2]["TPU_PROCESS_ADDRESSES"] == "a:9000,a:9001,b:9000,b:9001"
    assert [block["TPU_PROCESS_PORT"] for block in blocks] == ["9000", "9001"] * 2
    assert environment("v4-16")[0]["TPU_WORKER_HOSTNAMES"] == "host-0,host-1"
    with pytest.raises(ValueError, match="hostnames has 1 names, but the slice has 2 hosts"):
        environment("v4-16", hostnames=["a"])


@pytest.mark.parametrize("processes", [0, -1, 1, 3, 16])
def test_processes_that_cannot_share_evenly_are_refused_with_those_that_can(processes):
    with pytest.raises(ValueError, match=rf"{processes} processes cannot share v4-16 evenly.* Use 2, 4, 8 processes"):
        environment("v4-16", processes)


def test_a_topology_stands_for_its_slice():
    topology = Topology.from_accelerator_type("v5e-16")
    assert environment(topology, 16) == environment("v5litepod-16", 16)
    unknown = Topology(mesh_shape=[1, 1, 1, 1], device_coordinates=np.zeros((1, 1, 4), int))
    with pytest.raises(ValueError, match="generation of this Topology is unknown"):
        environment(unknown)
    odd = Topology(mesh_shape=[1, 1, 1, 1], device_coordinates=np.zeros((1, 1, 4), int), generation="v4")
    with pytest.raises(ValueError, match="v4 has no slices of 1x1x1 chips"):
        environment(odd)
