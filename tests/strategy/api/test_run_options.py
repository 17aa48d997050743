"""RunOptions: a recorded named tuple, and results that replicas may write to."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import ringlet
from tests.strategy.replicas import mirrored, replica, replica_id

WRITABLE = ringlet.RunOptions(writable_results=True)


def test_the_fields_are_the_recorded_ones():
    options = ringlet.RunOptions(False, experimental_xla_options="x")
    assert options._fields == (
        "experimental_enable_dynamic_batch_size",
        "experimental_bucketizing_dynamic_shape",
        "experimental_xla_options",
    )
    assert tuple(options) == (False, False, "x")
    assert tuple(ringlet.RunOptions()) == (True, False, None)
    assert not ringlet.RunOptions().writable_results


def test_writable_results_are_kept_by_copies_and_count_in_comparisons():
    for twin in (
        copy.copy(WRITABLE),
        copy.deepcopy(WRITABLE),
        pickle.loads(pickle.dumps(WRITABLE)),
        WRITABLE._replace(experimental_bucketizing_dynamic_shape=False),
    ):
        assert twin.writable_results
        assert twin == WRITABLE
        assert hash(twin) == hash(WRITABLE)
    assert ringlet.RunOptions() != WRITABLE
    assert WRITABLE._replace(writable_results=False) == ringlet.RunOptions()
    assert repr(WRITABLE).endswith("experimental_xla_options=None, writable_results=True)")


@pytest.mark.parametrize("num_replicas", [1, 2, 3, 8])
@pytest.mark.parametrize("dtype", ["f4", "f2", "i1", "i8", "c8", ">f8"])
@pytest.mark.parametrize("op", ["SUM", "MEAN"])
def test_every_replica_may_write_to_results_of_its_own(num_replicas, dtype, op):
    strategy = mirrored(num_replicas)

    def step(x: Any) -> Any:
        result = replica().all_reduce(op, {"x": x, "n": 2.5})
        expected = result["x"].tolist()
        result["x"][...] = 0
        result["x"] += replica_id()
        result["n"] *= 0
        return expected, result["x"].copy()

    array = np.arange(3).astype(dtype)
    shared = strategy.run(lambda x: replica().all_reduce(op, x), args=(array,))
    shared = strategy.experimental_local_results(shared)[0]
    results = strategy.experimental_local_results(strategy.run(step, args=(array,), options=WRITABLE))
    for number, (expected, written) in enumerate(results):
        assert expected == shared.tolist()
        assert written.tolist() == [number] * 3
        assert written.dtype == shared.dtype


@pytest.mark.parametrize("strategy", [mirrored(2), ringlet.OneDeviceStrategy("CPU:0"), mirrored(1)], ids=repr)
def test_results_are_read_only_unless_asked_for(strategy):
    def step() -> bool:
        return bool(replica().all_reduce("SUM", np.ones(2)).flags.writeable)

    assert strategy.run(step) is False
    assert strategy.run(step, options=ringlet.RunOptions()) is False
    assert strategy.run(step, options=WRITABLE) is True
    assert strategy.run(step) is False


def test_an_out_of_the_callers_is_used_all_the_same():
    def step() -> bool:
        out = np.zeros(2)
        return replica().all_reduce("SUM", np.ones(2), out=out) is out

    assert mirrored(2).run(step, options=WRITABLE) is True


@pytest.mark.parametrize("options", [3, "text", object(), ringlet.RunOptions()])
def test_options_without_a_meaning_are_ignored(options):
    for strategy in (mirrored(2), ringlet.OneDeviceStrategy("CPU:0"), ringlet.get_strategy()):
        assert strategy.run(lambda: "done", options=options) == "done"
