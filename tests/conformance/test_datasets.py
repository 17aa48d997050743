"""Distributed datasets answer what TensorFlow answered.

Cases recorded from tensorflow-cpu 2.21.0 by gen_datasets.py and gen_datasets_policy.py, on a MirroredStrategy of N CPU
devices with one worker.
"""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ringlet
from ringlet import nest
from ringlet.data import (
    AutoShardPolicy,
    Dataset,
    DistributedDataset,
    InputContext,
    InputOptions,
    InputReplicationMode,
    Optional,
)
from ringlet.data.distribution.distribute import distribute_dataset, distribute_datasets_from_function
from ringlet.errors import OutOfRangeError
from tests.conformance.pipelines import build, encode, load, local_results, written

CASES = [*load("datasets"), *load("datasets_policy")]


def mirrored(num_replicas: int) -> ringlet.MirroredStrategy:
    return ringlet.MirroredStrategy([f"CPU:{i}" for i in range(num_replicas)])


def steps_of(iterator: Any, num_replicas: int, limit: int) -> dict[str, Any]:
    """Up to `limit` steps, and the name of the exception behind the last."""
    found: dict[str, Any] = {"steps": [], "end": None}
    while len(found["steps"]) < limit:
        try:
            step = iterator.get_next() if hasattr(iterator, "get_next") else next(iterator)
        except OutOfRangeError as error:
            found["end"] = type(error).__name__
            break
        found["per_replica"] = any(isinstance(v, ringlet.DistributedValues) for v in nest.flatten(step)[0])
        found["steps"].append(local_results(step, num_replicas))
    return found


def run_dataset(given: dict[str, Any]) -> dict[str, Any]:
    distributed = distribute_dataset(build(given["pipeline"]), given["replicas"])
    found = steps_of(iter(distributed), given["replicas"], given["limit"])
    return {"element_spec": distributed.element_spec, "cardinality": distributed.cardinality, **found}


def run_policy(given: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        dataset = build(given["pipeline"], written(given, Path(folder)))
        distributed = distribute_dataset(dataset, given["replicas"])
        steps = [local_results(step, given["replicas"]) for step in distributed]
    return {"element_spec": distributed.element_spec, "steps": steps, "end": "StopIteration"}


def run_from_function(given: dict[str, Any]) -> dict[str, Any]:
    contexts = []

    def dataset_fn(place: InputContext) -> Any:
        names = ("num_input_pipelines", "input_pipeline_id", "num_replicas_in_sync")
        contexts.append({**{name: getattr(place, name) for name in names}, "str": str(place)})
        pipeline = [dict(operation) for operation in given["pipeline"]]
        if given["mode"] == "per_replica":
            size = pipeline[-1]["size"]
            pipeline[-1]["size"] = place.get_per_replica_batch_size(size * given["replicas"])
        return build(pipeline)

    distributed = distribute_datasets_from_function(dataset_fn, given["replicas"])
    found = steps_of(iter(distributed), given["replicas"], 40)
    return {"element_spec": distributed.element_spec, "contexts": contexts, **found}


def run_optional(given: dict[str, Any]) -> dict[str, Any]:
    iterator = iter(distribute_dataset(build(given["pipeline"]), given["replicas"]))
    answers: list[Optional[Any]] = [iterator.get_next_as_optional() for _ in range(40)]
    values = [answer.get_value() for answer in answers if answer.has_value()]
    assert not any(answer.has_value() for answer in answers[len(values) :]), "data behind the end"
    return {"steps": [local_results(v, given["replicas"]) for v in values], "empty_after": len(values)}


def run_in_replica(given: dict[str, Any]) -> Any:
    iterator = iter(distribute_dataset(build(given["pipeline"]), given["replicas"]))
    return mirrored(given["replicas"]).run(iterator.get_next)


def run_dataset_for_each_replica(given: dict[str, Any]) -> dict[str, Any]:
    contexts = []

    def dataset_fn(place: InputContext) -> Dataset:
        contexts.append([place.num_input_pipelines, place.input_pipeline_id, place.num_replicas_in_sync])
        return Dataset.range(10).shard(place.num_input_pipelines, place.input_pipeline_id).batch(2)

    options = InputOptions(False, InputReplicationMode.PER_REPLICA)
    distributed = distribute_datasets_from_function(dataset_fn, given["replicas"], options)
    found = steps_of(iter(distributed), given["replicas"], 40)
    return {"element_spec": distributed.element_spec, "contexts": contexts, **found}


def run_per_replica_mode(given: dict[str, Any]) -> DistributedDataset:
    options = InputOptions(experimental_replication_mode=InputReplicationMode.PER_REPLICA)
    return distribute_dataset(build(given["pipeline"]), given["replicas"], options)


def run_place_on_device(given: dict[str, Any]) -> DistributedDataset:
    settings = dict(given["options"])
    mode = InputReplicationMode[settings.pop("experimental_replication_mode", "PER_WORKER")]
    options = InputOptions(experimental_replication_mode=mode, **settings)
    return distribute_datasets_from_function(lambda _: pytest.fail("called"), given["replicas"], options)


def run_values_from_function(given: dict[str, Any]) -> Any:
    functions: dict[str, Callable[[Any], Any]] = {
        "replica_id": lambda place: place.replica_id_in_sync_group,
        "array": lambda place: np.full(place.replica_id_in_sync_group + 1, 3.5),
        "dict": lambda place: {"a": place.replica_id_in_sync_group, "b": (place.num_replicas_in_sync, "s")},
        "constant": lambda _: 7,
        "list": lambda place: [place.replica_id_in_sync_group, 2],
        "str": str,
    }
    return mirrored(given["replicas"]).experimental_distribute_values_from_function(functions[given["fn"]])


OTHER_STRATEGIES = {
    "default": ringlet.get_strategy(),
    "OneDeviceStrategy": ringlet.OneDeviceStrategy("CPU:0"),
    "CentralStorageStrategy": ringlet.experimental.CentralStorageStrategy(["CPU:0", "CPU:1"], "CPU:0"),
}


def run_other_strategy(given: dict[str, Any]) -> dict[str, Any]:
    strategy = OTHER_STRATEGIES[given["strategy"]]
    return all_steps(strategy, strategy.experimental_distribute_dataset(build(given["pipeline"])))


def run_other_strategy_from_function(given: dict[str, Any]) -> dict[str, Any]:
    strategy = OTHER_STRATEGIES[given["strategy"]]
    return all_steps(strategy, strategy.distribute_datasets_from_function(lambda _: build(given["pipeline"])))


def all_steps(strategy: ringlet.Strategy, dataset: Any) -> dict[str, Any]:
    steps = [local_results(step, strategy.num_replicas_in_sync) for step in dataset]
    return {"element_spec": dataset.element_spec, "steps": steps, "end": "StopIteration"}


RUNNERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "from_function": run_from_function,
    "get_next_as_optional": run_optional,
    "get_per_replica_batch_size": lambda given: InputContext(
        num_replicas_in_sync=given["num_replicas_in_sync"]
    ).get_per_replica_batch_size(given["global_batch_size"]),
    "misuse_next_in_replica_fn": run_in_replica,
    "misuse_not_a_dataset": lambda given: distribute_dataset(given["value"], given["replicas"]),
    "misuse_per_replica_mode": run_per_replica_mode,
    "misuse_place_on_device": run_place_on_device,
    "other_strategies": run_other_strategy,
    "other_strategies_from_function": run_other_strategy_from_function,
    "per_replica_mode": run_dataset_for_each_replica,
    "values_from_function": run_values_from_function,
    **dict.fromkeys([f"{kind}/{policy.name}" for kind in ("range", "files") for policy in AutoShardPolicy], run_policy),
}


def assert_error(expected: dict[str, Any], error: Exception) -> None:
    """The type is the recorded one, and every name and number of the recorded message is in ours."""
    if expected.get("incidental"):
        return
    assert expected["type"] in [base.__name__ for base in type(error).__mro__], f"{error!r} is no {expected['type']}"
    facts = re.findall(r"[A-Za-z]*_[A-Za-z_]+|\d+", expected["message"])
    assert [fact for fact in facts if fact not in str(error)] == [], f"missing in: {error}"


def assert_same(expected: Any, found: Any) -> None:
    """Exact, floats to a relative 1e-6."""
    if isinstance(expected, dict) and "__array__" in expected and isinstance(found, dict) and "__array__" in found:
        (*kind, flat), (*found_kind, found_flat) = expected["__array__"], found["__array__"]
        assert found_kind == kind
        is_float = kind[0].startswith("float")
        assert found_flat == (pytest.approx(flat, rel=1e-6, nan_ok=True) if is_float else flat)
    elif isinstance(expected, dict) and isinstance(found, dict):
        assert sorted(found) == sorted(expected)
        for key, value in expected.items():
            assert_same(value, found[key])
    elif isinstance(expected, list) and isinstance(found, list):
        assert len(found) == len(expected)
        for one, other in zip(expected, found, strict=True):
            assert_same(one, other)
    else:
        assert found == expected


def ends_unevenly(case: dict[str, Any]) -> bool:
    """Whether the last step of a CentralStorageStrategy has elements for one of its two replicas only."""
    if case["group"] != "other_strategies_from_function" or case["input"]["strategy"] != "CentralStorageStrategy":
        return False
    source, batch = case["input"]["pipeline"]
    return not batch["drop_remainder"] and math.ceil(source["args"][0] / batch["size"]) % 2 == 1


@pytest.mark.parametrize("case", CASES, ids=[f"{case['group']}-{case['id']}" for case in CASES])
def test_a_recorded_case_has_the_recorded_answer(case):
    if ends_unevenly(case):
        pytest.skip("differs on purpose: the last step is not dropped")
    runner = RUNNERS.get(case["group"], run_dataset)
    if "error" in case["expect"]:
        with pytest.raises(Exception) as caught:  # noqa: PT011 - assert_error looks at the type
            runner(case["input"])
        assert_error(case["expect"]["error"], caught.value)
    else:
        assert_same(case["expect"]["ok"], encode(runner(case["input"])))
