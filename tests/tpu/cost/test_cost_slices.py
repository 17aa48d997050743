"""Collectives over several slices: what goes through the hosts, and what is left inside."""

from __future__ import annotations

import pytest

from ringlet.tpu import Topology
from ringlet.tpu.cost.collective_cost import collective_cost
from tests.tpu.closed_forms import between_slices_seconds
from tests.tpu.meshes import mesh

POD = Topology.from_accelerator_type("v5e-64")  # 16 virtual machines, 8 machines of 2.5e10 bytes/s
OVER_SLICES = ["all_reduce", "all_gather", "reduce_scatter", "all_to_all"]


@pytest.mark.parametrize("slices", [2, 3, 8])
def test_hosts_exchange_the_shards_of_their_devices(slices):
    cost = collective_cost(POD, "all_reduce", 1e9, slices=slices)
    assert cost.dcn_seconds == pytest.approx(between_slices_seconds(1e9, slices, 8, 2.5e10))
    assert cost.ici_seconds == pytest.approx(collective_cost(POD, "all_reduce", 1e9).ici_seconds)


@pytest.mark.parametrize("slices", [2, 5])
def test_an_all_gather_and_a_reduce_scatter_are_half_an_all_reduce(slices):
    whole, gather, scatter = (
        collective_cost(POD, name, 1e9, slices=slices, algorithm="rotated").seconds
        for name in ("all_reduce", "all_gather", "reduce_scatter")
    )
    assert gather == pytest.approx(scatter)
    assert whole == pytest.approx(gather + scatter)


def test_an_all_to_all_keeps_one_chunk_in_s_inside():
    cost = collective_cost(POD, "all_to_all", 4e9, slices=4)
    assert cost.ici_seconds == pytest.approx(collective_cost(POD, "all_to_all", 1e9).ici_seconds)
    # Every slice holds 1e9 bytes and sends three quarters of them through 8 machines.
    assert cost.dcn_seconds == pytest.approx(0.75 * 1e9 / (8 * 2.5e10))


@pytest.mark.parametrize("collective", OVER_SLICES)
def test_more_slices_never_cost_less(collective):
    # An all-to-all of as much on every slice, since its array is cut over all of them.
    sizes = {slices: 1e9 * (slices if collective == "all_to_all" else 1) for slices in (1, 2, 4, 16)}
    costs = [collective_cost(POD, collective, nbytes, slices=slices).seconds for slices, nbytes in sizes.items()]
    assert costs == sorted(costs)


def test_a_chip_alone_may_be_held_up_on_the_way_to_its_host():
    topology = mesh(2, 2, generation="v5e")
    cost = collective_cost(topology, "all_reduce", 1e9, groups=[[0]], slices=2)
    assert cost.bound == "DCN"
    faster = collective_cost(topology, "all_reduce", 1e9, groups=[[0]], slices=2, host_bandwidth=1e12)
    assert (faster.bound, faster.pcie_seconds) == ("PCIe", pytest.approx(1e9 / 1.5e10))


@pytest.mark.parametrize("collective", ["broadcast", "collective_permute", "point_to_point"])
def test_what_has_no_schedule_over_slices_says_so(collective):
    with pytest.raises(ValueError, match=f"{collective} has no schedule over several slices"):
        collective_cost(POD, collective, 1e9, slices=2)


def test_the_speed_of_the_network_is_asked_for_where_it_is_not_known():
    with pytest.raises(ValueError, match=r"has no generation\. Pass host_bandwidth="):
        collective_cost(mesh(4, 4), "all_reduce", 1e9, slices=2, bandwidth=1e9)
    cost = collective_cost(mesh(4, 4), "all_reduce", 1e9, slices=2, bandwidth=1e9, host_bandwidth=1e9)
    assert cost.dcn_seconds == pytest.approx(1.0)
