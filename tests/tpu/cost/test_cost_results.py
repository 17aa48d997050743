"""What a cost says: its parts, its bound, its busiest links."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from ringlet.tpu import Collective, DeviceAssignment, Topology, simulate
from ringlet.tpu.cost.collective_cost import collective_cost
from tests.tpu.meshes import mesh

POD = Topology.from_accelerator_type("v5e-16")


@pytest.mark.parametrize("slices", [1, 2])
@pytest.mark.parametrize("nbytes", [1, 2**20, 2**34])
def test_the_parts_of_a_cost_add_up(nbytes, slices):
    cost = collective_cost(POD, "all_reduce", nbytes, slices=slices)
    parts = [getattr(cost, f"{name}_seconds") for name in ("latency", "ici", "core_link", "pcie", "dcn")]
    assert cost.seconds == pytest.approx(sum(parts))
    assert cost.seconds == cost.times[cost.algorithm] == min(cost.times.values())
    assert list(cost.times.values()) == sorted(cost.times.values())


@pytest.mark.parametrize(("nbytes", "slices", "bound"), [(1, 1, "latency"), (2**30, 1, "ICI"), (2**30, 64, "DCN")])
def test_the_bound_is_the_largest_part_and_the_repr_says_it(nbytes, slices, bound):
    cost = collective_cost(POD, "all_reduce", nbytes, slices=slices)
    if bound == "DCN":
        cost = collective_cost(POD, "all_reduce", nbytes, slices=slices, host_bandwidth=1e9)
    assert cost.bound == bound
    assert repr(cost).endswith(f"bound by {bound}>")


def test_the_repr_says_who_takes_part():
    assignment = DeviceAssignment.build(POD, [2, 2, 1, 1], num_replicas=4)
    text = repr(assignment.cost("all_reduce", 2**30, slices=2))
    assert "all_reduce of 1 GiB over 4 devices in each of 4 groups of each of 2 slices" in text
    assert "(asymptotic)" in repr(assignment.cost("all_reduce", 2**30, model="asymptotic"))


def test_a_group_of_one_costs_nothing():
    cost = DeviceAssignment.build(POD, num_replicas=16).cost("all_reduce", 2**30, "core")
    assert (cost.seconds, cost.bound, cost.bytes_per_second) == (0, "nothing", float("inf"))
    assert repr(cost).endswith(": 0 s>")
    assert cost.busiest_links() == []


def test_bytes_per_second_are_those_of_benchmarks():
    cost = collective_cost(mesh(4), "all_reduce", 100.0, bandwidth=1.0, hop_seconds=0, algorithm="line")
    assert cost.bytes_per_second == pytest.approx(1 / 1.5)


def test_the_busiest_links_come_first_and_idle_ones_never():
    assignment = DeviceAssignment(mesh(4), [[[0, 0, 0, 0]], [[2, 0, 0, 0]]])
    cost = assignment.cost("point_to_point", 100.0, bandwidth=10.0, hop_seconds=0)
    links = cost.busiest_links()
    assert [(link.source, link.target) for link in links] == [((0, 0, 0), (1, 0, 0)), ((1, 0, 0), (2, 0, 0))]
    assert [(link.nbytes, link.seconds) for link in links] == [(100, 10)] * 2
    assert str(links[0]) == "0,0,0 -> 1,0,0: 100 B, 10 s"
    assert cost.busiest_links(1) == links[:1]
    assert cost.busiest_links(0) == cost.busiest_links(-1) == []


def test_a_wrap_link_is_called_one():
    cost = collective_cost(mesh(3, wrap=True), "point_to_point", 8.0, target=2, bandwidth=1.0)
    assert str(cost.busiest_links(1)[0]).startswith("0,0,0 -> 2,0,0 (wrap): 8 B")


@pytest.mark.parametrize("what", ["collective", "step"])
def test_costs_are_frozen_and_so_are_their_arrays(what):
    cost = collective_cost(POD, "all_reduce", 1e9)
    result = cost if what == "collective" else simulate(POD, Collective("all_reduce", 1e9))
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.seconds = 0.0
    for array in (result.link_bytes, result.link_seconds):
        assert len(array) == len(POD.links())
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_the_seconds_of_links_are_their_bytes_by_their_speed():
    scale = np.linspace(0.2, 1, len(POD.links()))
    cost = collective_cost(POD, "all_reduce", 1e9, bandwidth_scale=scale)
    np.testing.assert_allclose(cost.link_seconds, cost.link_bytes / (4.5e10 * scale))


def test_a_notebook_shows_the_loads():
    assert "<svg" in collective_cost(POD, "all_reduce", 1e9)._repr_html_()
