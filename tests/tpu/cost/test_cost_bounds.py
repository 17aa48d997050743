"""What every chip must send at least."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.tpu.cost.collective_cost import collective_cost, lower_bound_seconds
from ringlet.tpu.cost.cost_fabric import Fabric, FabricOptions
from ringlet.tpu.cost.cost_schedules import ALGORITHMS
from tests.tpu.meshes import mesh


def bound(collective: str, shape: tuple[int, ...], groups: list[list[int]], wrap: bool = False, **who: int) -> float:
    topology = mesh(*shape, wrap=wrap)
    coordinates = topology.device_coordinates.reshape(-1, 4).astype(np.int64)
    fabric = Fabric.of(topology, coordinates, FabricOptions(bandwidth=1.0))
    return lower_bound_seconds(collective, 1.0, np.array(groups), fabric, **who)


@pytest.mark.parametrize(
    ("shape", "wrap", "links"),
    [((4,), True, 2), ((4,), False, 1), ((4, 4), False, 2), ((4, 4, 4), True, 6), ((2, 2, 2), False, 3)],
)
def test_the_device_with_the_fewest_links_bounds_an_all_reduce(shape, wrap, links):
    size = int(np.prod(shape))
    found = bound("all_reduce", shape, [list(range(size))], wrap)
    assert found == pytest.approx(2 * (size - 1) / size / links)


@pytest.mark.parametrize(
    ("collective", "who", "seconds"),
    [
        # on a line of four chips: the end has one link, the chips between have two
        ("all_gather", {}, 3 / 4),
        ("reduce_scatter", {}, 3 / 4),
        ("all_to_all", {}, 3 / 16),
        ("collective_permute", {"shift": 1}, 1 / 4),
        ("collective_permute", {"shift": 0}, 0),
        ("broadcast", {"root": 0}, 1),
        ("broadcast", {"root": 1}, 1 / 2),
        ("point_to_point", {"root": 1, "target": 3}, 1 / 2),
        ("point_to_point", {"root": 1, "target": 1}, 0),
    ],
)
def test_every_chip_sends_what_others_lack(collective, who, seconds):
    assert bound(collective, (4,), [[0, 1, 2, 3]], **who) == pytest.approx(seconds)


def test_the_groups_of_a_chip_add_up():
    one, two = (bound("all_gather", (4, 1, 1, 2), groups) for groups in ([[0, 2]], [[0, 2], [1, 3]]))
    assert two == 2 * one


def test_what_stays_on_a_chip_bounds_nothing():
    for collective in ALGORITHMS:
        assert bound(collective, (2, 1, 1, 2), [[0, 1], [2, 3]]) == 0


@given(
    collective=st.sampled_from(list(ALGORITHMS)),
    shape=st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 2), st.integers(1, 2)),
    wrap=st.booleans(),
    nbytes=st.integers(0, 2**40),
    order=st.randoms(use_true_random=False),
)
def test_no_schedule_beats_its_bound(collective, shape, wrap, nbytes, order):
    topology = mesh(*shape, wrap=wrap)
    devices = list(range(topology.num_devices))
    order.shuffle(devices)
    cost = collective_cost(
        topology, collective, nbytes, groups=[devices], target=len(devices) - 1, bandwidth=4.5e10, hop_seconds=0
    )
    assert min(cost.times.values()) >= cost.lower_bound_seconds * (1 - 1e-12)
