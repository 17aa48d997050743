"""Devices in a grid with named axes."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import ringlet
from ringlet.errors import ShardingError
from ringlet.sharding import Mesh, NamedSharding, PartitionSpec
from ringlet.sharding.layout.device_group import DeviceGroup
from tests.values.test_notebook_repr import Table

MESH = Mesh({"x": 4, "y": 2})


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (PartitionSpec("x", "y"), "{devices=[4,2]<=[8]}"),
        (PartitionSpec("y", "x"), "{devices=[2,4]<=[4,2]T(1,0)}"),
        (PartitionSpec(("y", "x")), "{devices=[8,1]<=[4,2]T(1,0)}"),
        (PartitionSpec("x"), "{devices=[4,1,2]<=[8] last_tile_dim_replicate}"),
        (PartitionSpec(None, "y"), "{devices=[1,2,4]<=[4,2]T(1,0) last_tile_dim_replicate}"),
        (PartitionSpec("y", unreduced=["x"]), "{devices=[2,1,4]<=[4,2]T(1,0) last_tile_dims={unreduced}}"),
        (PartitionSpec(unreduced=["x", "y"]), "{unreduced}"),
        (PartitionSpec(), "{replicated}"),
    ],
)
def test_axes_become_tiles(spec, text):
    assert str(NamedSharding(MESH, spec).for_ndim(2)) == text


def test_an_axis_may_have_one_device():
    assert str(Mesh({"x": 1, "y": 2}).sharding("x", "y").for_ndim(2)) == "{devices=[1,2]<=[2]}"


def test_axes_that_are_summed_over_are_in_the_order_of_the_mesh():
    grid = Mesh({"y": 2, "x": 2, "z": 2})  # as jax has it
    assert str(grid.sharding("z", unreduced=["x", "y"]).for_ndim(1)) == (
        "{devices=[2,4]<=[4,2]T(1,0) last_tile_dims={unreduced}}"
    )


def test_devices_may_be_in_any_order():
    mesh = Mesh({"x": 2, "y": 2}, [[3, 2], [1, 0]])
    assert str(mesh.sharding("y", "x").for_ndim(2)) == "{devices=[2,2]3,1,2,0}"


def test_meshes_over_the_same_devices_share_a_group():
    assert MESH.group == Mesh({"rows": 8}).group == DeviceGroup.of(8)
    assert len({MESH.group, Mesh({"rows": 8}).group}) == 1


def test_equal_meshes_are_equal():
    assert Mesh({"x": 4, "y": 2}) == MESH != Mesh({"y": 2, "x": 4})
    assert len({MESH, Mesh({"x": 4, "y": 2})}) == 1
    assert Mesh({"x": 4, "y": 2}).sharding("x") == MESH.sharding("x")


def test_a_mesh_is_shown_with_its_axes():
    assert repr(MESH.sharding("x", ("y",))) == "Mesh({'x': 4, 'y': 2}).sharding('x', 'y')"
    assert repr(Mesh({"x": 2}, [1, 0])) == "Mesh({'x': 2}, [1, 0])"


def test_processes_have_as_many_devices_each():
    member = SimpleNamespace(rank=1, num_ranks=2)
    assert Mesh({"x": 4}, member=member).group.owner == (0, 0, 1, 1)
    assert Mesh({"x": 3}, member=member, owner=[1, 0, 1]).group.local_devices == (0, 2)


def test_devices_have_places_in_a_topology():
    topology = ringlet.tpu.Topology.from_accelerator_type("v5litepod-8")
    assignment = ringlet.tpu.DeviceAssignment.build(topology, computation_shape=[2, 2, 1, 1], num_replicas=2)
    group = Mesh({"x": 4}, assignment=assignment, replica=1).group
    assert (group.assignment, group.replica) == (assignment, 1)
    with pytest.raises(ShardingError, match=r"has 4 logical cores in a replica, but Mesh.* has 2 devices"):
        Mesh({"x": 2}, assignment=assignment)
    with pytest.raises(ShardingError, match="replica=2 does not exist: the assignment has replicas 0 to 1"):
        Mesh({"x": 4}, assignment=assignment, replica=2)


@pytest.mark.parametrize("axes", [{}, {"x": 0}, {"x": -1}, {"x": 1.5}, {1: 2}])
def test_axes_have_names_and_sizes(axes):
    with pytest.raises(ShardingError, match="the axes of a mesh must map names to sizes"):
        Mesh(axes)


GRID = np.array([[3, 2], [1, 0]])


@pytest.mark.parametrize("mesh", [Mesh(GRID, ("x", "y")), Mesh(GRID.tolist(), axis_names=["x", "y"])])
def test_a_mesh_may_be_spelled_as_in_jax(mesh):
    assert mesh == Mesh({"x": 2, "y": 2}, GRID)
    assert Mesh(np.arange(4), "x") == Mesh(range(4), ("x",)) == Mesh({"x": 4})


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (((4, 2), ("x", "y")), r"Mesh\({'x': 4, 'y': 2}\) or Mesh\(np.arange\(8\).reshape\(4, 2\), \('x', 'y'\)\)"),
        ((GRID, ("x",)), r"given axes array\(\[\[3, 2\], \[1, 0\]\]\) and \('x',\): .* Write Mesh\({'x': 4, 'y': 2}\)"),
        ((GRID, ("x", "x")), "the name of each of its axes"),
        ((GRID,), "and None: expected"),
        ((("x", "y"),), "expected the size of each axis by its name"),
        ((None,), "expected the size of each axis by its name"),
        (({"x": 4}, ("x", "y")), "the size of each axis by its name"),
        ((np.zeros((100, 100)), "x"), r"axes array\(.{30,40}\.\.\. of shape \(100, 100\) and 'x'"),
    ],
)
def test_wrong_spellings_are_answered_with_the_line_to_write(arguments, line):
    with pytest.raises(ShardingError, match=line):
        Mesh(*arguments)


def test_a_mesh_is_a_table_in_a_notebook():
    assert str(Mesh({"x": 2, "y": 1}, [1, 0])) == "Mesh(x=2, y=1, devices=[[1], [0]])"
    table = Table(Mesh({"<x>": 2, "y": 2})._repr_html_())
    assert (table.caption, table.rows) == ("Mesh", [["<x>", "2"], ["y", "2"], ["devices", "[[0, 1], [2, 3]]"]])


@pytest.mark.parametrize("devices", [[0, 0], [0], [0, 1, 2], [1, 2], [0.5, 1]])
def test_each_device_is_in_the_mesh_once(devices):
    with pytest.raises(ShardingError, match="devices of this mesh must be 0 to 1, each once"):
        Mesh({"x": 2}, devices)


def test_a_mesh_has_no_more_devices_than_any_machine():
    with pytest.raises(ShardingError, match="at most 1048576 devices"):
        Mesh({"x": 2**20, "y": 2**20})


@pytest.mark.parametrize("arguments", [(MESH, "x"), (MESH, None), ("mesh", PartitionSpec())])
def test_a_mesh_and_a_specification_are_joined(arguments):
    with pytest.raises(TypeError, match="expected a mesh and a PartitionSpec"):
        NamedSharding(*arguments)


def test_a_specification_names_axes_of_the_mesh():
    with pytest.raises(ShardingError, match=r"names the axis 'z', which Mesh\(x=4, y=2\) does not have"):
        MESH.sharding("z")


def test_a_specification_has_no_more_entries_than_an_array_has_dimensions():
    with pytest.raises(ShardingError, match="for arrays of 3 dimensions or more, but this array has 2"):
        MESH.sharding("x", None, None).for_ndim(2)


@pytest.mark.parametrize(("owner", "reason"), [([0, 2], "list the ranks, 0 to 1,"), ([0], "own the 2 devices")])
def test_each_device_is_of_a_process_that_there_is(owner, reason):
    with pytest.raises(ShardingError, match=reason):
        Mesh({"x": 2}, member=SimpleNamespace(rank=0, num_ranks=2), owner=owner)


def test_who_has_devices_needs_a_member():
    with pytest.raises(ShardingError, match="requires member="):
        Mesh({"x": 2}, owner=[0, 1])
    with pytest.raises(ShardingError, match="3 devices cannot be divided equally among 2 processes"):
        Mesh({"x": 3}, member=SimpleNamespace(rank=0, num_ranks=2))


def test_axes_in_two_mappings_are_refused_with_the_one_to_write():
    with pytest.raises(ShardingError, match=r"expected one, as in Mesh\(\{'x': 4, 'y': 2\}\)"):
        Mesh({"x": 4}, {"y": 2})
