"""Device assignments: every core once, rings of one-step hops, and clear refusals where TensorFlow crashes."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.tpu import SINGLE_CORE_ASSIGNMENT, CoordinateError, DeviceAssignment, DeviceOrderMode, Topology
from ringlet.tpu.topology.topology import coordinates_of_slice

SIDES = st.sampled_from([1, 2, 3, 4, 6])
MESHES = st.tuples(SIDES, SIDES, SIDES, st.integers(1, 2))


def slice_of(mesh):
    return Topology(mesh_shape=mesh, device_coordinates=coordinates_of_slice(tuple(mesh[:3]), (1, 1, 1), mesh[3]))


@st.composite
def builds(draw, full=False):
    """Arguments of build that fit."""
    mesh = draw(MESHES)
    shape = [draw(st.integers(1, length)) for length in mesh]
    stride = [draw(st.integers(1, length // part)) for length, part in zip(mesh, shape, strict=True)]
    if full:
        shape = [draw(st.sampled_from([d for d in range(1, length + 1) if length % d == 0])) for length in mesh]
        stride = [1] * 4
    room = math.prod(n // (a * b) * b for n, a, b in zip(mesh, shape, stride, strict=True))
    return mesh, shape, stride, room if full else draw(st.integers(0, room))


@given(builds(full=True), st.sampled_from(DeviceOrderMode))
def test_an_assignment_that_fills_the_slice_is_a_permutation_of_its_cores(given_, mode):
    mesh, shape, _, replicas = given_
    if mode is DeviceOrderMode.RING and shape[3] != mesh[3]:
        mode = DeviceOrderMode.AUTO
    assignment = DeviceAssignment.build(slice_of(mesh), shape, num_replicas=replicas, device_order_mode=mode)
    cores = assignment.core_assignment.reshape(-1, 4)
    assert sorted(map(tuple, cores.tolist())) == sorted(np.ndindex(*mesh))


@given(builds())
def test_no_core_is_assigned_twice_and_none_outside_of_the_mesh(given_):
    mesh, shape, stride, replicas = given_
    topology = slice_of(mesh)
    assignment = DeviceAssignment.build(topology, shape, stride, replicas)
    assert assignment.core_assignment.shape == (replicas, math.prod(shape), 4)
    # The constructor checks what build promises.
    np.testing.assert_array_equal(
        DeviceAssignment(topology, assignment.core_assignment).core_assignment, assignment.core_assignment
    )


@given(builds())
def test_the_cores_of_a_replica_make_a_box_with_the_stride(given_):
    mesh, shape, stride, replicas = given_
    assignment = DeviceAssignment.build(slice_of(mesh), shape, stride, replicas, device_order_mode=DeviceOrderMode.MESH)
    for cores in assignment.core_assignment[:3]:
        steps = (cores - cores[0]) // stride
        assert (steps * stride + cores[0] == cores).all()
        assert sorted(map(tuple, steps.tolist())) == sorted(np.ndindex(*shape))


EVEN = st.tuples(*[st.sampled_from([1, 2, 4, 6])] * 3)


@given(EVEN.filter(lambda shape: sum(length > 1 for length in shape) > 1), st.integers(1, 2), st.booleans())
def test_rings_of_even_shape_have_hops_of_one_link(chips, cores, within):
    shape = [*chips, cores] if within else [1, 1, 1, cores]
    replicas = 1 if within else math.prod(chips)
    assignment = DeviceAssignment.build(slice_of([*chips, cores]), shape, num_replicas=replicas)
    ring = assignment.core_assignment.reshape(-1, cores, 4)[:, 0, :3]
    assert (np.abs(ring - np.roll(ring, 1, 0)).sum(1) == 1).all()


# --- look-ups -------------------------------------------------------------------------------------------------------


@given(builds(), st.data())
def test_lookups_agree_with_the_topology(given_, data):
    mesh, shape, stride, replicas = given_
    topology = slice_of(mesh)
    assignment = DeviceAssignment.build(topology, shape, stride, max(1, replicas))
    replica = data.draw(st.integers(0, assignment.num_replicas - 1))
    core = data.draw(st.integers(0, assignment.num_cores_per_replica - 1))
    place = assignment.coordinates(replica, core)
    assert place == tuple(assignment.core_assignment[replica, core].tolist())
    for job in (None, "worker"):
        for _ in range(2):  # before there is a table, and from the table
            assert assignment.host_device(replica, core, job) == topology.cpu_device_name_at_coordinates(place, job)
            assert assignment.tpu_device(replica, core, job) == topology.tpu_device_name_at_coordinates(place, job)
    assert assignment.tpu_ordinal(replica, core) == topology.tpu_device_ordinal_at_coordinates(place)
    assert replica in assignment.lookup_replicas(topology.task_ordinal_at_coordinates(place), core)


def test_replicas_of_a_task_come_in_order_and_belong_to_the_caller():
    assignment = DeviceAssignment.build(Topology.from_accelerator_type("v4-16"), [1, 1, 1, 2], num_replicas=8)
    by_task = {task: assignment.lookup_replicas(task, 1) for task in range(2)}
    assert sorted(by_task[0] + by_task[1]) == list(range(8))
    assert all(replicas == sorted(replicas) for replicas in by_task.values())
    by_task[0].clear()
    assert assignment.lookup_replicas(0, 1)


@pytest.mark.parametrize(("task", "core"), [(9, 0), (0, 1), (0, -1), (1, -1), (-1, 0), (None, 0), ("0", 0), (0, None)])
def test_a_task_without_replicas_is_refused(task, core):
    assignment = DeviceAssignment.build(Topology.from_accelerator_type("v4-16"), num_replicas=16)
    with pytest.raises(ValueError, match=f"Can not find any replica in task: {task} contains logical_core: {core} "):
        assignment.lookup_replicas(task, core)


@pytest.mark.parametrize("name", ["coordinates", "tpu_ordinal", "host_device", "tpu_device"])
def test_a_replica_that_there_is_not_is_named(name):
    assignment = DeviceAssignment.build(Topology.from_accelerator_type("v2-8"), [1, 1, 1, 2], num_replicas=4)
    for place in ((4, 0), (0, 2)):
        for _ in range(2):
            with pytest.raises(IndexError, match=r"has 4 replicas of 2 cores"):
                getattr(assignment, name)(*place)
    assert getattr(assignment, name)(-1, -1) == getattr(assignment, name)(3, 1)


def test_an_empty_assignment_has_nothing_to_look_up():
    assignment = DeviceAssignment.build(Topology.from_accelerator_type("v2-8"), [2, 2, 1, 2], num_replicas=0)
    assert assignment.core_assignment.shape == (0, 8, 4)
    with pytest.raises(IndexError):
        assignment.tpu_ordinal()
    with pytest.raises(ValueError, match="Can not find"):
        assignment.lookup_replicas(0, 0)


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cores", "words"),
    [
        ([[[0, 0, 0, 0]], [[0, 0, 0, 0]]], r"\(0, 0, 0, 0\) twice: for logical core 0 of replica 0 and .* replica 1"),
        ([[[0, 0, 0, 5]]], r"core_assignment\[0, 0\] is \(0, 0, 0, 5\), which is outside of the mesh"),
        ([[[-1, 0, 0, 0]]], "index -1 is out of bounds for axis 0 with size 2"),
        ([[[0, 0, 0, 0], [1, 1, 0, 0]]], r"\[0, 1\] is \(1, 1, 0, 0\), which has no device: assign cores that are not"),
    ],
)
def test_repeated_off_mesh_and_absent_cores_are_refused(cores, words):
    whole = coordinates_of_slice((2, 2, 1), (1, 1, 1), 2)
    topology = Topology(mesh_shape=[2, 2, 1, 2], device_coordinates=whole[:3])
    with pytest.raises(CoordinateError, match=words):
        DeviceAssignment(topology, cores)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"num_replicas": -1}, "num_replicas must not be negative; got -1. At most 8"),
        ({"computation_shape": [1, 1, 1.5, 1]}, "computation_shape must be integers; got 1.5"),
        ({"computation_shape": [1, 1, 1, 2**40]}, "32-bit"),
        ({"computation_shape": [2**16, 2**16, 1, 1], "computation_stride": [2**16, 2**16, 1, 1]}, "does not fit"),
        ({"computation_shape": [[1, 1, 1, 1]]}, r"computation_shape must have shape \[4\]; got \(1, 4\)"),
        ({"device_order_mode": 3}, "device_order_mode is 3: expected a DeviceOrderMode"),
        ({"device_order_mode": "rings"}, "device_order_mode is 'rings'"),
        ({"num_replicas": 1, "device_order_mode": "ring"}, "DeviceOrderMode.RING is not compatible.*whole chips"),
    ],
)
def test_arguments_that_make_no_assignment_are_refused(options, words):
    with pytest.raises(ValueError, match=f"(?s){words}"):
        DeviceAssignment.build(Topology.from_accelerator_type("v2-8"), **options)


def test_a_number_of_replicas_is_whole():
    with pytest.raises(TypeError):
        DeviceAssignment.build(Topology.from_accelerator_type("v2-8"), num_replicas=1.5)


def test_an_order_mode_may_be_named():
    topology = Topology.from_accelerator_type("v4-8", megacore=True)
    named, member = (
        DeviceAssignment.build(topology, num_replicas=4, device_order_mode=mode)
        for mode in ("mesh", DeviceOrderMode.MESH)
    )
    assert named.core_assignment.tolist() == member.core_assignment.tolist()


# --- degraded slices ------------------------------------------------------------------------------------------------


def degraded():
    """A slice of 2x2 chips of two cores whose second task, with the devices of one chip, is missing."""
    whole = coordinates_of_slice((2, 2, 1), (1, 1, 1), 2)
    return Topology(mesh_shape=[2, 2, 1, 2], device_coordinates=whole[[0, 2, 3]])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"computation_stride": [2, 1, 1, 1]}, "requires a slice without missing devices, but 2 are missing"),
        (
            {"computation_shape": [1, 1, 1, 2], "num_replicas": 4},
            r"(?s)requested 4 replicas of 2 cores, 8 in all, but only 6 .*at most 3 replicas",
        ),
    ],
)
def test_what_a_degraded_slice_has_no_devices_for_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        DeviceAssignment.build(degraded(), **options)


@pytest.mark.parametrize("replicas", [0, 1, 3])
def test_a_degraded_slice_is_filled_in_the_order_of_tasks(replicas):
    topology = degraded()
    assignment = DeviceAssignment.build(topology, [1, 1, 1, 2], num_replicas=replicas)
    assert assignment.core_assignment.tolist() == topology.device_coordinates[:replicas].tolist()
    assert assignment.core_assignment.shape == (replicas, 2, 4)


# --- the object -----------------------------------------------------------------------------------------------------


def test_an_assignment_is_its_own_and_read_only():
    cores = np.zeros((1, 1, 4), np.int32)
    assignment = DeviceAssignment(Topology.from_accelerator_type("v2-8"), cores)
    cores[:] = 1
    assert assignment.core_assignment.tolist() == SINGLE_CORE_ASSIGNMENT
    with pytest.raises(ValueError, match="read-only"):
        assignment.core_assignment[...] = 1


def test_a_serialized_topology_will_do():
    topology = Topology.from_accelerator_type("v2-8")
    assert DeviceAssignment.build(topology.serialized(), num_replicas=8).topology.num_tasks == 1


def test_an_assignment_can_be_pickled():
    assignment = DeviceAssignment.build(Topology.from_accelerator_type("v4-16"), [1, 2, 2, 2], num_replicas=2)
    again = pickle.loads(pickle.dumps(assignment))
    assert repr(again) == repr(assignment)
    assert again.host_device(1, 3) == assignment.host_device(1, 3)


@pytest.mark.parametrize(
    ("shape", "replicas", "text"),
    [
        ([2, 2, 1, 2], 1, "<DeviceAssignment: 1 replica of 8 cores on a v2-8 slice, mesh_shape [2 2 1 2]>"),
        ([1, 1, 1, 1], 8, "<DeviceAssignment: 8 replicas of 1 core on a v2-8 slice, mesh_shape [2 2 1 2]>"),
    ],
)
def test_an_assignment_says_what_it_is(shape, replicas, text):
    assert repr(DeviceAssignment.build(Topology.from_accelerator_type("v2-8"), shape, num_replicas=replicas)) == text


def test_an_assignment_that_leaves_chips_empty_says_so():
    slice_ = Topology.from_accelerator_type("v4-16")
    pairs = repr(DeviceAssignment.build(slice_, num_replicas=8))
    assert "mesh_shape [2 2 2 2], 4 of 8 chips used (a topology with megacore=True has one replica on each" in pairs
    whole = Topology.from_accelerator_type("v4-16", megacore=True)
    assert "used" not in repr(DeviceAssignment.build(whole, num_replicas=8))
    assert repr(DeviceAssignment.build(whole, [2, 2, 1, 1], num_replicas=1)).endswith(" 4 of 8 chips used>")


def test_too_many_replicas_and_a_wrong_topology_are_answered_with_a_remedy():
    with pytest.raises(ValueError, match=r"requested 9 replicas .* Use num_replicas=8 or fewer"):
        DeviceAssignment.build(Topology.from_accelerator_type("v2-8"), num_replicas=9)
    with pytest.raises(ValueError, match=r"got <class 'str'>: pass Topology.from_accelerator_type\('v4-128'\)"):
        DeviceAssignment.build("v4-128")


def test_devices_of_whole_chips_are_called_chips():
    slice_ = Topology.from_accelerator_type("v5p-128", megacore=True)
    assignment = DeviceAssignment.build(slice_, [2, 2, 2, 1], num_replicas=8)
    assert repr(assignment).startswith("<DeviceAssignment: 8 replicas of 8 chips on a v5p-128 slice")
    with pytest.raises(IndexError, match="has 8 replicas of 8 chips"):
        assignment.coordinates(8, 0)


def test_a_slice_beyond_any_pod_takes_little_memory_and_no_loops():
    mesh = (32, 32, 32, 2)
    topology = Topology(mesh_shape=mesh, device_coordinates=coordinates_of_slice(mesh[:3], (2, 2, 1), 2))
    assignment = DeviceAssignment.build(topology, [1, 1, 1, 2], num_replicas=32768)
    cells = np.ravel_multi_index(tuple(assignment.core_assignment.reshape(-1, 4).T), mesh)
    np.testing.assert_array_equal(np.sort(cells), np.arange(65536))
    ring = assignment.core_assignment[:, 0, :3]
    assert (np.abs(ring - np.roll(ring, 1, 0)).sum(1) == 1).all()
