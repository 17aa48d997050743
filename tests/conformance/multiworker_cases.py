"""Runs the recorded cases of several workers in one worker, and compares the results.

A worker is a separate process: ``python -m tests.conformance.multiworker_cases``, with the cluster and its task in
``TF_CONFIG``. It runs all cases of its cluster, in the same order as all workers, and prints
one JSON object: the fault of each case, or null.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

import ringlet
from ringlet.data import Dataset, InputContext, InputOptions, InputReplicationMode
from tests.conformance import common, test_datasets
from tests.conformance.pipelines import build, encode
from tests.conformance.test_worker_datasets import steps_of

Given = dict[str, Any]
Sync, Agg = ringlet.VariableSynchronization, ringlet.VariableAggregation


def cases_of(cluster: Given) -> list[Given]:
    """The recorded cases of a cluster of this shape."""
    return [case for case in common.load("multiworker") if case["input"]["cluster"] == cluster]


class Worker:
    """One worker, with a method for each group of cases."""

    def __init__(self) -> None:
        self.strategy = ringlet.MultiWorkerMirroredStrategy(
            communication_options=ringlet.experimental.CommunicationOptions(timeout_seconds=50.0)
        )

    @property
    def index(self) -> int:
        return self.strategy.extended._first_replica

    def mine(self, given: Given) -> Any:
        values = common.decode_components(given["by_replica"])
        return self.strategy.experimental_distribute_values_from_function(
            lambda context: values[context.replica_id_in_sync_group]
        )

    # --- groups -------------------------------------------------------------------------------------------------------

    def properties(self, _: Given) -> Any:
        strategy, extended = self.strategy, self.strategy.extended
        return {
            "num_replicas_in_sync": strategy.num_replicas_in_sync,
            "id": self.index,
            "worker_devices": list(extended.worker_devices),
            "should_checkpoint": extended.should_checkpoint,
            "should_save_summary": extended.should_save_summary,
            "experimental_between_graph": extended.experimental_between_graph,
            "task": [strategy.cluster_resolver.task_type, strategy.cluster_resolver.task_id],
        }

    def values_from_function(self, _: Given) -> Any:
        return self.strategy.experimental_distribute_values_from_function(
            lambda context: [context.replica_id_in_sync_group, context.num_replicas_in_sync]
        )

    def run_id(self, _: Given) -> Any:
        return self.strategy.run(lambda: replica().replica_id_in_sync_group)

    def run_local_results(self, given: Given) -> Any:
        return self.strategy.experimental_local_results(self.run_id(given))

    def all_reduce(self, given: Given) -> Any:
        return self.strategy.run(lambda x: replica().all_reduce(given["op"], x), args=(self.mine(given),))

    def all_reduce_nested(self, given: Given) -> Any:
        return self.strategy.run(
            lambda x: replica().all_reduce(given["op"], {"a": x, "b": [x * 2]}), args=(self.mine(given),)
        )

    def all_gather(self, given: Given) -> Any:
        return self.strategy.run(lambda x: replica().all_gather(x, given["axis"]), args=(self.mine(given),))

    def reduce(self, given: Given) -> Any:
        return self.strategy.reduce(given["op"], self.mine(given), axis=given["axis"])

    def gather(self, given: Given) -> Any:
        return self.strategy.gather(self.mine(given), axis=given["axis"])

    def merge_call(self, given: Given) -> Any:
        return self.strategy.run(
            lambda x: replica().merge_call(lambda strategy, y: strategy.extended.reduce_to("SUM", y, y), args=(x,)),
            args=(self.mine(given),),
        )

    def variable(self, given: Given) -> Any:
        initial = given["initial"]
        return self.play(Sync[given["synchronization"]], Agg[given["aggregation"]], given["do"], initial)

    def initial_broadcast(self, given: Given) -> Any:
        if given["initial"] == "worker id + 5":
            return self.play(Sync.ON_WRITE, Agg.SUM, "assign_add", self.index + 5.0)
        assert given["initial"] == "worker id * 2"
        return self.play(Sync.ON_READ, Agg.SUM, "assign_add", self.index * 2.0)

    def play(self, synchronization: Sync, aggregation: Agg, do: str, initial: float) -> Given:
        with self.strategy.scope():
            v = ringlet.Variable(initial, dtype="float32", synchronization=synchronization, aggregation=aggregation)
        found: Given = {"initial": [component.numpy() for component in v.values]}

        def step() -> Any:
            getattr(v, do)(np.float32(replica().replica_id_in_sync_group + 1))
            return v.read_value()

        found["in_replica"] = self.strategy.experimental_local_results(self.strategy.run(step))
        found["components"] = [component.numpy() for component in v.values]
        try:
            found["read"] = {"ok": v.read_value()}
        except Exception as error:
            found["read"] = {"error": error}
        return found

    def dataset(self, given: Given) -> Any:
        return encode(steps_of(self.strategy.experimental_distribute_dataset(build(given["pipeline"]))))

    def from_function(self, given: Given) -> Any:
        contexts: list[Any] = []

        def dataset_fn(context: InputContext) -> Dataset:
            contexts.append([context.num_input_pipelines, context.input_pipeline_id, context.num_replicas_in_sync])
            return Dataset.range(given["rows"][context.input_pipeline_id]).batch(2)

        steps = steps_of(self.strategy.distribute_datasets_from_function(dataset_fn))
        return encode({**steps, "contexts": contexts})

    def per_replica_mode(self, _: Given) -> Any:
        options = InputOptions(experimental_replication_mode=InputReplicationMode.PER_REPLICA)
        return self.strategy.experimental_distribute_dataset(Dataset.range(4).batch(2), options)


def replica() -> ringlet.ReplicaContext:
    current = ringlet.get_replica_context()
    assert current is not None
    return current


RUNNERS: dict[str, Callable[[Worker, Given], Any]] = {
    "properties": Worker.properties,
    "values_from_function": Worker.values_from_function,
    "run/id": Worker.run_id,
    "run/local_results": Worker.run_local_results,
    "all_reduce": Worker.all_reduce,
    "all_reduce/nested": Worker.all_reduce_nested,
    "all_gather": Worker.all_gather,
    "reduce": Worker.reduce,
    "reduce/partial": Worker.reduce,
    "gather": Worker.gather,
    "merge_call": Worker.merge_call,
    "variable": Worker.variable,
    "variable_initial_broadcast": Worker.initial_broadcast,
    "dataset/AUTO": Worker.dataset,
    "dataset/DATA": Worker.dataset,
    "dataset/OFF": Worker.dataset,
    "dataset/structures": Worker.dataset,
    "dataset/from_function": Worker.from_function,
    "dataset/per_replica_mode": Worker.per_replica_mode,
}


def outcome_of(worker: Worker, case: Given) -> tuple[Exception | None, Any]:
    try:
        return None, RUNNERS[case["group"]](worker, case["input"])
    except Exception as error:
        return error, None


def compare(worker: Worker, case: Given) -> None:
    """Run a case and compare this worker's result; AssertionError describes a difference."""
    expect = case["expect"]
    mine = {"error": expect["error"]} if "error" in expect else expect["ok"]["workers"][worker.index]
    problem, found = outcome_of(worker, case)
    if problem is not None:
        assert "error" in mine, f"raised {problem!r}, where this was recorded: {mine}"
        common.assert_same_error(mine["error"], problem)
        return
    assert "ok" in mine, f"answered {found!r}, where this was recorded: {mine}"
    wanted = mine["ok"]
    if case["group"].startswith("dataset/"):
        test_datasets.assert_same(wanted, found)
        return
    if case["group"].startswith("variable"):
        compare_read(wanted["read"], found.pop("read"))
        wanted = {key: value for key, value in wanted.items() if key != "read"}
    common.assert_same(wanted, found)


def compare_read(wanted: Given, found: Given) -> None:
    assert wanted.keys() == found.keys(), f"reading gave {found}, where this was recorded: {wanted}"
    if "ok" in wanted:
        common.assert_same(wanted["ok"], found["ok"], "read")
    else:
        common.assert_same_error(wanted["error"], found["error"])


def problem_of(worker: Worker, case: Given) -> str | None:
    try:
        compare(worker, case)
    except Exception:
        return traceback.format_exc(limit=-4)
    return None


def main() -> None:
    jobs = json.loads(os.environ["TF_CONFIG"])["cluster"]
    worker = Worker()
    cluster = {job: len(addresses) for job, addresses in jobs.items()}
    json.dump({case["id"]: problem_of(worker, case) for case in cases_of(cluster)}, sys.stdout)


if __name__ == "__main__":
    main()
