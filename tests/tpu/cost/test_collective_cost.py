"""Costs of collectives on a placement: they grow with bytes, equal closed forms, and are symmetric as it is."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.tpu import Collective, CollectiveCost, DeviceAssignment, Topology
from ringlet.tpu.cost.collective_cost import collective_cost
from ringlet.tpu.cost.cost_schedules import ALGORITHMS
from tests.tpu.closed_forms import axes_seconds, axis_seconds
from tests.tpu.meshes import mesh

GOLDEN = Path(__file__).parents[2] / "conformance" / "golden"
SPEEDS = {"bandwidth": 4.5e10, "hop_seconds": 1e-6}
FORMS = {"bytes_per_second": 4.5e10, "hop_seconds": 1e-6}


def cost(topology: Topology, collective: str, nbytes: float, **options: object) -> CollectiveCost:
    return collective_cost(topology, collective, nbytes, **(SPEEDS | options))


# --- closed forms ---------------------------------------------------------------------------------------------------


@given(
    collective=st.sampled_from(["all_gather", "reduce_scatter", "all_reduce"]),
    size=st.integers(1, 24),
    wrap=st.booleans(),
    nbytes=st.integers(0, 2**40),
)
def test_one_axis_costs_what_its_formula_says(collective, size, wrap, nbytes):
    found = cost(mesh(1, size, wrap=wrap), collective, nbytes, algorithm="sequential")
    assert found.seconds == pytest.approx(axis_seconds(collective, nbytes, size, wrap=wrap and size > 1, **FORMS))


@given(size=st.integers(1, 24), wrap=st.booleans(), nbytes=st.integers(0, 2**40), shift=st.integers(-30, 30))
@pytest.mark.parametrize("collective", ["all_to_all", "collective_permute", "broadcast"])
def test_other_collectives_over_one_axis_do_too(collective, size, wrap, nbytes, shift):
    found = cost(mesh(size, wrap=wrap), collective, nbytes, shift=shift)
    expected = axis_seconds(collective, nbytes, size, wrap=wrap and size > 1, shift=shift, **FORMS)
    assert found.seconds == pytest.approx(expected)


@given(size=st.integers(2, 6), axes=st.integers(2, 3), wrap=st.booleans(), nbytes=st.integers(0, 2**40))
@pytest.mark.parametrize("schedule", ["rotated", "sequential"])
def test_a_torus_or_mesh_of_equal_axes_costs_what_its_formula_says(schedule, size, axes, wrap, nbytes):
    found = cost(mesh(*[size] * axes, wrap=wrap), "all_reduce", nbytes, algorithm=schedule)
    expected = axes_seconds("all_reduce", nbytes, [size] * axes, wrap=wrap, schedule=schedule, **FORMS)
    assert found.seconds == pytest.approx(expected)


@given(sizes=st.tuples(*[st.integers(1, 6)] * 3), wrap=st.booleans())
def test_a_sequence_of_unequal_axes_does_too(sizes, wrap):
    found = cost(mesh(*sizes, wrap=wrap), "all_gather", 1e9, algorithm="sequential")
    expected = axes_seconds("all_gather", 1e9, sizes, wrap=wrap, schedule="sequential", **FORMS)
    assert found.seconds == pytest.approx(expected)


def test_the_asymptotic_model_is_the_shorthand_of_the_literature():
    torus = mesh(4, 4, 4, wrap=True)
    found = cost(torus, "all_gather", 1e9, model="asymptotic", algorithm="rotated")
    assert found.seconds == pytest.approx(1e9 / (3 * 2 * 4.5e10))
    assert cost(torus, "all_gather", 1.0, model="asymptotic", algorithm="rotated").seconds == 6e-6
    assert cost(mesh(5, wrap=True), "all_to_all", 1e9, model="asymptotic").seconds == pytest.approx(1e9 / (8 * 4.5e10))


# --- what must always hold ------------------------------------------------------------------------------------------

placements = st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 2), st.integers(1, 2))


@given(
    collective=st.sampled_from(list(ALGORITHMS)),
    shape=placements,
    wrap=st.booleans(),
    nbytes=st.integers(0, 2**40),
    more=st.integers(1, 2**30),
)
def test_more_bytes_never_cost_less(collective, shape, wrap, nbytes, more):
    topology = mesh(*shape, wrap=wrap)
    target = topology.num_devices - 1
    less, most = (cost(topology, collective, n, target=target) for n in (nbytes, nbytes + more))
    for algorithm, seconds in less.times.items():
        assert seconds <= most.times[algorithm] * (1 + 1e-12)


@given(shape=st.tuples(*[st.integers(1, 5)] * 3), collective=st.sampled_from(["all_reduce", "all_to_all"]))
def test_on_a_torus_every_link_of_an_axis_carries_the_same(shape, collective):
    topology = mesh(*shape, wrap=True)
    for algorithm in {"all_reduce": ["sequential", "rotated"], "all_to_all": ["direct"]}[collective]:
        if algorithm == "rotated" and sum(size > 1 for size in shape) < 2:
            continue
        found = cost(topology, collective, 2**30, algorithm=algorithm)
        axis = topology.links().axis
        for index in range(3):
            on_axis = found.link_bytes[axis == index]
            assert on_axis.size == 0 or np.ptp(on_axis) <= 1e-9 * on_axis.max()


@given(shape=st.tuples(*[st.integers(1, 5)] * 3), collective=st.sampled_from(["all_reduce", "all_to_all"]))
def test_on_a_mesh_a_link_carries_what_its_mirror_image_does(shape, collective):
    topology = mesh(*shape)
    found = cost(topology, collective, 2**30, algorithm="auto" if collective == "all_to_all" else "sequential")
    links = topology.links()
    last = topology.num_chips - 1
    by_ends = {
        (s, t): n for s, t, n in zip(links.source.tolist(), links.target.tolist(), found.link_bytes, strict=True)
    }
    for (source, target), nbytes in by_ends.items():
        assert nbytes == pytest.approx(by_ends[last - source, last - target])


@pytest.mark.parametrize("core_shape", [[1, 1, 1, 1], [2, 2, 1, 1], [1, 1, 1, 2], [2, 1, 2, 2]])
@pytest.mark.parametrize("axis", ["replica", "core", "all"])
def test_rings_and_messages_agree_on_what_was_sent_times_hops(core_shape, axis):
    topology = Topology.from_accelerator_type("v4-64")
    assignment = DeviceAssignment.build(topology, core_shape, num_replicas=64 // int(np.prod(core_shape)))
    found = assignment.cost("collective_permute", 64.0, axis)
    places = assignment.core_assignment.astype(int)
    groups = {"replica": places.transpose(1, 0, 2), "core": places, "all": places.reshape(1, -1, 4)}[axis]
    hops = np.abs(groups - np.roll(groups, -1, 1))[..., :3].sum()
    assert found.link_bytes.sum() == pytest.approx(hops * 64.0 / groups.shape[1])


# --- placements -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(2, 2), (4, 4), (8, 8), (4, 2), (2, 6)])
def test_the_order_of_tensorflow_halves_the_time_of_a_row_major_ring(shape):
    topology = mesh(*shape)
    count = topology.num_devices
    ring = DeviceAssignment.build(topology, num_replicas=count)
    rows = collective_cost(topology, "all_gather", 1e9, algorithm="ring", bandwidth=1e9, hop_seconds=0)
    assert rows.seconds == pytest.approx(
        2 * ring.cost("all_gather", 1e9, algorithm="ring", bandwidth=1e9, hop_seconds=0).seconds
    )


def golden_rings() -> list[tuple[int, ...]]:
    rings = json.loads((GOLDEN / "tf_device_assignment.json").read_text())["rings"]
    shapes = (tuple(ring["shape"]) for ring in rings)
    return [shape for shape in shapes if all(n == 1 or n % 2 == 0 for n in shape) and sum(n > 1 for n in shape) > 1]


@pytest.mark.parametrize("shape", golden_rings())
def test_a_ring_of_tensorflow_uses_every_link_of_its_way_once(shape):
    topology = mesh(*shape)
    count = topology.num_devices
    found = DeviceAssignment.build(topology, num_replicas=count).cost("all_gather", count, algorithm="ring", **SPEEDS)
    assert found.latency_seconds == pytest.approx(count // 2 * 1e-6)
    assert found.link_bytes.max() == pytest.approx((count - 1) / 2)


def test_a_split_axis_loads_each_link_as_often_as_its_inner_part_is_long():
    topology = mesh(16, wrap=True)
    outer = np.arange(16).reshape(4, 4).T
    whole = cost(topology, "all_gather", 2**30, groups=outer[:1], algorithm="sequential", hop_seconds=0)
    together = cost(topology, "all_gather", 2**30, groups=outer, algorithm="sequential", hop_seconds=0)
    assert together.seconds == pytest.approx(4 * whole.seconds)


def test_groups_on_different_axes_do_not_meet_and_those_on_the_same_axis_share():
    topology = mesh(4, 4, 1, 2)
    devices = np.arange(32).reshape(4, 4, 2)
    columns = devices[:, :, 0].T
    alone = cost(topology, "all_gather", 2**30, groups=columns, algorithm="line")
    elsewhere = cost(topology, "all_gather", 2**30, groups=devices[:, :, 0], algorithm="line")
    shared = cost(topology, "all_gather", 2**30, groups=[*columns, *devices[:, :, 1].T], algorithm="line")
    assert alone.seconds == pytest.approx(elsewhere.seconds)
    assert shared.ici_seconds == pytest.approx(2 * alone.ici_seconds)


def test_the_link_between_the_devices_of_a_chip_can_be_what_decides():
    topology = mesh(2, 2, 1, 2)
    for speed, bound in ((1e12, "ICI"), (1e9, "core link")):
        found = cost(topology, "all_reduce", 2**30, algorithm="sequential", core_bandwidth=speed)
        assert found.bound == bound
    # The slowest axis comes last: it moves what the four chips have left, both ways in turn.
    assert found.core_link_seconds == pytest.approx(2**30 / 4 / 1e9)


@pytest.mark.parametrize(("part", "factor"), [(1.0, 1.0), (0.5, 2.0), (0.1, 10.0)])
def test_a_degraded_link_slows_down_whoever_uses_it(part, factor):
    topology = mesh(4, wrap=True)
    found = cost(topology, "all_reduce", 2**30, bandwidth_scale={((3, 0, 0), (0, 0, 0)): part}, algorithm="ring")
    whole = cost(topology, "all_reduce", 2**30, algorithm="ring")
    assert found.ici_seconds == pytest.approx(factor * whole.ici_seconds)
    assert found.busiest_links(1)[0].is_wrap == (part < 1)


def test_another_algorithm_may_be_faster_past_a_degraded_link():
    topology = mesh(8, wrap=True)
    found = cost(topology, "all_reduce", 2**30, bandwidth_scale={((7, 0, 0), (0, 0, 0)): 0.01})
    assert found.algorithm == "line"


def test_a_twist_speeds_up_an_all_to_all_and_leaves_rings_alone():
    topology = mesh(4, 4, 8, wrap=True)
    plain, twisted = (cost(topology, "all_to_all", 2**30, twisted=twist).ici_seconds for twist in (False, True))
    assert twisted < 0.8 * plain
    for algorithm in ("sequential", "rotated", "balanced"):
        costs = {cost(topology, "all_reduce", 2**30, twisted=t, algorithm=algorithm).seconds for t in (False, True)}
        assert len(costs) == 1


def test_published_bandwidths_are_a_little_higher_than_usable_ones():
    topology = Topology.from_accelerator_type("v5e-256")
    usable, published = (
        collective_cost(topology, "all_reduce", 1e9, bandwidth=which).ici_seconds for which in ("usable", "published")
    )
    assert usable / published == pytest.approx(50 / 45)


def test_small_arrays_take_an_algorithm_with_few_steps_and_large_ones_one_that_sends_little():
    topology = mesh(16, wrap=True)
    small, large = cost(topology, "all_reduce", 8), cost(topology, "all_reduce", 2**30)
    assert (small.algorithm, small.bound) == ("swing", "latency")
    assert (large.algorithm, large.bound) == ("ring", "ICI")


def test_a_pod_of_8960_chips_takes_less_than_five_seconds():
    topology = Topology.from_accelerator_type("v5p-16x20x28", megacore=True)
    start = time.process_time()
    for collective in ("all_reduce", "all_to_all", "broadcast", "collective_permute"):
        found = collective_cost(topology, collective, 2**30)
        assert found.group_size == 8960
        assert found.seconds >= found.lower_bound_seconds
    assert time.process_time() - start < 5


# --- bad input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"collective": "allreduce"}, "unknown collective 'allreduce': did you mean 'all_reduce'"),
        ({"collective": "gossip"}, "unknown collective 'gossip'.* Choose one of all_reduce"),
        ({"nbytes": -1}, "finite and not negative, got -1"),
        ({"nbytes": float("nan")}, "got nan"),
        ({"nbytes": float("inf")}, "got inf"),
        ({"nbytes": 2**2000}, "finite and not negative"),
        ({"axis": "batch"}, "axis must be one of 'replica', 'core', 'all', got 'batch'"),
        ({"algorithm": "magic"}, "unknown algorithm 'magic' for all_reduce: choose 'auto', 'ring'"),
        ({"algorithm": "tree"}, "unknown algorithm 'tree' for all_reduce"),
        (
            {"algorithm": "swing", "groups": [[0, 1, 2]]},
            "'swing' does not apply: the group size 3 is not a power of two",
        ),
        ({"model": "rough"}, "'exact' or 'asymptotic', got 'rough'"),
        ({"slices": 0}, "at least 1, got 0"),
        ({"collective": "broadcast", "root": 16}, "root is member 16, but the groups have members 0 to 15"),
        ({"collective": "point_to_point", "target": -1}, "target is member -1"),
    ],
)
def test_what_does_not_exist_is_named(change, words):
    with pytest.raises(ValueError, match=words):
        collective_cost(**({"assignment": mesh(4, 4), "collective": "all_reduce", "nbytes": 1.0} | SPEEDS | change))


def test_a_mistyped_option_is_answered_with_the_right_one():
    with pytest.raises(TypeError, match="'bandwith'; did you mean 'bandwidth'"):
        collective_cost(mesh(4, 4), "all_reduce", 1.0, bandwith=1.0)
    with pytest.raises(TypeError, match="'colour'; expected one of bandwidth, hop_seconds"):
        collective_cost(mesh(4, 4), "all_reduce", 1.0, colour=1.0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"nbytes": [1]}, r"as a number of bytes, got \[1\]"),
        ({"slices": 1.5}, "slices must be an integer, got 1.5"),
        ({"collective": "collective_permute", "shift": 0.5}, "shift must be an integer, got 0.5"),
        ({"collective": "broadcast", "root": "0"}, "root must be an integer, got '0'"),
    ],
)
def test_what_is_no_number_is_named(change, words):
    with pytest.raises(TypeError, match=words):
        collective_cost(**({"assignment": mesh(4, 4), "collective": "all_reduce", "nbytes": 1.0} | SPEEDS | change))


def test_a_size_may_be_text_as_on_the_command_line():
    costs = [collective_cost(mesh(4, 4), "all_reduce", size, **SPEEDS) for size in ("1.5MiB", 1.5 * 2**20)]
    assert costs[0].nbytes == costs[1].nbytes == 1.5 * 2**20
    with pytest.raises(ValueError, match="Write 1GiB or 1GB"):
        DeviceAssignment.build(mesh(4, 4)).cost("all_reduce", "1G", **SPEEDS)


def test_an_assignment_without_replicas_has_no_cost():
    empty = DeviceAssignment.build(mesh(4, 4), num_replicas=0)
    with pytest.raises(ValueError, match="no replicas"):
        empty.cost("all_reduce", 1.0, **SPEEDS)


def test_a_collective_is_checked_when_it_is_made():
    with pytest.raises(ValueError, match="got 'rows'"):
        Collective("all_reduce", 1, axis="rows")
