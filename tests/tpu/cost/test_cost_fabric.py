"""How fast links are: by generation, as told, degraded; and what is not known is asked for."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.tpu import GENERATIONS, Topology
from ringlet.tpu.cost.cost_fabric import Fabric, FabricOptions
from tests.tpu.meshes import mesh


def fabric(topology: Topology, **options: object) -> Fabric:
    """The fabric below all devices of a topology."""
    coordinates = topology.device_coordinates.reshape(-1, 4).astype(np.int64)
    return Fabric.of(topology, coordinates, FabricOptions(**options))


def link_speeds(topology: Topology, **options: object) -> np.ndarray:
    made = fabric(topology, **options)
    return made.link_bytes(made.bytes_per_second)


@pytest.mark.parametrize("name", GENERATIONS)
def test_links_are_as_fast_as_their_generation(name):
    generation = GENERATIONS[name]
    topology = mesh(4, 4, generation=name)
    assert set(link_speeds(topology)) == {generation.ici_bandwidth_usable}
    assert set(link_speeds(topology, bandwidth="published")) == {generation.ici_bandwidth}
    assert fabric(topology).hop_seconds == generation.hop_seconds


def test_a_number_is_bytes_per_second_of_every_link():
    assert set(link_speeds(mesh(4, 4), bandwidth=7e9)) == {7e9}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "4x4x1x1 has no generation. Pass bandwidth="),
        ({"bandwidth": "measured"}, "'usable', 'published' or bytes per second, got 'measured'"),
        ({"bandwidth": 0}, "positive number of bytes per second, got 0"),
        ({"bandwidth": float("nan")}, "positive number"),
        ({"bandwidth": None}, "positive number of bytes per second, got None"),
        ({"bandwidth": 1.0, "hop_seconds": -1e-6}, "not negative, got -1e-06"),
        ({"bandwidth": 1.0, "hop_seconds": float("nan")}, "not negative, got nan"),
        ({"bandwidth": 1.0, "hop_seconds": "1us"}, "not negative, got '1us'"),
        ({"bandwidth": 1.0, "core_bandwidth": -1.0}, "core_bandwidth must be a positive number"),
        ({"bandwidth": 1.0, "host_bandwidth": 0.0}, "host_bandwidth must be a positive number"),
        ({"bandwidth": 1.0, "bandwidth_scale": 0.0}, "above 0, got 0. The hardware routes around a failed"),
        ({"bandwidth": 1.0, "bandwidth_scale": [0.5, 0.5]}, r"shape \(2,\).* one for each of the 48 entries"),
        ({"bandwidth": 1.0, "bandwidth_scale": {((0, 0, 0), (2, 0, 0)): 0.5}}, "no link connects"),
        ({"bandwidth": 1.0, "bandwidth_scale": {((0, 0, 0), (3, 0, 0)): 0.5}}, "no link connects"),
        ({"bandwidth": 1.0, "bandwidth_scale": {((0, 0, 0), (9, 0, 0)): 0.5}}, "is not a link"),
        ({"bandwidth": 1.0, "bandwidth_scale": {(0, 1): 0.5}}, "is not a link"),
        ({"bandwidth": 1.0, "bandwidth_scale": {((0, 0, 0), (1.0, 0, 0)): 0.5}}, "is not a link"),
        ({"bandwidth": 1.0, "bandwidth_scale": {((0, 0, 0), (1, 0, 0)): "half"}}, "got 'half'"),
        ({"bandwidth": 1.0, "bandwidth_scale": "half"}, "remaining fractions of bandwidths, such as 0.5, got 'half'"),
        ({"bandwidth": 1.0, "twisted": True}, "cannot be twisted"),
    ],
)
def test_speeds_that_cannot_be_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        fabric(mesh(4, 4), **options)


def test_a_pair_of_chips_degrades_their_link_both_ways():
    topology = mesh(4, 4, wrap=True)
    speeds = link_speeds(topology, bandwidth=1.0, bandwidth_scale={((0, 0, 0), (3, 0, 0)): 0.25})
    links = topology.links()
    slow = np.flatnonzero(speeds == 0.25)
    assert len(slow) == 2
    assert sorted(zip(links.source[slow].tolist(), links.target[slow].tolist(), strict=True)) == [(0, 12), (12, 0)]


def test_an_array_scales_links_in_the_order_of_the_topology():
    topology = mesh(3, 2, 2, wrap=[True, False, False])
    scale = np.linspace(0.1, 1, len(topology.links()))
    assert link_speeds(topology, bandwidth=2.0, bandwidth_scale=scale).tolist() == (2 * scale).tolist()


def test_the_devices_of_a_chip_are_as_much_nearer_as_the_generation_says():
    topology = mesh(2, 2, 1, 2, generation="v7x")
    made = fabric(topology)
    speeds = made.bytes_per_second[made.num_links : made.first_bus]
    assert set(speeds) == {6 * 9e10}


def test_hosts_share_the_network_card_of_their_machine():
    # Two virtual machines of 4 chips each on every machine of 8.
    made = fabric(Topology.from_accelerator_type("v5e-16"))
    assert made.bytes_per_second[made.first_host :].tolist() == [1.25e10] * 4


def test_a_topology_may_say_itself_that_it_is_twisted():
    topology = Topology.from_accelerator_type("v4-256", megacore=True, twisted=True)
    assert fabric(topology).network.twist is not None
    assert fabric(topology, twisted=False).network.twist is None


def test_every_resource_is_of_one_kind():
    made = fabric(mesh(2, 2, 1, 2, generation="v3"))
    ends = [0, made.num_links, made.first_bus, made.first_host, len(made.bytes_per_second)]
    assert [made.kind(end) for end in ends[:4]] == ["ICI", "core link", "PCIe", "DCN"]
    assert [made.kind(end - 1) for end in ends[1:]] == ["ICI", "core link", "PCIe", "DCN"]
