"""``reduce_to``, ``batch_reduce_to`` and ``broadcast_to`` of extended objects."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ringlet
from ringlet.errors import InvalidArgumentError
from ringlet.values import Mirrored, PerReplica
from tests.strategy.replicas import mirrored, replica, replica_id

STRATEGIES = {n: mirrored(n) for n in (1, 2, 3, 8)}
TWO = STRATEGIES[2]


def values_of(strategy: ringlet.Strategy) -> Any:
    return strategy.experimental_distribute_values_from_function(
        lambda c: np.array([c.replica_id_in_sync_group + 1.0, 2.0])
    )


@pytest.mark.parametrize("num_replicas", STRATEGIES)
@pytest.mark.parametrize("op", ["SUM", "mean", ringlet.ReduceOp.SUM])
def test_every_replica_gets_what_reduce_gives(num_replicas, op):
    strategy = STRATEGIES[num_replicas]
    value = values_of(strategy)
    expected = strategy.reduce(op, value, axis=None)
    for destinations in ("CPU:0", "/job:localhost/replica:0/task:0/device:CPU:1", value, np.ones(1)):
        result = strategy.extended.reduce_to(op, value, destinations)
        assert type(result) is (np.ndarray if num_replicas == 1 else Mirrored)
        parts = strategy.experimental_local_results(result)
        assert len(parts) == num_replicas
        for part in parts:
            np.testing.assert_array_equal(part, expected)


def test_replicas_share_the_memory_of_a_result():
    first, second = TWO.extended.reduce_to("SUM", values_of(TWO), "CPU:0").values
    assert np.shares_memory(first, second)
    assert not first.flags.writeable


def test_structures_are_combined_leaf_by_leaf():
    value = {"a": values_of(TWO), "b": [values_of(TWO)]}
    result = TWO.extended.reduce_to("SUM", value, "CPU:0")
    assert result["a"].values[1].tolist() == result["b"][0].values[0].tolist() == [3, 4]
    assert TWO.extended.reduce_to("SUM", {}, "CPU:0") == {}


def test_values_that_are_no_distributed_ones_are_combined_as_reduce_does():
    array = np.ones(2)
    assert TWO.extended.reduce_to("MEAN", array, "CPU:0") is array
    assert TWO.extended.reduce_to("SUM", 0, "CPU:0") == 0
    with pytest.raises(ValueError, match="non-DistributedValues value"):
        TWO.extended.reduce_to("SUM", 2.5, "CPU:0")


@pytest.mark.parametrize("num_replicas", STRATEGIES)
@pytest.mark.parametrize(
    ("destinations", "error", "text"),
    [
        ("", ValueError, "destinations can not be empty"),
        ("nonsense", ValueError, "nonsense"),
        (None, TypeError, "destinations are a device string"),
        (5, TypeError, "got 5 of type int"),
        (["CPU:0"], TypeError, "of type list"),
    ],
)
def test_what_names_no_device_is_refused(num_replicas, destinations, error, text):
    strategy = STRATEGIES[num_replicas]
    with pytest.raises(error, match=text):
        strategy.extended.reduce_to("SUM", values_of(strategy), destinations)
    with pytest.raises(error, match=text):
        strategy.extended.batch_reduce_to("SUM", [(values_of(strategy), destinations)])


@pytest.mark.parametrize("op", ["MAX", None, 3, ringlet.collectives.Op.SUM])
def test_what_is_no_operation_is_refused(op):
    for call in (
        lambda: TWO.extended.reduce_to(op, values_of(TWO), "CPU:0"),
        lambda: TWO.extended.batch_reduce_to(op, []),
    ):
        with pytest.raises((ValueError, TypeError), match="ReduceOp"):
            call()


def test_the_mean_of_a_mirrored_value_is_that_value():
    value = Mirrored([np.ones(2)] * 2)
    assert TWO.extended.reduce_to("MEAN", value, "CPU:0") is value
    with pytest.raises(ValueError, match=r"a Mirrored cannot be reduced with the given reduce op ReduceOp\.SUM"):
        TWO.extended.reduce_to("SUM", value, "CPU:0")


def test_components_of_other_shapes_are_refused():
    with pytest.raises(InvalidArgumentError, match=r"float64\[1\] at rank 0, float64\[2\] at rank 1"):
        TWO.extended.reduce_to("SUM", PerReplica([np.ones(1), np.ones(2)]), "CPU:0")


def test_a_value_of_another_number_of_replicas_is_refused():
    for call in (
        lambda: TWO.extended.reduce_to("SUM", PerReplica([1, 2, 3]), "CPU:0"),
        lambda: TWO.extended.batch_reduce_to("SUM", [(PerReplica([1, 2, 3]), "CPU:0")]),
    ):
        with pytest.raises(ValueError, match="3 components cannot be reduced over 2"):
            call()


def test_many_values_give_as_many_results_in_order():
    pairs = [(values_of(TWO), "CPU:0"), (PerReplica([1.0, 3.0]), "CPU:1"), (7, "CPU:0")]
    first, second, third = TWO.extended.batch_reduce_to("MEAN", pairs)
    assert first.values[0].tolist() == [1.5, 2]
    assert float(second) == 2
    assert third == 7
    assert TWO.extended.batch_reduce_to("SUM", []) == []


@pytest.mark.parametrize("pair", [3, [1.5, "CPU:0"], (1.5,), (1.5, "CPU:0", 3)])
def test_what_is_no_pair_is_refused(pair):
    with pytest.raises(ValueError, match="each element of value_destination_pairs should be a tuple of size 2"):
        TWO.extended.batch_reduce_to("SUM", [pair])


def test_what_is_no_list_of_pairs_is_refused():
    with pytest.raises(TypeError, match=r"value_destination_pairs are a list of tuples .*, got 5 of type int: write"):
        TWO.extended.batch_reduce_to("SUM", 5)


def test_options_are_checked():
    with pytest.raises(TypeError, match="options are a CommunicationOptions, got 5 of type int"):
        TWO.extended.reduce_to("SUM", values_of(TWO), "CPU:0", options=5)
    with pytest.raises(TypeError, match="options are a CommunicationOptions, got 5 of type int"):
        TWO.extended.batch_reduce_to("SUM", [(values_of(TWO), "CPU:0")], options=5)


@pytest.mark.parametrize("num_replicas", STRATEGIES)
def test_a_value_is_broadcast_without_a_copy(num_replicas):
    strategy, array = STRATEGIES[num_replicas], np.arange(3)
    for destinations in ("", values_of(strategy)):
        parts = strategy.experimental_local_results(strategy.extended.broadcast_to(array, destinations))
        assert len(parts) == num_replicas
        assert all(np.shares_memory(part, array) and part.tolist() == [0, 1, 2] for part in parts)
    assert strategy.extended.broadcast_to(array, "CPU:0") is array


def test_pythons_numbers_are_broadcast_as_they_are():
    assert TWO.extended.broadcast_to(2.5, "") == 2.5
    for destinations in (None, ["CPU:0"], 5):
        with pytest.raises(TypeError, match="destinations are"):
            TWO.extended.broadcast_to(2.5, destinations)


@pytest.mark.parametrize(
    "call",
    [
        lambda: TWO.extended.reduce_to("SUM", 0, "CPU:0"),
        lambda: TWO.extended.batch_reduce_to("SUM", []),
        lambda: TWO.extended.broadcast_to(0, "CPU:0"),
    ],
)
def test_these_calls_belong_outside_of_replicas(call):
    with pytest.raises(RuntimeError, match="cross-replica context"):
        TWO.run(call)
    with STRATEGIES[3].scope(), pytest.raises(RuntimeError, match="Mixing different strategies"):
        call()


def test_the_ring_gives_what_is_asked_for():
    ring = ringlet.experimental.CommunicationOptions(implementation="RING")
    assert float(TWO.extended.reduce_to("SUM", PerReplica([1.5, 2.5]), "CPU:0", ring)) == 4


def test_merge_functions_combine_for_all_replicas():
    def merge(strategy: ringlet.Strategy, value: Any) -> Any:
        return strategy.extended.reduce_to("SUM", value, "CPU:0")

    for part in TWO.run(lambda: replica().merge_call(merge, args=(np.array([replica_id() + 1]),))).values:
        assert part.tolist() == [3]
