"""Schedules: who sends what to whom, checked against what every member must end up with."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.tpu.cost.cost_fabric import Fabric, FabricOptions
from ringlet.tpu.cost.cost_groups import box_of
from ringlet.tpu.cost.cost_messages import Messages
from ringlet.tpu.cost.cost_schedules import ALGORITHMS, Plan, UnfitError, doubling_partners, schedule, swing_partners
from tests.tpu.meshes import mesh

# What one device sends altogether, in parts of V (N devices): no algorithm by shards sends less or more than it must.
GATHERS = ["ring", "sequential", "rotated", "balanced", "doubling", "swing"]


def plan(*shape: int, wrap: bool = True, nbytes: float = 1.0, **options: int) -> Plan:
    """All devices of a mesh as one group."""
    topology = mesh(*shape, wrap=wrap)
    coordinates = topology.device_coordinates.reshape(-1, 4).astype(np.int64)
    fabric = Fabric.of(topology, coordinates, FabricOptions(bandwidth=1.0, hop_seconds=1.0, core_bandwidth=10.0))
    groups = np.arange(len(coordinates))[None]
    return Plan(groups, box_of(groups, coordinates, fabric.network), nbytes, fabric, **options)


def sent_by_each(traffic: Messages, count: int) -> np.ndarray:
    """Bytes that every device sends."""
    weight = np.ones(len(traffic.source)) if traffic.weight is None else traffic.weight
    return np.bincount(traffic.source, weight, count) * traffic.unit_bytes


@pytest.mark.parametrize("collective", ALGORITHMS)
def test_a_group_of_one_has_nothing_to_do(collective):
    for algorithm in ALGORITHMS[collective]:
        assert schedule(collective, algorithm, plan(1, 1, 1)) == []


@pytest.mark.parametrize("collective", ["all_gather", "reduce_scatter"])
@pytest.mark.parametrize("algorithm", GATHERS)
def test_every_device_sends_what_the_others_lack_and_no_more(collective, algorithm):
    stages = schedule(collective, algorithm, plan(4, 4))
    sent = sum(sent_by_each(traffic, 16) for stage in stages for traffic in stage)
    np.testing.assert_allclose(sent, 15 / 16)


@pytest.mark.parametrize("algorithm", ["line", "sequential", "rotated", "balanced"])
def test_on_lines_the_devices_together_send_what_all_lack(algorithm):
    for collective in ("all_gather", "reduce_scatter"):
        stages = schedule(collective, algorithm, plan(4, 4, wrap=False))
        sent = sum(sent_by_each(traffic, 16).sum() for stage in stages for traffic in stage)
        assert sent == pytest.approx(15)


@pytest.mark.parametrize("algorithm", ["ring", "line", "sequential", "rotated", "balanced"])
def test_an_all_reduce_is_a_reduce_scatter_and_then_an_all_gather(algorithm):
    halves = [schedule(name, algorithm, plan(4, 2)) for name in ("reduce_scatter", "all_gather")]
    assert len(schedule("all_reduce", algorithm, plan(4, 2))) == len(halves[0]) + len(halves[1])


@pytest.mark.parametrize(
    ("partners", "size", "table"),
    [
        (swing_partners, 8, ["10325476", "72143650", "36507214"]),
        (doubling_partners, 8, ["10325476", "23016745", "45670123"]),
    ],
)
def test_partners_are_as_published(partners, size, table):
    assert ["".join(map(str, row)) for row in partners(size)] == table


@given(power=st.integers(0, 9))
@pytest.mark.parametrize("partners", [swing_partners, doubling_partners])
def test_partners_pair_up_and_after_the_last_step_everybody_has_everything(partners, power):
    size = 2**power
    knows = np.eye(size, dtype=bool)
    for partner in partners(size):
        assert np.array_equal(partner[partner], np.arange(size))
        knows = knows | knows[partner]
    assert knows.all()


def test_swing_partners_are_nearer_than_those_of_recursive_doubling():
    around = [
        sum(min(abs(partner[0]), 64 - partner[0]) for partner in partners(64))
        for partners in (swing_partners, doubling_partners)
    ]
    assert around[0] < 0.75 * around[1]


@pytest.mark.parametrize(
    ("collective", "algorithm", "shape", "words"),
    [
        ("all_reduce", "rotated", (8, 1, 1), "fewer than two axes"),
        ("all_reduce", "balanced", (8, 1, 1), "fewer than two axes"),
        ("all_reduce", "swing", (3, 2, 1), "no power of two"),
        ("all_gather", "doubling", (3, 2, 1), "no power of two"),
        ("point_to_point", "split", (8, 1, 1), "one shortest way only"),
    ],
)
def test_an_algorithm_says_what_it_cannot_serve(collective, algorithm, shape, words):
    with pytest.raises(UnfitError, match=words):
        schedule(collective, algorithm, plan(*shape))


def test_groups_that_are_no_box_go_around_in_rings_only():
    made = plan(3, 3)
    corner = Plan(np.array([[0, 1, 3]]), None, 1.0, made.fabric)
    with pytest.raises(UnfitError, match="no box"):
        schedule("all_reduce", "sequential", corner)
    assert schedule("all_reduce", "ring", corner)


@given(sizes=st.lists(st.integers(2, 6), min_size=2, max_size=3), wrap=st.booleans())
def test_balanced_parts_are_all_of_the_array_and_keep_the_axes_equally_busy(sizes, wrap):
    made = plan(*sizes, wrap=wrap)
    try:
        (stage,) = schedule("all_gather", "balanced", made)
    except UnfitError:
        return
    loads = made.fabric.no_load()
    for traffic in stage:
        units, _ = traffic.crossings(made.fabric)
        loads += units * traffic.unit_bytes
    busiest = loads[: made.fabric.num_links].reshape(3, -1).max(1)
    np.testing.assert_allclose(busiest[busiest > 0], busiest.max())


def test_the_devices_of_a_chip_gather_first_and_scatter_last_where_they_are_fastest():
    made = plan(4, 4, 1, 2)
    scatter = schedule("reduce_scatter", "sequential", made)
    gather = schedule("all_gather", "sequential", made)
    near = [
        [bool((made.fabric.chip[t.source] == made.fabric.chip[t.target]).all()) for (t,) in stages]
        for stages in (scatter, gather)
    ]
    assert near == [[True, False, False], [False, False, True]]


def test_a_broadcast_ring_starts_at_the_root():
    ((traffic,),) = schedule("broadcast", "ring", plan(4, 1, root=2))
    sent = list(zip(traffic.source.tolist(), traffic.target.tolist(), strict=True))
    assert sent == [(2, 3), (3, 0), (0, 1), (2, 1), (1, 0), (0, 3)]


def test_the_parts_of_a_split_message_share_no_link():
    made = plan(4, 4, 4, wrap=False, root=0, target=63)
    (stage,) = schedule("point_to_point", "split", made)
    assert len(stage) == 3
    assert sum(traffic.crossings(made.fabric)[0] for traffic in stage).max() == 1
