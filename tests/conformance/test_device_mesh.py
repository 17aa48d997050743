"""Device meshes are those that JAX 0.10.2 made: logical mesh to coordinates, of devices listed host by host."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ringlet.tpu import GENERATIONS, Topology, create_device_mesh, create_hybrid_device_mesh
from ringlet.tpu.assignment.axis_assignment import assign_axes
from ringlet.tpu.topology.topology import coordinates_of_slice

GOLDEN = Path(__file__).parent / "golden"
MESHES = json.loads((GOLDEN / "jax_device_mesh.json").read_text(encoding="utf-8"))
BY_KIND = {generation.device_kind: generation for generation in GENERATIONS.values()}


def slice_of(chips, cores, *, host=(2, 2, 1), generation=None):
    """A slice of hosts of 2x2 chips, or of one small host."""
    host = tuple(min(a, b) for a, b in zip(chips, host, strict=True))
    coordinates = coordinates_of_slice(tuple(chips), host, cores)
    return Topology(mesh_shape=[*chips, cores], device_coordinates=coordinates, generation=generation)


def name_of(case):
    shape = "x".join(map(str, case["chips"]))
    return f"{case['kind']} {shape} {case['mesh_shape']} {sorted(set(case) & {'contiguous_submeshes', 'error'})}"


@pytest.mark.parametrize("case", MESHES["cases"], ids=name_of)
def test_a_mesh_is_the_one_that_jax_makes(case):
    topology = slice_of(case["chips"], case["cores_per_chip"], generation=BY_KIND[case["kind"]])
    options = {name: case[name] for name in ("contiguous_submeshes", "allow_split_physical_axes") if name in case}
    if "error" in case:
        with pytest.raises((NotImplementedError, ValueError)) as caught:
            create_device_mesh(case["mesh_shape"], topology, **options)
        assert type(caught.value).__name__ == case["error"]
        assert case["msg"][:60] in str(caught.value)
        return
    mesh = create_device_mesh(case["mesh_shape"], topology, **options)
    width = len(case["coords"][0])
    found = mesh.reshape(-1, 4)[: case.get("coords_truncated_to"), :width]
    assert mesh.shape == (*case["mesh_shape"], 4)
    np.testing.assert_array_equal(found, case["coords"])


@pytest.mark.parametrize("case", [case for case in MESHES["cases"] if "assignment" in case], ids=name_of)
def test_an_axis_assignment_is_the_one_that_jax_finds(case):
    allow_split = case.get("allow_split_physical_axes", False)
    assert assign_axes(case["chips"], case["mesh_shape"], allow_split=allow_split).tolist() == case["assignment"]


def test_the_hybrid_mesh_is_the_one_that_jax_makes():
    case = MESHES["hybrid"]
    topology = slice_of(case["chips_per_slice"], 1, generation="v4")
    mesh = create_hybrid_device_mesh(case["mesh_shape"], case["dcn_mesh_shape"], [topology] * case["slices"])
    assert list(mesh.shape[:-1]) == case["result_shape"]
    assert mesh[..., :4].reshape(-1, 4).tolist() == case["slice_and_coords"]
