"""Strategies for TPUs answer what TensorFlow answered.

Cases recorded from tensorflow-cpu 2.21.0 by gen_tpu.py, on TPUStrategies over a resolver that reports devices which are
not there. Shardings are those of the OpSharding messages that TensorFlow attaches to tensors.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import ringlet
from ringlet.compat import tf
from ringlet.sharding import Sharding
from ringlet.sharding.layout.partition import check_partition
from ringlet.tpu.topology.system_metadata import cores_by_host, cores_per_host
from tests.conformance.common import assert_same, assert_same_error, case_id, decode_components, is_incidental, load

CASES = load("tpu")

# Groups whose answers differ on purpose, each a row of docs/differences.md.
DIFFERENT = {"run_plain_function": "plain functions run"}

# --- the systems of the cases ----------------------------------------------------------------------------------------


class FakeResolver:
    """Knows some hosts with as many TPU devices each."""

    def __init__(self, tasks: int, per_task: int, job: str = "worker") -> None:
        devices = tuple(
            SimpleNamespace(name=f"/job:{job}/replica:0/task:{task}/device:{kind}:{device}")
            for task in range(tasks)
            for kind, count in (("CPU", 1), ("TPU", per_task))
            for device in range(count)
        )
        self._metadata = ringlet.tpu.TPUSystemMetadata(tasks * per_task, tasks, per_task, None, devices)

    def get_tpu_system_metadata(self) -> Any:
        return self._metadata


def resolver_of(mesh: Sequence[int], per_task: int, job: str = "worker") -> Any:
    return FakeResolver(math.prod(mesh) // per_task, per_task, job)


def assignment_of(mesh: Sequence[int], per_task: int, shape: Sequence[int], replicas: int) -> Any:
    x, y, z, core = np.indices(mesh)
    # Task by task in the order of the mesh, the last axis fastest.
    coordinates = np.stack([x, y, z, core], -1).reshape(-1, per_task, 4)
    topology = ringlet.tpu.Topology(mesh_shape=mesh, device_coordinates=coordinates)
    return ringlet.tpu.DeviceAssignment.build(topology, computation_shape=shape, num_replicas=replicas)


LOGICAL = {  # logical devices of a replica: mesh, computation shape
    1: ((2, 2, 1, 2), (1, 1, 1, 1)),
    2: ((2, 2, 1, 2), (1, 1, 1, 2)),
    3: ((3, 1, 1, 1), (3, 1, 1, 1)),
    4: ((2, 2, 1, 2), (2, 1, 1, 2)),
    6: ((3, 2, 1, 1), (3, 2, 1, 1)),
    8: ((2, 2, 1, 2), (2, 2, 1, 2)),
    16: ((4, 2, 1, 2), (4, 2, 1, 2)),
}


@functools.cache
def with_logical_devices(count: int, is_spmd: bool = False) -> Any:
    mesh, shape = LOGICAL[count]
    assignment = assignment_of(mesh, math.prod(mesh), shape, 1)
    return ringlet.TPUStrategy(resolver_of(mesh, math.prod(mesh)), assignment, is_spmd)


@functools.cache
def with_replicas(count: int) -> Any:
    mesh = {2: (2, 1, 1, 1), 4: (2, 2, 1, 1), 8: (2, 2, 1, 2)}[count]
    return ringlet.TPUStrategy(resolver_of(mesh, count))


# --- what cases ask for ----------------------------------------------------------------------------------------------


def described(sharding: Sharding, shape: Sequence[int | None] | None = None) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "type": sharding.type,
        "tile_assignment_dimensions": list(sharding.tile_assignment_dimensions),
        "tile_assignment_devices": list(sharding.tile_assignment_devices),
    }
    if shape is not None:
        answer["tile_assignment"] = sharding.tile_assignment
        answer["slices"] = [
            [None if size is None else [cut.start, cut.stop] for size, cut in zip(shape, cuts, strict=True)]
            for cuts in sharding.slices(shape)
        ]
    return answer


def split(given: dict[str, Any]) -> Any:
    strategy, shape, parts = (
        with_logical_devices(given["logical_devices"]),
        given["shape"],
        given["partition_dimensions"],
    )
    # There are no tensors of unknown sizes here, and one tile is the whole, which says no more than that.
    if None in shape or given["logical_devices"] == 1:
        return described(Sharding.tiled(check_partition(shape, parts, given["logical_devices"])), shape)
    tensor = np.arange(math.prod(shape), dtype=np.float32).reshape(shape)
    found = strategy.experimental_split_to_logical_devices(tensor, parts)
    for tile, cuts in zip(found.shards, found.sharding.slices(shape), strict=True):
        np.testing.assert_array_equal(tile, tensor[cuts])
    return described(found.sharding, shape)


def assign(given: dict[str, Any]) -> Any:
    strategy = with_logical_devices(given["logical_devices"], given["spmd"])
    return described(strategy.experimental_assign_to_logical_device(np.ones(16), given["logical_device_id"]).sharding)


def replicate(given: dict[str, Any]) -> Any:
    strategy = with_logical_devices(given["logical_devices"], given["spmd"])
    return described(strategy.experimental_replicate_to_logical_devices(np.ones(16)).sharding)


def logical_device(given: dict[str, Any]) -> Any:
    extended = with_logical_devices(given["logical_devices"]).extended
    with extended.experimental_logical_device(given["logical_device_id"]):
        return list(extended.worker_devices)


def view(strategy: Any) -> dict[str, Any]:
    extended = strategy.extended
    names = (
        "num_hosts num_replicas_per_host steps_per_run experimental_require_static_shapes should_checkpoint "
        "should_save_summary experimental_between_graph experimental_should_init"
    )
    return {
        "num_replicas_in_sync": strategy.num_replicas_in_sync,
        "worker_devices": list(extended.worker_devices),
        "parameter_devices": list(extended.parameter_devices),
        "tpu_devices": extended.tpu_devices.tolist(),
        "input_workers": [[host, list(devices)] for host, devices in extended.input_devices.items()],
        **{name: getattr(extended, name) for name in names.split()},
    }


def given_assignment(given: dict[str, Any]) -> Any:
    return assignment_of(
        given["mesh_shape"], given["devices_per_task"], given["computation_shape"], given["num_replicas"]
    )


def given_resolver(given: dict[str, Any]) -> Any:
    return resolver_of(given["mesh_shape"], given["devices_per_task"], given["job"])


def strategy_v1(given: dict[str, Any]) -> Any:
    make = tf.compat.v1.distribute.experimental.TPUStrategy
    strategy = make(given_resolver(given), given["steps_per_run"], given_assignment(given))
    return view(strategy) | {"steps_per_run_attr": strategy.steps_per_run}


def reduce(given: dict[str, Any]) -> Any:
    strategy, values = with_replicas(given["replicas"]), decode_components(given["per_replica"])
    value = strategy.experimental_distribute_values_from_function(lambda c: values[c.replica_id_in_sync_group])
    return strategy.reduce(given["op"], value, given["axis"])


PER_REPLICA = ringlet.InputOptions(experimental_replication_mode=ringlet.InputReplicationMode.PER_REPLICA)


def dataset() -> Any:
    return ringlet.data.Dataset.range(4).batch(2)


def device_dict(given: dict[str, Any]) -> Any:
    return cores_by_host([SimpleNamespace(name=name) for name in given["devices"]])._asdict()


def same_core_count(given: dict[str, Any]) -> Any:
    return cores_per_host(cores_by_host([SimpleNamespace(name=name) for name in given["devices"]]).device_map)


GROUPS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "split/ok": split,
    "split/misuse": split,
    "assign": assign,
    "assign_spmd": assign,
    "replicate": replicate,
    "experimental_logical_device": logical_device,
    "strategy/no_assignment": lambda given: view(ringlet.TPUStrategy(given_resolver(given))),
    "strategy/assignment": lambda given: view(
        ringlet.TPUStrategy(given_resolver(given), experimental_device_assignment=given_assignment(given))
    ),
    "strategy_v1": strategy_v1,
    "reduce": reduce,
    "reduce_misuse": lambda given: with_replicas(given["replicas"]).reduce(given["op"], np.float32(1), axis=None),
    "values_from_function": lambda given: with_replicas(given["replicas"]).experimental_distribute_values_from_function(
        lambda context: context.replica_id_in_sync_group * 10
    ),
    "per_replica_input": lambda given: with_replicas(given["replicas"]).experimental_distribute_dataset(
        dataset(), PER_REPLICA
    ),
    "per_replica_input_fn": lambda given: with_replicas(given["replicas"]).distribute_datasets_from_function(
        lambda _: dataset(), PER_REPLICA
    ),
    "device_dict": device_dict,
    "same_core_count": same_core_count,
}

# --- the cases -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=map(case_id, CASES))
def test_a_recorded_case_has_the_recorded_answer(case):
    if reason := DIFFERENT.get(case["group"]):
        pytest.skip(f"differs on purpose: {reason}")
    ask, expected = GROUPS[case["group"]], case["expect"]
    if "ok" in expected:
        assert_same(expected["ok"], ask(case["input"]))
        return
    with pytest.raises(Exception) as caught:  # noqa: PT011  # which one is compared below
        ask(case["input"])
    assert_same_error(expected["error"], caught.value)


@pytest.mark.parametrize("replicas", [2, 4, 8])
def test_plain_functions_run(replicas):
    assert with_replicas(replicas).run(lambda: 1) == 1


def test_cases_that_are_not_compared_are_counted(capsys):
    differ = sum(case["group"] in DIFFERENT for case in CASES)
    accidents = sum(is_incidental(case["expect"]) for case in CASES)
    with capsys.disabled():
        print(
            f"\nrecorded TPU cases: {len(CASES) - differ} of {len(CASES)} compared, {differ} differ on purpose; "
            f"{accidents} of them are incidental errors, for which any exception will do"
        )
    assert differ < len(CASES) / 50
