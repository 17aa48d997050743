"""Topologies and device assignments answer what TensorFlow answered.

Cases recorded from tensorflow-cpu 2.21.0 by gen_topology.py. ``*_sha256`` are digests of the int32 values, row by row;
the large cases name the order of their coordinates: row by row over ``order``, the fastest axis last.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ringlet.tpu import DeviceAssignment, DeviceOrderMode, Topology
from tests.conformance.common import assert_same, assert_same_error, case_id, is_incidental, load

CASES = load("topology")


def digest(array: np.ndarray[Any, Any]) -> str:
    assert array.dtype == np.int32
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


# --- what is asked of a topology and of an assignment ---------------------------------------------------------------


def describe(topology: Topology, probe: Any = ()) -> dict[str, Any]:
    return {
        "mesh_shape": topology.mesh_shape,
        "mesh_rank": topology.mesh_rank,
        "num_tasks": topology.num_tasks,
        "num_tpus_per_task": topology.num_tpus_per_task,
        "missing_devices": topology.missing_devices,
        "device_coordinates_sha256": digest(topology.device_coordinates),
        "serialized_hex": topology.serialized().hex(),
        "at": [
            {
                "coordinates": place,
                "task": topology.task_ordinal_at_coordinates(place),
                "device": topology.tpu_device_ordinal_at_coordinates(place),
                "cpu": topology.cpu_device_name_at_coordinates(place),
                "cpu_job": topology.cpu_device_name_at_coordinates(place, job="worker"),
                "tpu": topology.tpu_device_name_at_coordinates(place),
                "tpu_job": topology.tpu_device_name_at_coordinates(place, job="tpu_worker"),
            }
            for place in probe
        ],
    }


def look_up(assignment: DeviceAssignment, task: int, core: int) -> list[int] | str:
    try:
        return assignment.lookup_replicas(task, core)
    except ValueError as error:
        return f"ValueError: {error}"


def describe_assignment(assignment: DeviceAssignment) -> dict[str, Any]:
    cores = range(assignment.num_cores_per_replica)
    return {
        **describe_shape(assignment),
        "core_assignment": assignment.core_assignment,
        "per_core": [
            [
                list(assignment.coordinates(replica, core)),
                assignment.tpu_ordinal(replica, core),
                assignment.host_device(replica, core),
                assignment.host_device(replica, core, job="w"),
                assignment.tpu_device(replica, core),
                assignment.tpu_device(replica, core, job="w"),
            ]
            for replica in range(assignment.num_replicas)
            for core in cores
        ],
        "lookup_replicas": [
            [task, core, look_up(assignment, task, core)]
            for task in range(assignment.topology.num_tasks + 1)
            for core in range(len(cores) + 1)
        ],
    }


def describe_shape(assignment: DeviceAssignment) -> dict[str, Any]:
    return {
        "num_replicas": assignment.num_replicas,
        "num_cores_per_replica": assignment.num_cores_per_replica,
        "core_assignment_sha256": digest(assignment.core_assignment),
        "core_assignment_shape": list(assignment.core_assignment.shape),
    }


# --- the cases ------------------------------------------------------------------------------------------------------


def coordinates_in_order(given: dict[str, Any]) -> np.ndarray[Any, Any]:
    """Coordinates row by row over the axes that `order` names."""
    axes = ["xyzc".index(name) for name in given["order"]]
    cells = np.indices([given["mesh_shape"][axis] for axis in axes]).reshape(4, -1).T
    return cells[:, np.argsort(axes)].reshape(-1, given["devices_per_task"], 4)


def topology_of(given: dict[str, Any]) -> Topology:
    if "serialized_hex" in given:
        return Topology(serialized=bytes.fromhex(given["serialized_hex"]))
    coordinates = coordinates_in_order(given) if "order" in given else given["device_coordinates"]
    return Topology(mesh_shape=given["mesh_shape"], device_coordinates=coordinates)


def build(given: dict[str, Any]) -> DeviceAssignment:
    options = {
        name: given[name] for name in ("computation_shape", "computation_stride", "num_replicas") if name in given
    }
    mode = DeviceOrderMode[given.get("device_order_mode", "AUTO")]
    return DeviceAssignment.build(topology_of(given), **options, device_order_mode=mode)


def parse(given: dict[str, Any]) -> dict[str, Any]:
    topology = topology_of(given)
    return {**describe(topology), "device_coordinates": topology.device_coordinates}


def construct(given: dict[str, Any]) -> dict[str, Any]:
    return describe_assignment(DeviceAssignment(topology_of(given), given["core_assignment"]))


def answer(case: dict[str, Any]) -> dict[str, Any]:
    area, kind = case["group"].split("/")
    given = case["input"]
    if area == "topology":
        return parse(given) if kind == "from_serialized" else describe(topology_of(given), given.get("probe", ()))
    runners: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
        "direct": construct,
        "bad_topology": lambda given: describe_assignment(DeviceAssignment.build(given["topology"])),
        "large_checksum": lambda given: describe_shape(build(given)),
    }
    return runners.get(kind, lambda given: describe_assignment(build(given)))(given)


def difference(case: dict[str, Any]) -> str | None:
    """Which row of docs/differences a case falls under, if it does."""
    given = case["input"]
    places = given.get("core_assignment") or given.get("device_coordinates") or []
    try:
        cores = np.asarray(places).reshape(-1, 4)
    except ValueError:
        return None
    if (cores < 0).any():
        return "negative coordinates are refused"
    if len(np.unique(cores, axis=0)) < len(cores):
        return "a core that is named twice is refused"
    return None


@pytest.mark.parametrize("case", CASES, ids=map(case_id, CASES))
def test_a_recorded_case_has_the_recorded_answer(case):
    expected = case["expect"]
    if "ok" in expected and (reason := difference(case)):
        with pytest.raises(ValueError, match=r"outside of the mesh|twice"):
            answer(case)
        pytest.skip(reason)
    if "error" not in expected:
        assert_same(expected["ok"], answer(case))
        return
    with pytest.raises(Exception) as caught:  # noqa: PT011 - assert_same_error looks at the type
        answer(case)
    assert_same_error(expected["error"], caught.value)
    if is_incidental(expected):
        assert isinstance(caught.value, ValueError)


def test_all_recorded_cases_are_compared(capsys):
    skipped = [case for case in CASES if "ok" in case["expect"] and difference(case)]
    with capsys.disabled():
        print(f"\nrecorded cases of topologies: {len(CASES) - len(skipped)} of {len(CASES)} compared")
    assert len(skipped) < len(CASES) / 50
