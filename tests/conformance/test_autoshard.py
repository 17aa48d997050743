"""Every worker's share of a dataset is what TensorFlow gave it.

Cases recorded from tensorflow-cpu 2.21.0 by gen_autoshard.py: rebatching, sharding by policy, and both together, as
workers of a cluster do it. ``distributed`` cases give the sub-batches that a worker's replicas take in turn.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ringlet.data import AutoShardPolicy, Dataset
from ringlet.data.distribution.auto_shard import Sharding, auto_shard
from ringlet.data.distribution.distribute import distribute_dataset
from ringlet.data.distribution.distribution_plan import batch_size_of
from ringlet.data.distribution.legacy_rebatch import LegacyRebatch, legacy_rebatch
from ringlet.data.distribution.replica_rows import batch_sizes_for_worker
from ringlet.data.operations.prefetch import Prefetch
from ringlet.data.operations.rebatch import Rebatch
from tests.conformance.pipelines import build, encode, load, written
from tests.conformance.test_datasets import assert_error, assert_same

CASES = load("autoshard")
LIMIT = 60


def taken(dataset: Any) -> list[Any]:
    with iter(dataset) as iterator:
        return list(itertools.islice(iterator, LIMIT))


def with_spec(dataset: Dataset) -> dict[str, Any]:
    return {"element_spec": dataset.element_spec, "elements": taken(dataset)}


def run_worker(given: dict[str, Any], index: int, path: Callable[[str], str], is_distributed: bool) -> list[Any]:
    """What one worker reads, by the nodes that TensorFlow puts together."""
    workers, total = given["num_workers"], given["num_replicas_in_sync"]
    node = build(given["pipeline"], path).node
    if is_distributed:
        size, replicas = batch_size_of(node), total // workers
        if size is None:
            node = LegacyRebatch(node, total)
        else:
            node = Rebatch(node, batch_sizes_for_worker(size, workers, replicas, index))
        node = Prefetch(node, replicas)
    return taken(Dataset(auto_shard(node, Sharding(workers, index, total)).node))


def run_workers(given: dict[str, Any], path: Callable[[str], str], is_distributed: bool) -> Any:
    """The outcomes of all workers; the error of the first if all have one."""
    outcomes: list[Any] = []
    for index in range(given["num_workers"]):
        try:
            outcomes.append(run_worker(given, index, path, is_distributed))
        except Exception as error:
            outcomes.append(error)
    if all(isinstance(outcome, Exception) for outcome in outcomes):
        raise outcomes[0]
    return outcomes


RUNNERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "batch_sizes_for_worker": lambda given: np.array(
        batch_sizes_for_worker(
            given["global_batch_size"], given["num_workers"], given["num_replicas_per_worker"], given["worker_index"]
        )
    ),
    "compute_batch_size": lambda given: np.array(batch_size_of(build(given["pipeline"]).node) or -1),
    "legacy_rebatch": lambda given: with_spec(legacy_rebatch(build(given["pipeline"]), given["num_replicas"])),
    "rebatch": lambda given: with_spec(build(given["pipeline"])),
    "shard": lambda given: taken(build(given["pipeline"])),
}


def assert_outcomes(expected: dict[str, Any], outcomes: list[Any]) -> None:
    for wanted, outcome in zip(expected["workers"], outcomes, strict=True):
        if "error" in wanted:
            assert isinstance(outcome, Exception), f"{wanted} was expected, got {outcome}"
            assert_error(wanted["error"], outcome)
        else:
            assert_same(wanted["ok"], encode(outcome))


@pytest.mark.parametrize("case", CASES, ids=[f"{case['group']}-{case['id']}" for case in CASES])
def test_a_recorded_case_has_the_recorded_answer(case, tmp_path):
    given, expected = case["input"], case["expect"]
    runner = RUNNERS.get(case["group"])
    is_distributed = case["group"].startswith("distributed")

    def run() -> Any:
        return runner(given) if runner else run_workers(given, written(given, tmp_path), is_distributed)

    if "error" in expected:
        with pytest.raises(Exception) as caught:  # noqa: PT011 - assert_error looks at the type
            run()
        assert_error(expected["error"], caught.value)
    elif runner:
        assert_same(expected["ok"], encode(run()))
    else:
        assert_outcomes(expected["ok"], run())


DISTRIBUTED = [case for case in CASES if case["group"].startswith("distributed/") and "ok" in case["expect"]]


@pytest.mark.parametrize("case", DISTRIBUTED, ids=[f"{case['group']}-{case['id']}" for case in DISTRIBUTED])
def test_replicas_of_a_worker_take_its_recorded_parts_in_turn(case, tmp_path):
    given = case["input"]
    dataset = build(given["pipeline"], written(given, tmp_path))
    workers, total = given["num_workers"], given["num_replicas_in_sync"]
    for index, wanted in enumerate(case["expect"]["ok"]["workers"]):
        if "error" in wanted or total == 1:
            continue
        parts = parts_of(dataset, total // workers, workers, index)
        expected = wanted["ok"][: len(parts)]
        assert_same(expected, encode(parts[: len(expected)]))
        assert all(is_empty(part) for part in parts[len(expected) :])
        assert len(wanted["ok"]) == len(expected) or loses_the_rest(dataset, workers)


def parts_of(dataset: Dataset, replicas: int, workers: int, index: int) -> list[Any]:
    from ringlet import nest

    distributed = distribute_dataset(dataset, replicas, num_workers=workers, worker_index=index)
    steps = taken(distributed)
    return [nest.map_structure(lambda v, r=r: v.values[r], step) for step in steps for r in range(replicas)][:LIMIT]


def is_empty(part: Any) -> bool:
    from ringlet import nest

    return all(len(leaf) == 0 for leaf in nest.flatten(part)[0])


def loses_the_rest(dataset: Dataset, workers: int) -> bool:
    from ringlet import nest

    return workers == 1 and all(spec.is_fully_defined for spec in nest.flatten(dataset.element_spec)[0])


def test_all_policies_are_recorded():
    assert {case["input"].get("policy") for case in CASES} >= {policy.name for policy in AutoShardPolicy}
