"""What is costed and drawn: an assignment or a slice, and nothing else."""

from __future__ import annotations

import pytest

from ringlet.tpu import DeviceAssignment, drawing, simulate
from ringlet.tpu.topology.topology_of import topology_of
from tests.tpu.meshes import mesh


def test_an_assignment_has_its_slice_and_a_topology_is_its_own():
    topology = mesh(2, 2)
    assert topology_of(topology) is topology
    assert topology_of(DeviceAssignment.build(topology)) is topology


@pytest.mark.parametrize("use", [topology_of, simulate, drawing.text, drawing.svg])
@pytest.mark.parametrize("given", ["v4-8", None])
def test_anything_else_is_named(use, given):
    words = rf"expected a DeviceAssignment or a Topology, got {given!r}\. Pass Topology\.from_accelerator_type"
    with pytest.raises(TypeError, match=words):
        use(given)
