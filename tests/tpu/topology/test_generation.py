"""The table of generations: its numbers agree with the totals that are published for pods."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ringlet.tpu import GENERATIONS, Topology


def pod(name):
    """A full pod, one device on each chip where that is how it is delivered."""
    generation = GENERATIONS[name]
    shape = "x".join(map(str, generation.pod_shape[: generation.torus_rank]))
    return Topology.from_accelerator_type(f"{generation.prefixes[0]}-{shape}", megacore=generation.has_megacore)


def bisection_links(topology, axis):
    """Links, one way, that join the two halves of an axis."""
    links = topology.links()
    place = np.stack(np.unravel_index(np.stack([links.source, links.target]), topology.chip_shape))[axis]
    half = topology.chip_shape[axis] // 2
    return int(((place[0] < half) & (place[1] >= half)).sum())


@pytest.mark.parametrize(
    ("name", "bandwidth", "published"),
    [
        # generation, bytes/s of a link, published all-reduce bandwidth of a pod
        ("v3", 82e9, 340e12),
        ("v4", 45e9, 1.1e15),
        ("v5e", 50e9, 51.2e12),
        ("v6e", 100e9, 102.4e12),
    ],
)
def test_all_links_of_a_pod_have_the_published_bandwidth(name, bandwidth, published):
    generation = GENERATIONS[name]
    assert bandwidth in (generation.ici_bandwidth, generation.ici_bandwidth_usable)
    assert len(pod(name).links()) * bandwidth == pytest.approx(published, rel=0.02)


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        # generation, published bisection bandwidth of a pod, or what it was rounded from
        ("v4", 23.0e12, 25.6e12),
        ("v5e", 1.6e12, 1.6e12),
        ("v6e", 3.2e12, 3.2e12),
    ],
)
def test_the_halves_of_a_pod_are_joined_by_the_published_bandwidth(name, least, most):
    generation = GENERATIONS[name]
    cut = bisection_links(pod(name), 0)
    assert cut * generation.ici_bandwidth == pytest.approx(most)
    if generation.torus_rank == 3:
        assert cut * generation.ici_bandwidth_usable == pytest.approx(least, rel=0.01)


@pytest.mark.parametrize(
    ("name", "total"),
    # generation, published bandwidth of all links of a chip, both ways
    [("v5e", 400e9), ("v5p", 1200e9), ("v6e", 800e9), ("v7x", 1200e9)],
)
def test_the_links_of_a_chip_have_the_published_bandwidth(name, total):
    generation = GENERATIONS[name]
    assert generation.links_per_chip * 2 * generation.ici_bandwidth == total


@pytest.mark.parametrize(
    ("name", "gbits"),
    # generation, published bandwidth of a chip into the data-centre network, in Gbit/s
    [("v5e", 25), ("v5p", 50), ("v6e", 100), ("v7x", 100)],
)
def test_chips_share_the_network_of_their_machine(name, gbits):
    assert GENERATIONS[name].dcn_bandwidth_per_chip * 8 == gbits * 1e9


@pytest.mark.parametrize(
    ("name", "chips"),
    [("v2", 256), ("v3", 1024), ("v4", 4096), ("v5e", 256), ("v5p", 8960), ("v6e", 256), ("v7x", 9216)],
)
def test_a_pod_has_the_published_number_of_chips(name, chips):
    assert GENERATIONS[name].pod_chips == chips == pod(name).num_chips


@pytest.mark.parametrize(
    ("name", "gibibytes", "bandwidth", "low_precision_ops"),
    [
        # generation, HBM of a chip, its bytes/s, int8 operations/s
        ("v5e", 16, 819e9, 394e12),
        ("v6e", 32, 1638e9, 1836e12),
    ],
)
def test_a_chip_has_the_published_memory(name, gibibytes, bandwidth, low_precision_ops):
    generation = GENERATIONS[name]
    assert generation.hbm_bytes == gibibytes * 2**30
    assert generation.hbm_bandwidth == bandwidth
    assert generation.low_precision_ops == low_precision_ops


@pytest.mark.parametrize("generation", GENERATIONS.values(), ids=GENERATIONS)
def test_in_a_pod_every_axis_of_the_network_wraps(generation):
    topology = pod(generation.name)
    assert topology.wrap == (True, True, generation.torus_rank == 3)
    assert len(topology.links()) == generation.pod_chips * generation.links_per_chip


@pytest.mark.parametrize("generation", GENERATIONS.values(), ids=GENERATIONS)
def test_rows_are_consistent(generation):
    assert generation.devices_per_chip <= generation.cores_per_chip
    assert generation.has_megacore == (generation.devices_per_chip < generation.cores_per_chip)
    assert generation.ici_bandwidth_usable <= generation.ici_bandwidth
    assert all(math.prod(shape) <= generation.pod_chips for shape in generation.shapes)
    for shape in generation.shapes:
        host = generation.host_shape_of(shape)
        assert all(length % part == 0 for length, part in zip(shape, host, strict=True))
    assert repr(generation) == f"<Generation {generation.name}>"


@pytest.mark.parametrize(
    ("name", "shape", "wrap"),
    [
        ("v3", (16, 16, 1), (False, False, False)),
        ("v3", (16, 32, 1), (False, True, False)),
        ("v4", (2, 2, 4), (False, False, False)),
        ("v4", (4, 4, 4), (True, True, True)),
        ("v5p", (4, 4, 12), (True, True, True)),
        ("v5e", (8, 16, 1), (False, True, False)),
        ("v5e", (8, 8, 1), (False, False, False)),
        ("v6e", (16, 16, 1), (True, True, False)),
        ("v7x", (2, 4, 4), (False, False, False)),
    ],
)
def test_smaller_slices_wrap_where_their_generation_says(name, shape, wrap):
    assert GENERATIONS[name].wrap(shape) == wrap


def test_nobody_changes_the_table():
    with pytest.raises(TypeError):
        GENERATIONS["v9"] = None
    with pytest.raises(AttributeError):
        GENERATIONS["v4"].flops = 1.0
