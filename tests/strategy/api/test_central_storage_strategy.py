"""CentralStorageStrategy: the contract of strategies, and the device of its variables."""

from __future__ import annotations

import numpy as np
import pytest

import ringlet
from ringlet.experimental import CentralStorageStrategy
from ringlet.values import Mirrored, PerReplica
from tests.strategy.contract import StrategyContract


class TestCentralStorageStrategy(StrategyContract):
    """Its replicas are threads, as in MirroredStrategy."""

    def make(self, num_replicas: int) -> ringlet.Strategy:
        return CentralStorageStrategy([f"CPU:{i}" for i in range(num_replicas)])


@pytest.mark.parametrize(
    ("compute_devices", "parameter_device", "expected"),
    [
        (None, None, "/job:localhost/replica:0/task:0/device:CPU:0"),
        (["CPU:3"], None, "/job:localhost/replica:0/task:0/device:CPU:3"),
        (["CPU:1", "CPU:2"], None, "/device:CPU:0"),
        (["CPU:1", "CPU:2"], "CPU:2", "CPU:2"),
    ],
)
def test_variables_are_on_the_device_of_tensorflow(compute_devices, parameter_device, expected):
    strategy = CentralStorageStrategy(compute_devices, parameter_device)
    assert strategy.extended.parameter_devices == (expected,)
    assert strategy.num_replicas_in_sync == len(compute_devices or [None])


def test_the_strategy_shows_its_devices():
    assert repr(CentralStorageStrategy(["CPU:0", "CPU:1"], "CPU:1")) == (
        "CentralStorageStrategy(['CPU:0', 'CPU:1'], 'CPU:1')"
    )


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("CPU:0",), ValueError),
        ((["CPU:0", "CPU:1"], "nonsense"), ValueError),
        ((["CPU:0"], ""), ValueError),
        ((3.5,), TypeError),
        ((["CPU:0"], 5), TypeError),
    ],
)
def test_invalid_devices_are_refused(arguments, error):
    with pytest.raises(error):
        CentralStorageStrategy(*arguments)


def test_the_argument_that_is_wrong_is_named():
    with pytest.raises(TypeError, match="parameter_device must be a device string, got 5 of type int"):
        CentralStorageStrategy(["CPU:0"], 5)
    with pytest.raises(TypeError, match=r"devices must be a list of device strings .*, or their number, got 5\.5"):
        CentralStorageStrategy(5.5)


def test_a_result_for_one_device_is_bare():
    strategy = CentralStorageStrategy(["CPU:0", "CPU:1"])
    value = PerReplica([np.ones(2), np.ones(2)])
    assert strategy.extended.reduce_to("SUM", value, "CPU:0").tolist() == [2, 2]
    everywhere = strategy.extended.reduce_to("MEAN", value, value)
    assert type(everywhere) is Mirrored
    assert [part.tolist() for part in everywhere.values] == [[1, 1]] * 2


def test_a_dataset_for_each_replica_is_for_others():
    options = ringlet.InputOptions(experimental_replication_mode=ringlet.InputReplicationMode.PER_REPLICA)
    strategy = CentralStorageStrategy(["CPU:0", "CPU:1"])
    with pytest.raises(NotImplementedError, match="only supported in distribute_datasets_from_function"):
        strategy.distribute_datasets_from_function(lambda _: [1], options)


def test_state_of_no_particular_variable_is_with_the_one_of_the_least_name():
    class Named:
        def __init__(self, name: str) -> None:
            self.name = name

    a, b = Named("a:0"), Named("b:0")
    assert CentralStorageStrategy(["CPU:0", "CPU:1"]).extended.non_slot_devices([b, a]) is a


def test_options_of_datasets_are_taken():
    strategy = CentralStorageStrategy(["CPU:0", "CPU:1"])
    dataset = strategy.experimental_distribute_dataset(ringlet.data.Dataset.range(4).batch(4), ringlet.InputOptions())
    assert [part.tolist() for part in next(iter(dataset)).values] == [[0, 1], [2, 3]]


def test_a_last_step_that_has_elements_for_some_replicas_only_is_kept():
    strategy = CentralStorageStrategy(["CPU:0", "CPU:1"])
    batches = strategy.distribute_datasets_from_function(lambda _: ringlet.data.Dataset.range(5).batch(2))
    steps = [[part.tolist() for part in strategy.experimental_local_results(step)] for step in batches]
    assert steps == [[[0, 1], [2, 3]], [[4], []]]


def test_one_device_may_have_several_replicas():
    strategy = CentralStorageStrategy(["CPU:0", "cpu:0"])
    assert strategy.extended.worker_devices == ("/job:localhost/replica:0/task:0/device:CPU:0",) * 2
    assert strategy.reduce("SUM", PerReplica([1.0, 2.0]), axis=None) == 3
