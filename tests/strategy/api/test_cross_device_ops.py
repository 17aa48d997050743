"""Cross-device ops of the library and of users."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

import ringlet
from ringlet.strategy.api import cross_device_ops
from ringlet.values import DistributedValues, Mirrored, PerReplica
from tests.strategy.replicas import replica, replica_id

LIBRARY = [
    ringlet.DirectAllReduce(),
    ringlet.RingAllReduce(),
    ringlet.HierarchicalCopyAllReduce(),
    ringlet.NcclAllReduce(),
    ringlet.ReductionToOneDevice(),
    ringlet.ReductionToOneDevice(accumulation_fn=sum),
]


class Recording(ringlet.CrossDeviceOps):
    """Returns the largest component for SUM and the smallest for MEAN, and records its arguments."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def reduce_implementation(self, reduce_op: Any, per_replica_value: Any, destinations: Any, options: Any) -> Any:
        self.calls.append((reduce_op, len(per_replica_value.values), destinations, options))
        choose = np.maximum if reduce_op is ringlet.ReduceOp.SUM else np.minimum
        count = len(per_replica_value.values)
        return Mirrored([choose.reduce([np.asarray(part) for part in per_replica_value.values])] * count)


def strategy_with(ops: ringlet.CrossDeviceOps, num_replicas: int = 2) -> ringlet.MirroredStrategy:
    return ringlet.MirroredStrategy([f"CPU:{i}" for i in range(num_replicas)], cross_device_ops=ops)


def values(*numbers: float) -> PerReplica[Any]:
    return PerReplica([np.array([number, 2.0]) for number in numbers])


# --- those of the library -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ops", LIBRARY, ids=repr)
@pytest.mark.parametrize("num_replicas", [1, 2, 3, 8])
def test_all_cross_device_ops_compute_sums_and_means(ops, num_replicas):
    strategy = strategy_with(ops, num_replicas)
    value = values(*range(num_replicas))
    total = num_replicas * (num_replicas - 1) / 2
    for op, expected in (("SUM", [total, 2 * num_replicas]), ("MEAN", [total / num_replicas, 2])):
        np.testing.assert_allclose(strategy.reduce(op, value, axis=None), expected)
        everywhere = strategy.run(lambda x, op=op: replica().all_reduce(op, x), args=(value,))
        for part in strategy.experimental_local_results(everywhere):
            np.testing.assert_allclose(part, expected)
        for part in ops.reduce(op, value, value).values if num_replicas > 1 else [ops.reduce(op, value, value)]:
            np.testing.assert_allclose(part, expected)


@pytest.mark.parametrize("ops", LIBRARY, ids=repr)
def test_all_cross_device_ops_combine_batches_and_broadcast(ops):
    value = values(1, 2)
    first, second = ops.batch_reduce("SUM", [(value, value), (PerReplica([np.ones(1), np.ones(1)]), "CPU:0")])
    assert first.values[1].tolist() == [3, 4]
    assert np.asarray(second).tolist() == [2]
    assert [part.tolist() for part in ops.broadcast(np.arange(2), value).values] == [[0, 1]] * 2
    assert ops.broadcast(np.arange(2), "CPU:0").tolist() == [0, 1]


def test_an_array_counts_as_one_component():
    array = np.ones(2)
    assert ringlet.DirectAllReduce().reduce("SUM", array, "CPU:0") is array
    assert ringlet.DirectAllReduce().batch_reduce("SUM", [(array, "CPU:0")]) == [array]


@pytest.mark.parametrize(
    "call", [lambda ops, op: ops.reduce(op, 1.5, "CPU:0"), lambda ops, op: ops.batch_reduce(op, [])]
)
def test_an_invalid_operation_is_refused(call):
    with pytest.raises(ValueError, match="'MAX' is not a valid ReduceOp"):
        call(ringlet.ReductionToOneDevice(), "MAX")
    with pytest.raises(TypeError, match="Expected `reduce_op` to be a ReduceOp"):
        call(ringlet.ReductionToOneDevice(), 3)


@pytest.mark.parametrize("pair", ["ab", [1.5, "CPU:0"], (1.5,), 3])
def test_an_invalid_pair_is_refused(pair):
    with pytest.raises(ValueError, match="should be a tuple of size 2"):
        ringlet.DirectAllReduce().batch_reduce("SUM", [pair])


@pytest.mark.parametrize("ops", LIBRARY[:3], ids=repr)
def test_destinations_are_checked(ops):
    for call in (lambda d: ops.reduce("SUM", values(1, 2), d), lambda d: ops.broadcast(1.5, d)):
        with pytest.raises(ValueError, match="destinations can not be empty"):
            call("")
        with pytest.raises(TypeError, match="destinations must be a device string"):
            call(["CPU:0"])


@pytest.mark.parametrize(
    ("kind", "name"),
    [(ringlet.HierarchicalCopyAllReduce, "HierarchicalCopy"), (ringlet.NcclAllReduce, "NCCL all-reduce")],
)
def test_numbers_of_packs_are_not_negative(kind, name):
    assert (kind().num_packs, kind(num_packs=0).num_packs) == (1, 0)
    with pytest.raises(ValueError, match=f"{name} requires num_packs >= 0, but -1 is specified"):
        kind(num_packs=-1)
    with pytest.raises(TypeError, match=f"{name} requires an integer num_packs, got 'x' of type str"):
        kind("x")


def test_the_warning_about_nccl_is_logged_once(caplog):
    cross_device_ops._warn_of_nccl.cache_clear()
    with caplog.at_level(logging.WARNING, logger="ringlet"):
        for _ in range(3):
            ringlet.NcclAllReduce()
    assert [record.getMessage()[:13] for record in caplog.records] == ["NcclAllReduce"]


def test_reprs_show_the_arguments():
    assert [repr(ops) for ops in LIBRARY] == [
        "DirectAllReduce()",
        "RingAllReduce()",
        "HierarchicalCopyAllReduce(num_packs=1)",
        "NcclAllReduce(num_packs=1)",
        "ReductionToOneDevice()",
        "ReductionToOneDevice(accumulation_fn=sum)",
    ]


# --- those of users -------------------------------------------------------------------------------------------------


def test_a_users_way_combines_everything_but_all_gather():
    ops = Recording()
    strategy = strategy_with(ops)
    value = values(1, 5)
    assert strategy.reduce("SUM", value, axis=None).tolist() == [5, 2]
    assert strategy.reduce("MEAN", {"x": value}, axis=None)["x"].tolist() == [1, 2]
    assert strategy.extended.reduce_to("SUM", value, "CPU:1").values[1].tolist() == [5, 2]
    assert strategy.extended.batch_reduce_to("MEAN", [(value, value)])[0].values[0].tolist() == [1, 2]
    assert [op.name for op, _, _, _ in ops.calls] == ["SUM", "MEAN", "SUM", "MEAN"]
    assert ops.calls[2][2] == "CPU:1"
    assert all(type(options) is ringlet.experimental.CommunicationOptions for *_, options in ops.calls)


@pytest.mark.parametrize("num_replicas", [2, 3, 8])
def test_replicas_combine_by_a_users_way(num_replicas):
    strategy = strategy_with(Recording(), num_replicas)

    def step() -> Any:
        mine = np.array([replica_id(), -replica_id()])
        return replica().all_reduce("SUM", {"x": mine, "y": [mine * 2, 3]})

    for part in strategy.run(step)["x"].values:
        assert part.tolist() == [num_replicas - 1, 0]
    for part in strategy.run(step)["y"][0].values:
        assert part.tolist() == [2 * (num_replicas - 1), 0]


def test_identical_objects_of_replicas_are_components_of_their_own():
    ops = Recording()
    shared = np.ones(2)
    strategy_with(ops).run(lambda: replica().all_reduce("SUM", shared))
    assert ops.calls[0][1] == 2


def test_results_of_a_users_way_go_to_out_and_may_be_writable():
    strategy = strategy_with(Recording())

    def into() -> Any:
        out = np.zeros(1)
        result = replica().all_reduce("SUM", np.array([replica_id() + 1.0]), out=out)
        return result is out, float(out[0]) + replica_id()

    assert strategy.run(into)[0] is True
    assert strategy.run(into)[1].values == (2, 3)
    options = ringlet.RunOptions(writable_results=True)
    results = strategy.run(lambda: replica().all_reduce("SUM", np.array([replica_id() + 1.0])), options=options).values
    assert all(part.flags.writeable and part.tolist() == [2] for part in results)
    assert not np.shares_memory(*results)


def test_options_of_a_call_reach_a_users_way():
    ops = Recording()
    options = ringlet.experimental.CommunicationOptions(bytes_per_pack=7)
    strategy_with(ops).run(lambda: replica().all_reduce("SUM", np.ones(1), options))
    assert ops.calls[0][3] is options


def test_combining_different_structures_is_an_error():
    strategy = strategy_with(Recording())
    with pytest.raises(ringlet.errors.CollectiveMismatchError, match="different structures"):
        strategy.run(lambda: replica().all_reduce("SUM", {f"k{replica_id()}": np.ones(1)}))


def test_batches_of_a_users_way_are_used_at_once():
    class Batching(Recording):
        def batch_reduce_implementation(self, reduce_op: Any, value_destination_pairs: Any, options: Any) -> Any:
            self.calls.append(len(value_destination_pairs))
            return [value for value, _ in value_destination_pairs]

    ops = Batching()
    result = strategy_with(ops).run(lambda: replica().all_reduce("SUM", [np.ones(1), np.full(1, replica_id())]))
    assert ops.calls == [2]
    assert [part.tolist() for part in result[1].values] == [[0], [1]]


def test_a_batch_with_too_few_results_is_refused():
    class Lossy(Recording):
        def batch_reduce_implementation(self, *_: Any) -> Any:
            return []

    with pytest.raises(ValueError, match=r"Lossy\.batch_reduce_implementation returned 0 results for 1 values"):
        strategy_with(Lossy()).run(lambda: replica().all_reduce("SUM", np.ones(1)))


def test_cross_device_ops_without_an_implementation_name_the_missing_method():
    strategy = strategy_with(ringlet.CrossDeviceOps())
    with pytest.raises(NotImplementedError, match="CrossDeviceOps does not combine values"):
        strategy.reduce("SUM", values(1, 2), axis=None)
    with pytest.raises(NotImplementedError, match="reduce_implementation"):
        ringlet.CrossDeviceOps().batch_reduce("SUM", [(values(1, 2), "CPU:0")])


def test_an_exception_of_a_users_way_is_raised_and_the_strategy_stays_usable():
    class Failing(Recording):
        broken = True

        def reduce_implementation(self, *arguments: Any) -> Any:
            if self.broken:
                raise ZeroDivisionError("from the way")
            return super().reduce_implementation(*arguments)

    ops = Failing()
    strategy = strategy_with(ops)
    with pytest.raises(ZeroDivisionError, match="from the way"):
        strategy.run(lambda: replica().all_reduce("SUM", np.ones(1)))
    ops.broken = False
    assert strategy.run(lambda: replica().all_reduce("SUM", np.ones(1))).values[1].tolist() == [1]


def test_a_users_way_may_broadcast():
    class Marking(Recording):
        def broadcast_implementation(self, tensor: Any, destinations: Any) -> Any:
            assert isinstance(destinations, DistributedValues)
            return Mirrored([tensor + i for i in range(len(destinations.values))])

    strategy = strategy_with(Marking())
    assert [int(x) for x in strategy.extended.broadcast_to(np.int64(1), "").values] == [1, 2]
