"""The workers of a cluster give the steps that TensorFlow's gave, also where one runs out of data before the others.

Cases recorded from tensorflow-cpu 2.21.0 by gen_multiworker.py, from processes of a MultiWorkerMirroredStrategy with
one replica each. Here the workers are threads, and what they sum over each other is summed between threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ringlet import nest
from ringlet.data import Dataset, InputContext, InputOptions, InputReplicationMode
from ringlet.data.distribution.distribute import distribute_dataset, distribute_datasets_from_function
from ringlet.errors import OutOfRangeError
from tests.conformance.pipelines import build, encode, load
from tests.conformance.test_datasets import assert_error, assert_same
from tests.data.sharing import on_workers

CASES = [case for case in load("multiworker") if case["group"].startswith("dataset/")]


def steps_of(distributed: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"element_spec": distributed.element_spec, "steps": [], "end": None}
    iterator = iter(distributed)
    while found["end"] is None and len(found["steps"]) < 30:
        try:
            step = iterator.get_next()
        except OutOfRangeError as error:
            found["end"] = type(error).__name__
        else:
            found["steps"].append([nest.map_structure(lambda value: value.values[0], step)])
    return found


def run_dataset(given: dict[str, Any], place: dict[str, Any]) -> dict[str, Any]:
    return steps_of(distribute_dataset(build(given["pipeline"]), 1, **place))


def run_from_function(given: dict[str, Any], place: dict[str, Any]) -> dict[str, Any]:
    contexts = []

    def dataset_fn(context: InputContext) -> Dataset:
        contexts.append([context.num_input_pipelines, context.input_pipeline_id, context.num_replicas_in_sync])
        return Dataset.range(given["rows"][context.input_pipeline_id]).batch(2)

    return {**steps_of(distribute_datasets_from_function(dataset_fn, 1, **place)), "contexts": contexts}


def run_per_replica_mode(given: dict[str, Any], place: dict[str, Any]) -> Any:
    options = InputOptions(experimental_replication_mode=InputReplicationMode.PER_REPLICA)
    return distribute_dataset(Dataset.range(4).batch(2), 1, options, **place)


RUNNERS: dict[str, Callable[[dict[str, Any], dict[str, Any]], Any]] = {
    "dataset/from_function": run_from_function,
    "dataset/per_replica_mode": run_per_replica_mode,
}


@pytest.mark.parametrize("case", CASES, ids=[f"{case['group']}-{case['id']}" for case in CASES])
def test_a_recorded_case_has_the_recorded_answer(case):
    given, expected = case["input"], case["expect"]
    num_workers = sum(given["cluster"].values())
    runner = RUNNERS.get(case["group"], run_dataset)

    def work(worker: int, total: Callable[[int], int]) -> Any:
        place = {"num_workers": num_workers, "worker_index": worker, "sum_over_workers": total}
        try:
            return runner(given, place)
        except NotImplementedError as error:
            return error

    outcomes = on_workers(num_workers, work)
    if "error" in expected:
        for outcome in outcomes:
            assert_error(expected["error"], outcome)
    else:
        for wanted, outcome in zip(expected["ok"]["workers"], outcomes, strict=True):
            assert_same(wanted["ok"], encode(outcome))
