"""Device meshes: errors, parts of slices, and meshes as core assignments."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.tpu import DeviceAssignment, Topology, create_device_mesh, create_hybrid_device_mesh
from ringlet.tpu.topology.topology import coordinates_of_slice


def test_a_mesh_is_a_core_assignment():
    topology = Topology.from_accelerator_type("v4-128", megacore=True)
    mesh = create_device_mesh([4, 16], topology)
    assignment = DeviceAssignment(topology, mesh.reshape(4, 16, 4))
    assert assignment.num_cores_per_replica == 16
    assert {z for _, _, z, _ in mesh[2].tolist()} == {2}


@pytest.mark.parametrize(
    ("name", "megacore", "mesh_shape", "options", "words"),
    [
        ("v5e-16", False, [4, 5], {}, r"Number of devices 16 must equal the product of mesh_shape \(4, 5\)"),
        ("v5e-16", False, [16, 0], {}, "mesh_shape must be positive"),
        ("v5e-16", False, 16, {}, "must be a sequence of integers; got 16"),
        ("v5e-16", False, [4.0, 4], {}, "must be a sequence of integers"),
        ("v4-16", False, [4, 4], {}, "requires one device per chip, but the given v4 devices are.*megacore=True"),
        ("v4-128", True, [4, 16], {"contiguous_submeshes": True}, r"(?s)supported shapes are \(16, 4\)"),
        ("v4-16", True, [8], {"contiguous_submeshes": True}, r"(?s)topology \(2, 2, 2\).* are supported"),
    ],
)
def test_meshes_that_cannot_be_are_refused(name, megacore, mesh_shape, options, words):
    with pytest.raises(ValueError, match=words):
        create_device_mesh(mesh_shape, Topology.from_accelerator_type(name, megacore), **options)


def test_devices_with_holes_are_refused():
    places = coordinates_of_slice((2, 2, 2), (1, 1, 1), 1)[:7]
    topology = Topology(mesh_shape=[2, 2, 2, 1], device_coordinates=places, generation="v4")
    with pytest.raises(ValueError, match="the 7 devices do not fill a box, which would have 2x2x2 chips"):
        create_device_mesh([7], topology)


def test_second_cores_alone_are_refused_as_single_cores():
    places = coordinates_of_slice((2, 2, 1), (2, 2, 1), 1) + np.array([0, 0, 0, 1])
    topology = Topology(mesh_shape=[2, 2, 1, 2], device_coordinates=places)
    with pytest.raises(ValueError, match="one device per chip, but the given devices are single cores"):
        create_device_mesh([2, 2], topology)


def test_a_part_of_a_slice_is_a_mesh_of_its_own():
    places = coordinates_of_slice((2, 2, 1), (2, 2, 1), 1) + np.array([2, 0, 3, 0])
    topology = Topology(mesh_shape=[4, 4, 4, 1], device_coordinates=places, generation="v4")
    mesh = create_device_mesh([2, 2], topology)
    assert mesh[..., :3].tolist() == [[[2, 0, 3], [3, 0, 3]], [[2, 1, 3], [3, 1, 3]]]


def test_without_a_generation_chips_are_laid_by_their_axes():
    places = coordinates_of_slice((2, 2, 1), (2, 2, 1), 1)
    topology = Topology(mesh_shape=[2, 2, 1, 1], device_coordinates=places)
    assert create_device_mesh([4], topology)[:, :2].tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]


def test_slices_follow_each_other_along_their_axis():
    slices = [Topology.from_accelerator_type("v5e-16") for _ in range(4)]
    mesh = create_hybrid_device_mesh([4, 4], [2, 2], slices)
    assert mesh.shape == (8, 8, 5)
    assert mesh[::4, ::4, 0].tolist() == [[0, 1], [2, 3]]
    inner = create_device_mesh([4, 4], slices[0])
    np.testing.assert_array_equal(mesh[4:, :4, 1:], inner)


def test_tasks_may_stand_for_slices():
    topology = Topology.from_accelerator_type("v4-32", megacore=True)
    mesh = create_hybrid_device_mesh([1, 4], [4, 1], topology, process_is_granule=True)
    assert mesh[:, 0, 3].tolist() == [0, 1, 2, 3]
    assert (mesh[..., 0] == 0).all()


@pytest.mark.parametrize(
    ("inner", "outer", "count", "words"),
    [
        ([4, 4], [2], 2, "must have the same length"),
        ([4, 4], [2, 1], 3, r"Number of slices 3 must equal the product of dcn_mesh_shape \(2, 1\)"),
        ([4, 2], [2, 1], 2, "Number of devices 16 must equal"),
    ],
)
def test_hybrid_meshes_that_cannot_be_are_refused(inner, outer, count, words):
    with pytest.raises(ValueError, match=words):
        create_hybrid_device_mesh(inner, outer, [Topology.from_accelerator_type("v5e-16")] * count)


def test_a_mesh_of_the_chips_of_a_slice_whose_devices_are_cores_is_answered_with_megacore():
    with pytest.raises(ValueError, match=r"devices 16 must equal .* create the topology with megacore=True"):
        create_device_mesh([2, 4], Topology.from_accelerator_type("v4-16"))
