"""MirroredStrategy: the contract of strategies, its devices, its arguments."""

from __future__ import annotations

import copy
import gc
import logging
import pickle
import subprocess
import sys
import weakref

import numpy as np
import pytest

import ringlet
from ringlet.errors import DuplicateDeviceError
from ringlet.values import PerReplica
from tests.strategy.contract import StrategyContract


def mirrored(num_replicas: int) -> ringlet.MirroredStrategy:
    return ringlet.MirroredStrategy([f"CPU:{i}" for i in range(num_replicas)])


class TestMirroredStrategy(StrategyContract):
    def make(self, num_replicas: int) -> ringlet.Strategy:
        return mirrored(num_replicas)


# --- devices --------------------------------------------------------------------------------------------------------


def test_replicas_are_on_the_devices_in_their_order():
    strategy = ringlet.MirroredStrategy(["CPU:3", "/cpu:1"])
    devices = ("/job:localhost/replica:0/task:0/device:CPU:3", "/job:localhost/replica:0/task:0/device:CPU:1")
    assert strategy.extended.worker_devices == strategy.extended.parameter_devices == devices
    assert strategy.run(lambda: ringlet.get_replica_context().devices[0]).values == devices
    assert repr(strategy) == "MirroredStrategy(['CPU:3', 'CPU:1'])"


def test_objects_with_a_name_are_devices():
    class LogicalDevice:
        name = "/device:CPU:2"

    assert repr(ringlet.MirroredStrategy([LogicalDevice()])) == "MirroredStrategy(['CPU:2'])"


@pytest.mark.parametrize(
    ("devices", "kind", "message"),
    [
        (["CPU:0", "/cpu:0"], DuplicateDeviceError, "CPU:0 occurs 2 times"),
        (["nonsense"], ValueError, "'nonsense' in the device string"),
        ("CPU:0", ValueError, r"write \['CPU:0'\]"),
        ([3], TypeError, "a device must be a string"),
        ("4", ValueError, "the string '4': write 4"),
        (4.0, TypeError, r"got 4.0 of type float: write \['CPU:0', 'CPU:1'\] or 2 for two replicas"),
        (True, TypeError, "or their number, got True of type bool"),
        (0, ValueError, "requires at least one replica, got 0: write a number such as 2"),
        (4097, ValueError, "at most 4096 replicas"),
        (np.array(["CPU:0", "CPU:1"]), TypeError, r"of type ndarray: write \['CPU:0', 'CPU:1'\]"),
        ({"CPU:0", "CPU:1"}, TypeError, "in the order of the replicas, .* of type set"),
        ([f"CPU:{i}" for i in range(4097)], ValueError, "at most 4096 replicas in one process, but more"),
        (["/job:worker/task:0", "/job:worker/task:1"], RuntimeError, "does not support several workers"),
        (["CPU:0", "/job:worker/task:0/cpu:0"], ValueError, "mix localhost"),
    ],
)
def test_bad_devices_are_refused(devices, kind, message):
    with pytest.raises(kind, match=message):
        ringlet.MirroredStrategy(devices)


@pytest.mark.parametrize("number", [3, np.int64(3)])
def test_a_number_of_devices_is_that_many_replicas(number):
    assert repr(ringlet.MirroredStrategy(number)) == "MirroredStrategy(['CPU:0', 'CPU:1', 'CPU:2'])"


@pytest.mark.parametrize("devices", [None, [], ()])
def test_all_logical_devices_are_used_and_logged_in_one_line(devices, caplog):
    caplog.set_level(logging.INFO, "ringlet")
    strategy = ringlet.MirroredStrategy(devices)
    assert strategy.extended.worker_devices == ringlet.devices.logical_devices()
    [record] = [record for record in caplog.records if record.name.startswith("ringlet.strategy")]
    assert (record.levelno, "all" in record.getMessage()) == (logging.INFO, True)


# --- arguments ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ops", [None, ringlet.RingAllReduce(), ringlet.DirectAllReduce()], ids=repr)
def test_cross_device_ops_choose_the_algorithm(ops):
    strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"], cross_device_ops=ops)
    result = strategy.run(lambda: ringlet.get_replica_context().all_reduce("SUM", np.arange(5000.0)))
    for component in result.values:
        np.testing.assert_array_equal(component, 2 * np.arange(5000.0))


@pytest.mark.parametrize("ops", ["ring", ringlet.RingAllReduce, 3])
def test_other_cross_device_ops_are_refused(ops):
    with pytest.raises(TypeError, match=r"cross_device_ops must be a CrossDeviceOps such as RingAllReduce\(\)"):
        ringlet.MirroredStrategy(["CPU:0"], cross_device_ops=ops)


@pytest.mark.parametrize("args", [None, 3, "abc", {"x": 1}, np.ones(2)])
def test_positional_arguments_must_be_a_list_or_tuple(args):
    with pytest.raises(ValueError, match="positional args must be a list or tuple"):
        mirrored(2).run(lambda *_: None, args=args)


@pytest.mark.parametrize("args", [5, "ab"])
@pytest.mark.parametrize("num_replicas", [1, 2])
def test_positional_arguments_of_merge_call_must_be_a_list_or_tuple(num_replicas, args):
    with pytest.raises(ValueError, match="positional args must be a list or tuple"):
        mirrored(num_replicas).run(lambda: ringlet.get_replica_context().merge_call(lambda *_: None, args=args))


def test_keyword_arguments_of_run_must_be_a_mapping():
    strategy = mirrored(2)
    with pytest.raises(TypeError, match=r"kwargs must be a mapping .*, got \[1\]"):
        strategy.run(lambda **_: None, kwargs=[1])
    with pytest.raises(TypeError, match=r"kwargs must be a mapping .*, got \[1\]"):
        strategy.run(lambda: ringlet.get_replica_context().merge_call(lambda *_: None, kwargs=[1]))


def test_options_of_datasets_are_input_options():
    strategy = mirrored(2)
    with pytest.raises(TypeError, match="InputOptions or None, got 5"):
        strategy.experimental_distribute_dataset([1], options=5)
    with pytest.raises(TypeError, match="InputOptions or None, got 5"):
        strategy.distribute_datasets_from_function(lambda _: [1], options=5)


# --- copies and life time -------------------------------------------------------------------------------------------


def test_a_shallow_copy_is_refused():
    with pytest.raises(RuntimeError, match="deepcopy"):
        copy.copy(mirrored(2))


def test_pickling_is_refused():
    with pytest.raises(TypeError, match=r"cannot pickle MirroredStrategy.* Create a strategy in each process"):
        pickle.dumps(mirrored(2))


def test_a_deep_copy_is_a_strategy_of_its_own():
    strategy = mirrored(2)
    strategy.run(lambda: None)
    twin = copy.deepcopy(strategy)
    assert twin.extended.worker_devices == strategy.extended.worker_devices
    assert twin.run(lambda: ringlet.get_strategy() is twin) is True
    with strategy.scope(), pytest.raises(RuntimeError, match="Mixing"):
        twin.run(lambda: None)


def test_an_unreferenced_strategy_is_freed_at_once():
    strategy = mirrored(2)
    strategy.run(lambda: ringlet.get_replica_context().all_reduce("SUM", 1.0))
    reference = weakref.ref(strategy)
    gc.disable()
    try:
        del strategy
        assert reference() is None
    finally:
        gc.enable()


def test_arguments_and_results_are_freed_once_unreferenced():
    class Tracked:
        pass

    def step(argument):
        replica = ringlet.get_replica_context()
        replica.merge_call(lambda _: replica)
        return argument, Tracked()

    strategy = mirrored(2)
    argument = Tracked()
    gc.disable()
    try:
        answer = strategy.run(step, args=(argument,))
        references = [weakref.ref(argument), *(weakref.ref(value) for value in answer[1].values)]
        del argument, answer
        assert [reference() for reference in references] == [None] * 3
    finally:
        gc.enable()


def test_nothing_is_printed_when_the_interpreter_ends():
    code = """
import atexit, ringlet, numpy as np
strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1", "CPU:2"])
strategy.run(lambda: ringlet.get_replica_context().all_reduce("SUM", np.ones(3)))
atexit.register(lambda: print("ended"))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ended\n", "")


def test_local_results_of_a_structure_drop_nothing():
    strategy, three = mirrored(2), PerReplica([1, 2, 3])
    assert strategy.experimental_local_results(three) == (1, 2, 3)
    for value in ([three], {"x": (PerReplica([1]),)}):
        with pytest.raises(
            ValueError, match=r"experimental_local_results was given a PerReplica with \d components for 2"
        ):
            strategy.experimental_local_results(value)


def test_a_variable_returned_by_all_replicas_is_returned_bare():
    for num_replicas in (1, 2):
        strategy = mirrored(num_replicas)
        with strategy.scope():
            v = ringlet.Variable(np.ones(2))
        assert strategy.experimental_distribute_values_from_function(lambda _, v=v: v) is v


def test_a_component_returned_by_one_replica_becomes_its_variable():
    strategy = mirrored(1)
    with strategy.scope():
        v = ringlet.Variable(np.ones(2))
    assert strategy.run(lambda: v.values[0]) is v
    answer = strategy.run(lambda: {"v": [v.values[0]], "other": 5})
    assert answer["v"][0] is v
    assert answer["other"] == 5
    untouched = [np.ones(2), {"v": v}]
    assert strategy.run(lambda: untouched) is untouched


def test_a_group_is_the_only_leaf_or_nothing():
    strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
    ids = strategy.run(lambda: ringlet.get_replica_context().replica_id_in_sync_group)
    assert strategy.group(3) == 3
    assert [strategy.group(3, name="x"), strategy.group(ids), strategy.group([ids])] == [None] * 3
