"""OneDeviceStrategy: the contract of strategies, and nothing around values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ringlet
from ringlet.values import PerReplica
from tests.strategy.contract import StrategyContract
from tests.strategy.replicas import mirrored, replica


class TestOneDeviceStrategy(StrategyContract):
    """One replica is all there is."""

    COUNTS = (1,)

    def make(self, num_replicas: int) -> ringlet.Strategy:
        assert num_replicas == 1
        return ringlet.OneDeviceStrategy("CPU:0")


ONE = ringlet.OneDeviceStrategy("/cpu:2")
DEVICE = "/job:localhost/replica:0/task:0/device:CPU:2"


def test_the_device_is_named_in_full():
    assert ONE.extended.worker_devices == ONE.extended.parameter_devices == (DEVICE,)
    assert ONE.extended.non_slot_devices([]) == (DEVICE,)
    assert ONE.run(lambda: replica().devices) == (DEVICE,)
    assert repr(ONE) == "OneDeviceStrategy('CPU:2')"


@pytest.mark.parametrize(("device", "error"), [("nonsense", ValueError), (None, TypeError), (["CPU:0"], TypeError)])
def test_what_is_no_device_is_refused(device, error):
    with pytest.raises(error, match="device"):
        ringlet.OneDeviceStrategy(device)


def test_values_are_never_wrapped():
    array = np.arange(3)
    assert ONE.run(lambda x: x, args=(array,)) is array
    assert ONE.experimental_distribute_values_from_function(lambda c: c.num_replicas_in_sync) == 1
    assert ONE.experimental_local_results([array]) == ([array],)
    assert ONE.gather(array, axis=5) is array
    for op in ringlet.ReduceOp:
        assert ONE.reduce(op, array, axis=None) is array
        assert ONE.extended.reduce_to(op, array, "CPU:0") is array
    assert ONE.extended.broadcast_to(array, "CPU:1") is array


def test_a_wrapped_component_is_taken_out():
    value = PerReplica([np.arange(3)])
    assert ONE.run(lambda x: x, args=(value,)) is value.values[0]
    assert ONE.reduce("SUM", value, axis=None) is value.values[0]
    assert ONE.gather(value, axis=0) is value.values[0]


@pytest.mark.parametrize("strategy", [ONE, ringlet.get_strategy(), mirrored(1)], ids=repr)
@pytest.mark.parametrize("value", [PerReplica([1.0, 2.0, 3.0]), {"x": PerReplica([1.0, 2.0])}], ids=["bare", "nested"])
def test_components_of_more_replicas_are_refused_and_not_dropped(strategy, value):
    for call in (
        lambda: strategy.run(lambda x: x, args=(value,)),
        lambda: strategy.run(lambda x: x, kwargs={"x": [value]}),
        lambda: strategy.gather(value, axis=0),
        lambda: strategy.reduce("SUM", value, axis=0),
    ):
        with pytest.raises(ValueError, match=r"PerReplica with \d components cannot be .* over 1 replicas"):
            call()


def test_a_variable_of_several_replicas_may_be_used_outside_of_strategies():
    with mirrored(2).scope():
        v = ringlet.Variable(1.5)
    assert ringlet.get_strategy().run(lambda x: x[0] + 1, args=([v],)) == 2.5


def test_batches_are_not_cut():
    dataset = ringlet.data.Dataset.range(5).batch(3)
    batches = [batch.tolist() for batch in ONE.experimental_distribute_dataset(dataset)]
    assert batches == [[0, 1, 2], [3, 4]]
    assert next(iter(ONE.distribute_datasets_from_function(lambda _: dataset))).tolist() == [0, 1, 2]


def test_a_dataset_for_each_replica_is_for_others():
    options = ringlet.InputOptions(experimental_replication_mode=ringlet.InputReplicationMode.PER_REPLICA)
    for call in (
        lambda: ONE.distribute_datasets_from_function(lambda _: [1], options),
        lambda: ONE.experimental_distribute_dataset([1], options),
    ):
        with pytest.raises(NotImplementedError, match=r"InputReplicationMode\.PER_REPLICA"):
            call()


def test_an_update_sees_the_value_itself():
    seen: list[Any] = []
    assert ONE.extended.update("w", lambda w, x: seen.append((w, x)) or x, args=(3,)) == 3
    assert ONE.extended.update("w", lambda w, x: x, args=(3,), group=False) == (3,)
    assert ONE.extended.update_non_slot(("CPU:2",), lambda x: x, args=(3,)) == 3
    assert seen == [("w", 3)]
