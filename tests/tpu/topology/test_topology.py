"""Topologies: checked when they are made, read-only afterwards, and models of the slices that names stand for."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.tpu import GENERATIONS, CoordinateError, Topology
from ringlet.tpu.topology.topology import coordinates_of_slice


def topology_of(*places, mesh_shape=(2, 2, 1, 2), devices=1):
    return Topology(mesh_shape=mesh_shape, device_coordinates=np.array(places).reshape(-1, devices, 4))


@st.composite
def slices(draw):
    """A mesh, and devices on some or all of its cores in any order."""
    mesh = draw(st.tuples(*[st.integers(1, 4)] * 3, st.integers(1, 2)))
    cells = draw(st.permutations(list(itertools.product(*map(range, mesh)))))
    devices = draw(st.integers(1, len(cells)))
    tasks = draw(st.integers(1, len(cells) // devices))
    return mesh, np.array(cells[: tasks * devices]).reshape(tasks, devices, 4)


# --- as TensorFlow has it -------------------------------------------------------------------------------------------


@given(slices())
def test_every_device_is_found_at_its_coordinates(slice_):
    mesh, coordinates = slice_
    topology = Topology(mesh_shape=mesh, device_coordinates=coordinates)
    for task, devices in enumerate(coordinates.tolist()):
        for device, place in enumerate(devices):
            assert topology.task_ordinal_at_coordinates(place) == task
            assert topology.tpu_device_ordinal_at_coordinates(place) == device
            assert topology.tpu_device_name_at_coordinates(place) == f"/task:{task}/device:TPU:{device}"


@given(slices())
def test_cores_without_a_device_are_missing_and_stand_for_minus_one(slice_):
    mesh, coordinates = slice_
    topology = Topology(mesh_shape=mesh, device_coordinates=coordinates)
    there = set(map(tuple, coordinates.reshape(-1, 4).tolist()))
    missing = [place for place in itertools.product(*map(range, mesh)) if place not in there]
    assert list(map(tuple, topology.missing_devices.tolist())) == missing
    assert topology.missing_devices.shape == (len(missing), 4)
    assert not topology.missing_devices.flags.writeable
    for place in missing[:3]:
        assert topology.task_ordinal_at_coordinates(place) == -1
        assert topology.cpu_device_name_at_coordinates(place, job="w") == "/job:w/task:-1/device:CPU:0"


@given(slices())
def test_a_serialized_topology_is_the_same_again(slice_):
    mesh, coordinates = slice_
    topology = Topology(mesh_shape=mesh, device_coordinates=coordinates)
    again = Topology(serialized=topology.serialized(), mesh_shape="ignored", device_coordinates="ignored")
    np.testing.assert_array_equal(again.device_coordinates, topology.device_coordinates)
    np.testing.assert_array_equal(again.mesh_shape, topology.mesh_shape)
    assert again.serialized() == topology.serialized()


def test_the_bytes_are_those_that_it_was_made_of():
    odd = bytes([0x10, 0x01]) + Topology.from_accelerator_type("v2-8").serialized()
    assert Topology(serialized=odd).serialized() == odd


def test_lookups_count_from_the_end_as_numpy_does():
    topology = Topology.from_accelerator_type("v2-8")
    assert topology.tpu_device_ordinal_at_coordinates([-1, -1, 0, -1]) == 7


@pytest.mark.parametrize("place", [[2, 0, 0, 0], [0, 0, 0, -3], [0, 0, 0], [0, 0, 0, 0, 0]])
def test_a_lookup_outside_of_the_mesh_is_refused(place):
    with pytest.raises(CoordinateError, match=r"[Cc]oordinates (are )?x, y, z and core"):
        Topology.from_accelerator_type("v2-8").task_ordinal_at_coordinates(place)


@pytest.mark.parametrize(
    ("places", "words"),
    [
        ([[0, 0, 0, -1]], r"device_coordinates\[0, 0\] is \(0, 0, 0, -1\), which is outside of the mesh \[2 2 1 2\]"),
        ([[0, 0, 0, 0], [0, 2, 0, 0]], r"device_coordinates\[1, 0\] is \(0, 2, 0, 0\)"),
        ([[0, 1, 0, 0]] * 2, r"\(0, 1, 0, 0\) twice: for device 0 of task 0 and for device 0 of task 1"),
    ],
)
def test_negative_off_mesh_and_repeated_coordinates_are_refused(places, words):
    with pytest.raises(CoordinateError, match=words):
        topology_of(*places)


def test_repeated_coordinates_of_serialized_bytes_are_refused():
    data = bytes([10, 4, 2, 1, 1, 1, 16, 1, 24, 2, 34, 8, *[0] * 8])
    with pytest.raises(ValueError, match=r"\(0, 0, 0, 0\) twice: for device 0 of task 0 and for device 1 of task 0"):
        Topology(serialized=data)


def test_coordinates_of_the_wrong_rank_are_refused():
    with pytest.raises(ValueError, match=r"must be a rank 3 int32 array .*shape=\(2, 4\)"):
        Topology(mesh_shape=[2, 2, 1, 1], device_coordinates=[[0, 0, 0, 0], [0, 1, 0, 0]])


@pytest.mark.parametrize("given", [{}, {"serialized": b""}, {"mesh_shape": [1, 1, 1, 1]}])
def test_a_topology_of_nothing_is_refused(given):
    with pytest.raises(TypeError, match="requires `serialized`, or both `mesh_shape` and `device_coordinates`"):
        Topology(**given)


def test_a_mesh_beyond_all_measure_is_refused_and_not_filled():
    # 64,000 cores along each axis
    data = bytes([10, 12, *[0x80, 0xF4, 0x03] * 4])
    with pytest.raises(ValueError, match=f"has {64_000**4} cores; the maximum"):
        Topology(serialized=data)


def test_what_a_topology_holds_is_read_only_and_its_own():
    mesh, places = np.array([1, 1, 1, 1]), np.zeros((1, 1, 4), np.int32)
    topology = Topology(mesh_shape=mesh, device_coordinates=places)
    places[:] = 5
    assert topology.device_coordinates.tolist() == [[[0, 0, 0, 0]]]
    for array in (topology.mesh_shape, topology.device_coordinates, topology.hosts):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 1


def test_a_topology_can_be_pickled():
    topology = Topology.from_accelerator_type("v4-16")
    again = pickle.loads(pickle.dumps(topology))
    assert repr(again) == repr(topology)
    np.testing.assert_array_equal(again.device_coordinates, topology.device_coordinates)


# --- slices by name -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "megacore", "mesh_shape", "tasks", "devices"),
    [
        # name, both cores as one, mesh, hosts, devices of each
        ("v2-8", False, [2, 2, 1, 2], 1, 8),
        ("v3-32", False, [4, 4, 1, 2], 4, 8),
        ("v4-16", False, [2, 2, 2, 2], 2, 8),
        ("v4-32", True, [2, 2, 4, 1], 4, 4),
        ("v5p-4x4x8", True, [4, 4, 8, 1], 32, 4),
        ("v5litepod-1", False, [1, 1, 1, 1], 1, 1),
        ("v5litepod-8", False, [2, 4, 1, 1], 1, 8),
        ("v5litepod-16", False, [4, 4, 1, 1], 4, 4),
        ("v5e:8x16", True, [8, 16, 1, 1], 32, 4),
        ("v5e-4x2", False, [4, 2, 1, 1], 1, 8),
        ("tpu7x-2", False, [1, 1, 1, 2], 1, 2),
        ("tpu7x-128", False, [4, 4, 4, 2], 16, 8),
    ],
)
def test_a_name_gives_a_full_slice_with_its_hosts_as_tasks(name, megacore, mesh_shape, tasks, devices):
    topology = Topology.from_accelerator_type(name, megacore)
    assert topology.mesh_shape.tolist() == mesh_shape
    assert (topology.num_tasks, topology.num_tpus_per_task) == (tasks, devices)
    assert topology.missing_devices.shape == (0, 4)


def test_devices_are_numbered_as_on_real_slices():
    # As jax.devices() listed a v2-8: cores of a chip, then x, then y.
    places = Topology.from_accelerator_type("v2-8").device_coordinates[0].tolist()
    assert ["".join(map(str, place)) for place in places] == [
        "0000", "0001", "1000", "1001", "0100", "0101", "1100", "1101",
    ]  # fmt: skip
    hosts = Topology.from_accelerator_type("v4-64").device_coordinates[:, 0, :3]
    assert hosts.tolist() == [[0, y, z] for z in range(4) for y in (0, 2)]


@pytest.mark.parametrize("name", ["v2-8", "v3-8", "tpu7x-8"])
def test_cores_that_cannot_work_as_one_are_not_made_one(name):
    with pytest.raises(ValueError, match=r"the 2 cores of a v.* chip cannot form one device. Omit megacore"):
        Topology.from_accelerator_type(name, megacore=True)


@pytest.mark.parametrize("generation", GENERATIONS.values(), ids=GENERATIONS)
def test_numbers_of_a_slice_are_consistent(generation):
    for shape in generation.shapes:
        name = f"{generation.prefixes[0]}-{'x'.join(map(str, shape[: generation.torus_rank]))}"
        topology = Topology.from_accelerator_type(name)
        assert topology.generation is generation
        assert topology.num_devices == topology.num_chips * generation.cores_per_chip
        assert topology.hosts.shape == topology.chip_shape
        hosts, chips = np.unique(topology.hosts, return_counts=True)
        assert hosts.tolist() == list(range(topology.num_tasks))
        assert set(chips.tolist()) == {topology.num_tpus_per_task // generation.cores_per_chip}


def test_wraps_are_those_of_the_generation_or_as_given():
    assert Topology.from_accelerator_type("v5e:8x16").wrap == (False, True, False)
    assert Topology.from_accelerator_type("v5e:8x16", wrap=[True, False, False]).wrap == (True, False, False)
    with pytest.raises(ValueError, match="3 bools"):
        Topology.from_accelerator_type("v5e:8x16", wrap=[True])


def test_arrays_make_a_slice_of_a_generation_too():
    coordinates = coordinates_of_slice((4, 4, 4), (2, 2, 1), 1)
    topology = Topology(mesh_shape=[4, 4, 4, 1], device_coordinates=coordinates, generation="v4")
    assert topology.wrap == (True, True, True)
    assert (topology.cores_per_chip, topology.is_megacore) == (2, True)
    unknown = Topology(mesh_shape=[4, 4, 4, 1], device_coordinates=coordinates)
    assert (unknown.generation, unknown.wrap, unknown.accelerator_type) == (None, (False, False, False), None)
    with pytest.raises(ValueError, match="unknown generation 'v9': expected one of v2, v3, v4"):
        Topology(mesh_shape=[4, 4, 4, 1], device_coordinates=coordinates, generation="v9")


def test_a_torus_of_fitting_sides_can_be_twisted():
    twisted, flat = (Topology.from_accelerator_type("v4-4x4x8", twisted=twist) for twist in (True, False))
    assert (twisted.links().target != flat.links().target).sum() == 2 * 2 * 4 * 8
    for name in ("v4-4x4x4", "v4-2x2x1"):  # sides that do not fit, and sides that fit and do not wrap
        with pytest.raises(ValueError, match="cannot form a twisted torus"):
            Topology.from_accelerator_type(name, twisted=True)


def test_chips_without_a_device_have_no_host():
    whole = coordinates_of_slice((2, 2, 1), (1, 1, 1), 2)
    topology = Topology(mesh_shape=[2, 2, 1, 2], device_coordinates=whole[[0, 1, 3]])
    assert topology.hosts[..., 0].tolist() == [[0, -1], [1, 2]]
    assert topology.num_chips == 4
    assert topology.num_devices == 6


def test_links_count_chips_without_a_device_too():
    topology = topology_of([0, 0, 0, 0])
    assert len(topology.links()) == 8
