"""Distributed datasets answer what TensorFlow answered.

Cases recorded from tensorflow-cpu 2.21.0 by gen_datasets.py and gen_datasets_policy.py, on a MirroredStrategy of N CPU
devices with one worker. Cases whose pipeline needs operations that are still to come are skipped, and counted in one
line.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ringlet
from ringlet import nest
from ringlet.data import DistributedDataset, InputContext, InputOptions, InputReplicationMode, Optional
from ringlet.data.distribute import distribute_dataset, distribute_datasets_from_function
from ringlet.errors import OutOfRangeError
from tests.conformance.pipelines import LATER_OPERATIONS, build, encode, later_operations, load, local_results

CASES = [*load("datasets"), *load("datasets_policy")]


def missing(case: dict[str, Any]) -> str:
    """What a case needs that is still to come; empty if it can run."""
    if case["group"] == "per_replica_mode":
        return "shard"
    return ", ".join(later_operations(case["input"].get("pipeline", [])))


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
    found = steps_of(iter(distributed), given["replicas"], given.get("limit", 40))
    return {"element_spec": distributed.element_spec, "cardinality": distributed.cardinality, **found}


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
    "values_from_function": run_values_from_function,
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


@pytest.mark.parametrize("case", CASES, ids=[f"{case['group']}-{case['id']}" for case in CASES])
def test_a_recorded_case_has_the_recorded_answer(case):
    if needed := missing(case):
        pytest.skip(f"needs {needed}")
    runner = RUNNERS.get(case["group"], run_dataset)
    if "error" in case["expect"]:
        with pytest.raises(Exception) as caught:  # noqa: PT011 - assert_error looks at the type
            runner(case["input"])
        assert_error(case["expect"]["error"], caught.value)
    else:
        assert_same(case["expect"]["ok"], encode(runner(case["input"])))


def test_cases_that_wait_for_an_operation_are_counted(capsys):
    needs = [needed for case in CASES if (needed := missing(case))]
    operations = Counter(operation for needed in needs for operation in needed.split(", "))
    counts = ", ".join(f"{operation} {count}" for operation, count in operations.most_common())
    with capsys.disabled():
        print(f"\nrecorded dataset cases: {len(CASES) - len(needs)} of {len(CASES)} run, {len(needs)} need {counts}")
    assert set(operations) <= set(LATER_OPERATIONS)
