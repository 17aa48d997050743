"""Rings, assignments and serialized topologies are those that TensorFlow 2.21.0 produced.

Tasks are hosts of 2x2 chips, x first, then y, then z; inside, cores go first, then x, y, z.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ringlet.tpu import DeviceAssignment, DeviceOrderMode, Topology
from ringlet.tpu.assignment.placement import ring
from ringlet.tpu.topology.topology import coordinates_of_slice

GOLDEN = Path(__file__).parent / "golden" / "tf_device_assignment.json"
ASSIGNMENTS = json.loads(GOLDEN.read_text(encoding="utf-8"))


def slice_of(mesh_shape, host):
    *chips, cores = mesh_shape
    host = tuple(min(a, b) for a, b in zip(chips, host, strict=True))
    return Topology(mesh_shape=mesh_shape, device_coordinates=coordinates_of_slice(tuple(chips), host, cores))


@pytest.mark.parametrize("case", ASSIGNMENTS["rings"], ids=lambda case: str(case["shape"]))
def test_a_ring_is_the_one_that_tensorflow_lays(case):
    assert ring(case["shape"]).tolist() == case["ring"]


@pytest.mark.parametrize(
    "case",
    ASSIGNMENTS["builds"],
    ids=lambda case: f"{case['mesh_shape']} {case['computation_shape']} {case['num_replicas']} {case['mode']}",
)
def test_an_assignment_is_the_one_that_tensorflow_builds(case):
    topology = slice_of(case["mesh_shape"], case["host"])
    assignment = DeviceAssignment.build(
        topology,
        case["computation_shape"],
        case["computation_stride"],
        case["num_replicas"],
        DeviceOrderMode[case["mode"]],
    )
    assert assignment.core_assignment.tolist() == case["core_assignment"]
    names = [
        [assignment.tpu_device(replica, core, job="worker") for core in range(assignment.num_cores_per_replica)]
        for replica in range(assignment.num_replicas)
    ]
    assert case["tpu_device"] in (names, None)
    for task, core, replicas in case["lookup_replicas"] or ():
        assert assignment.lookup_replicas(task, core) == replicas


def test_a_degraded_slice_is_filled_as_by_tensorflow():
    case = ASSIGNMENTS["missing"]
    whole = coordinates_of_slice(tuple(case["mesh_shape"][:3]), (2, 2, 1), case["mesh_shape"][3])
    coordinates = np.delete(whole, case["missing_task"], axis=0)
    topology = Topology(mesh_shape=case["mesh_shape"], device_coordinates=coordinates)
    assert topology.missing_devices.tolist() == case["missing_devices"]
    assignment = DeviceAssignment.build(topology, case["computation_shape"], num_replicas=case["num_replicas"])
    assert assignment.core_assignment.tolist() == case["core_assignment"]


@pytest.mark.parametrize("case", ASSIGNMENTS["serialized"], ids=lambda case: str(case["mesh_shape"]))
def test_a_serialized_topology_has_the_bytes_of_tensorflow(case):
    topology = Topology(serialized=bytes.fromhex(case["hex"]))
    assert topology.mesh_shape.tolist() == case["mesh_shape"]
    assert (topology.num_tasks, topology.num_tpus_per_task) == (case["num_tasks"], case["num_tpus_per_task"])
    again = Topology(mesh_shape=topology.mesh_shape, device_coordinates=topology.device_coordinates)
    assert again.serialized().hex() == case["hex"]
