"""Steps: computing and communicating, one after the other or at the same time."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringlet.tpu import GENERATIONS, Collective, DeviceAssignment, Topology, simulate
from ringlet.tpu.cost.cost_schedules import ALGORITHMS
from tests.tpu.meshes import mesh

POD = Topology.from_accelerator_type("v5e-16")
ROWS = DeviceAssignment.build(POD, [4, 1, 1, 1], num_replicas=4)
PEAK = GENERATIONS["v5e"]


def seconds(*collectives: object, **options: object) -> float:
    return simulate(ROWS, collectives, **options).seconds


X_GATHER = Collective("all_gather", 2**28, "core")
Y_REDUCE = Collective("all_reduce", 2**26, "replica")


@given(flops=st.floats(0, 1e15), nbytes=st.floats(0, 1e12))
def test_computing_takes_the_roofline(flops, nbytes):
    step = simulate(POD, flops=flops, hbm_bytes=nbytes)
    times = {"compute": flops / PEAK.flops, "memory": nbytes / PEAK.hbm_bandwidth}
    assert step.seconds == pytest.approx(max(times.values()))
    assert step.bound in (times if step.seconds else ["nothing"])


@pytest.mark.parametrize(
    ("flops", "hbm_bytes", "nbytes", "bound"),
    [
        # operations and bytes of one device, bytes of an all-reduce
        (1e13, 1e9, 2**20, "compute"),
        (1e11, 1e11, 2**20, "memory"),
        (1e9, 1e6, 2**30, "ICI"),
        (1e6, 1e3, 8, "latency"),
        (0, 0, 0, "latency"),
    ],
)
def test_a_step_says_which_bound_holds(flops, hbm_bytes, nbytes, bound):
    step = simulate(POD, Collective("all_reduce", nbytes), flops=flops, hbm_bytes=hbm_bytes)
    assert step.bound == bound
    assert f"bound by {bound}" in repr(step)


def test_the_network_between_slices_may_be_the_bound():
    gradients = Collective("all_reduce", 2**30, slices=8)
    assert simulate(POD, gradients, host_bandwidth=1e9).bound == "DCN"


def test_overlapped_is_the_longer_part_and_otherwise_the_sum():
    both, apart = (simulate(ROWS, X_GATHER, flops=1e12, is_overlapped=overlaps) for overlaps in (True, False))
    assert both.seconds == max(both.compute_seconds, both.communication_seconds)
    assert apart.seconds == pytest.approx(apart.compute_seconds + apart.communication_seconds)
    assert "one after the other" in repr(apart)


def test_collectives_in_a_row_add_up():
    assert seconds(X_GATHER, Y_REDUCE) == pytest.approx(seconds(X_GATHER) + seconds(Y_REDUCE))


def test_collectives_on_different_axes_do_not_meet():
    assert seconds([X_GATHER, Y_REDUCE]) == pytest.approx(max(seconds(X_GATHER), seconds(Y_REDUCE)))


@pytest.mark.parametrize("count", [2, 3, 5])
def test_collectives_on_the_same_axis_share_it(count):
    assert seconds([Y_REDUCE] * count, hop_seconds=0) == pytest.approx(count * seconds(Y_REDUCE, hop_seconds=0))


def test_latency_is_not_shared():
    tiny = Collective("all_reduce", 1, "replica")
    assert seconds([tiny] * 5) == pytest.approx(seconds(tiny), rel=1e-3)


kinds = st.sampled_from([name for name in ALGORITHMS if name != "point_to_point"])
wishes = st.builds(Collective, kinds, st.integers(0, 2**30), st.sampled_from(["replica", "core", "all"]))


@settings(max_examples=settings().max_examples // 3)
@given(together=st.lists(wishes, min_size=1, max_size=4))
def test_at_the_same_time_is_no_slower_than_in_a_row_and_no_faster_than_the_longest(together):
    at_once, in_a_row = seconds(together), seconds(*together)
    assert at_once <= in_a_row * (1 + 1e-9)
    assert at_once >= max(seconds(one) for one in together) * (1 - 1e-9)
    busiest = simulate(ROWS, [together]).link_seconds.max()
    assert at_once >= busiest * (1 - 1e-9)


def test_the_links_of_a_step_carry_all_of_it():
    step = simulate(ROWS, [X_GATHER, [Y_REDUCE, X_GATHER]])
    alone = [ROWS.cost(one.kind, one.nbytes, one.axis).link_bytes for one in (X_GATHER, Y_REDUCE, X_GATHER)]
    assert step.link_bytes == pytest.approx(sum(alone))
    assert [cost.collective for cost in step.collectives] == ["all_gather", "all_reduce", "all_gather"]


def test_nothing_takes_no_time():
    step = simulate(POD, [[]])
    assert (step.seconds, step.bound, step.collectives) == (0, "nothing", ())
    assert repr(step) == "<StepCost: 0 s, overlapped: nothing; bound by nothing>"


def test_two_devices_of_a_chip_share_its_peak():
    one, two = (
        simulate(Topology.from_accelerator_type("v4-8", megacore=whole), flops=1e12).seconds for whole in (True, False)
    )
    assert two == pytest.approx(2 * one)


def test_other_speeds_can_be_given():
    step = simulate(mesh(2), flops=6.0, hbm_bytes=8.0, flops_per_second=2.0, hbm_bytes_per_second=2.0, bandwidth=1.0)
    assert (step.compute_seconds, step.memory_seconds) == (3, 4)


FLOPS = "flops of a device in one step must be a finite number, at least 0, got"
COLLECTIVES = "collectives must be Collective objects or lists of them, got"


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"flops": 1.0}, ValueError, "flops cannot be timed: pass flops_per_second="),
        ({"hbm_bytes": 1.0}, ValueError, "hbm_bytes cannot be timed: pass hbm_bytes_per_second="),
        ({"flops": -1.0}, ValueError, f"{FLOPS} -1.0"),
        ({"flops": 1.0, "flops_per_second": 0}, ValueError, "flops_per_second must be positive, got 0"),
        ({"flops": "4e12"}, ValueError, f"{FLOPS} '4e12'"),
        ({"collectives": ["all_reduce"]}, TypeError, f"{COLLECTIVES} 'all_reduce'"),
        ({"collectives": "all_reduce"}, TypeError, f"{COLLECTIVES} 'all_reduce'"),
        ({"collectives": [[3]]}, TypeError, f"{COLLECTIVES} 3"),
        ({"bandwith": 1.0}, TypeError, "did you mean 'bandwidth'"),
    ],
)
def test_a_step_that_cannot_be_timed_says_why(options, error, words):
    with pytest.raises(error, match=words):
        simulate(mesh(2), **({"bandwidth": 1.0} | options))
