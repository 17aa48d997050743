"""ReductionToOneDevice: sums of the core, or of users, in one place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ringlet
from ringlet.values import PerReplica


def strategy_with(ops: ringlet.CrossDeviceOps) -> ringlet.MirroredStrategy:
    return ringlet.MirroredStrategy(["CPU:0", "CPU:1"], cross_device_ops=ops)


def values(*numbers: float) -> PerReplica[Any]:
    return PerReplica([np.array([number, 2.0]) for number in numbers])


def test_the_means_of_integers_are_true_divisions():
    value = PerReplica([np.array([1], np.int8), np.array([2], np.int8)])
    for ops in (ringlet.ReductionToOneDevice(accumulation_fn=sum), ringlet.DirectAllReduce()):
        mean = ops.reduce("MEAN", value, value).values[0]
        assert (mean.tolist(), mean.dtype) == ([1.5], np.float32)


def test_an_accumulation_is_what_is_given():
    seen: list[Any] = []

    def largest(arrays: list[Any]) -> Any:
        seen.append([array.tolist() for array in arrays])
        return np.maximum.reduce(arrays)

    strategy = strategy_with(ringlet.ReductionToOneDevice("CPU:1", largest))
    assert strategy.reduce("SUM", values(1, 5), axis=None).tolist() == [5, 2]
    assert strategy.reduce("MEAN", values(1, 5), axis=None).tolist() == [2.5, 1]
    assert seen == [[[1, 2], [5, 2]]] * 2


def test_one_device_gets_a_bare_result():
    assert ringlet.ReductionToOneDevice().reduce("SUM", values(1, 2), "CPU:0").tolist() == [3, 4]
    with pytest.raises(ValueError, match="nonsense"):
        ringlet.ReductionToOneDevice("nonsense")


def test_it_shows_what_it_was_given():
    assert repr(ringlet.ReductionToOneDevice("CPU:1")) == "ReductionToOneDevice(reduce_to_device='CPU:1')"
    assert repr(ringlet.ReductionToOneDevice(None, sum)) == "ReductionToOneDevice(accumulation_fn=sum)"


def test_an_accumulation_of_replicas_sums_is_used_by_all_reduce():
    ops = ringlet.ReductionToOneDevice(accumulation_fn=np.maximum.reduce)

    def step(x: Any) -> Any:
        return ringlet.get_replica_context().all_reduce("SUM", {"x": x})

    for part in strategy_with(ops).run(step, args=(values(1, 5),))["x"].values:
        assert part.tolist() == [5, 2]
