"""TPUStrategy in a job with one worker for each host: the results are those of one process with all replicas."""

from __future__ import annotations

import json

import numpy as np
import pytest

import ringlet
from tests.strategy.replicas import replica_id
from tests.strategy.tpu_systems import resolver_of, strategy_of


def results():
    """Return the results of one strategy, with the values of this process's replicas."""
    strategy = strategy_of([1, 2, 1, 2], 4, "v4-16")
    with strategy.scope():
        weights = ringlet.Variable(np.arange(3.0) + ringlet.rank())
    rows = ringlet.data.Dataset.range(64).batch(32)
    batches = [strategy.local_results(batch) for batch in strategy.distribute_dataset(rows)]

    def pipeline(context):
        numbers = ringlet.data.Dataset.range(100)
        return numbers.shard(context.num_input_pipelines, context.input_pipeline_id).batch(1)

    def step(numbers):
        gradient = ringlet.replica_context().all_reduce("MEAN", numbers.astype(np.float64))
        weights.assign_sub(gradient * np.ones(3))
        device = strategy.extended.logical_device_group.names[0]
        return replica_id(), device, int(numbers[0]), weights.numpy().tolist()

    batch = next(iter(strategy.distribute_datasets_from_function(pipeline)))
    found = strategy.run(step, args=(batch,))
    local = list(zip(*(strategy.local_results(each) for each in found), strict=True))
    total = strategy.reduce("SUM", strategy.run(lambda: float(replica_id())), axis=None)
    text = repr(strategy)
    return text, strategy.num_replicas_in_sync, total, local, [np.concatenate(batch).tolist() for batch in batches]


def test_each_worker_runs_the_replicas_of_one_host():
    (text, count, total, local, batches), workers = results(), ringlet.launch(results, 2)
    assert text == "TPUStrategy(4 replicas of 4 logical devices, on 2 hosts)"
    assert [found[:3] for found in workers] == [(text, count, total)] * 2
    assert [each for found in workers for each in found[3]] == local
    merged = [one + other for one, other in zip(workers[0][4], workers[1][4], strict=True)]
    assert list(map(sorted, merged)) == list(map(sorted, batches))


@pytest.fixture
def first_of(monkeypatch):
    """A function that makes this process the first of several workers."""

    def place(num_workers):
        monkeypatch.setenv("RINGLET_RANK", "0")
        monkeypatch.setenv("RINGLET_NUM_RANKS", str(num_workers))

    return place


@pytest.mark.parametrize(("num_workers", "num_devices"), [(1, 16), (2, 8), (3, 16)])
def test_other_numbers_of_workers_each_have_all_replicas(first_of, num_workers, num_devices):
    first_of(num_workers)
    extended = ringlet.TPUStrategy(resolver_of("v4-16")).extended
    assert len(extended.worker_devices) == num_devices


def test_hosts_with_different_numbers_of_replicas_are_refused(first_of):
    first_of(2)
    resolver = resolver_of("v4-16")
    assignment = ringlet.tpu.DeviceAssignment.build(resolver.topology, num_replicas=9)
    with pytest.raises(ValueError, match=r"do not have equal numbers of consecutive replicas: .* as one process"):
        ringlet.TPUStrategy(resolver, assignment)


def test_an_evaluator_has_all_replicas(monkeypatch):
    cluster = {"worker": ["localhost:1", "localhost:2"], "evaluator": ["localhost:3"]}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": "evaluator", "index": 0}}))
    strategy = ringlet.TPUStrategy(resolver_of("v4-16"))
    assert len(strategy.extended._devices) == 16
