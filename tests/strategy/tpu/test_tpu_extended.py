"""Properties of a TPUStrategy's extended object, and its differences from MirroredStrategy's."""

from __future__ import annotations

import numpy as np
import pytest

import ringlet
from ringlet.values import Mirrored, PerReplica
from tests.strategy.replicas import replica_id
from tests.strategy.tpu_systems import resolver_of, strategy_of

WORKER = "/job:worker/replica:0"


# --- devices ---------------------------------------------------------------------------------------------------------


def test_devices_are_those_of_the_assignment():
    extended = strategy_of([1, 1, 1, 2], 4).extended
    assert extended.tpu_devices.shape == (4, 2)
    assert extended.tpu_devices[1].tolist() == [f"{WORKER}/task:0/device:TPU:2", f"{WORKER}/task:0/device:TPU:3"]
    assert extended.worker_devices == extended.parameter_devices == tuple(extended.tpu_devices[:, 0])


def test_devices_have_the_job_of_the_resolver():
    resolver = ringlet.cluster_resolver.TPUClusterResolver("local", accelerator_type="v4-8", environ={})
    strategy = ringlet.TPUStrategy(resolver, ringlet.tpu.DeviceAssignment.build(resolver.topology, num_replicas=1))
    assert strategy.extended.worker_devices == ("/job:localhost/replica:0/task:0/device:TPU:0",)


def test_each_host_feeds_the_replicas_whose_first_device_it_has():
    extended = strategy_of([1, 1, 2, 1], 8, "v4-16").extended
    assert extended.num_hosts == 1
    assert list(extended.input_devices) == [f"{WORKER}/task:0/device:CPU:0"]
    extended = ringlet.TPUStrategy(resolver_of("v4-16")).extended
    assert [len(devices) for devices in extended.input_devices.values()] == [8, 8]
    assert (extended.num_hosts, extended.num_replicas_per_host) == (2, 8)


def test_a_replica_on_several_hosts_counts_as_none_per_host():
    assert strategy_of([2, 2, 2, 2], 1, "v4-16").extended.num_replicas_per_host == 0


def test_another_logical_device_is_current_inside_of_a_block():
    extended = strategy_of([1, 1, 1, 2], 4).extended
    with extended.experimental_logical_device(1):
        assert extended.worker_devices == tuple(extended.tpu_devices[:, 1])
        with extended.experimental_logical_device(-2):
            assert extended.worker_devices == tuple(extended.tpu_devices[:, 0])
        assert extended.worker_devices == tuple(extended.tpu_devices[:, 1])
    assert extended.worker_devices == tuple(extended.tpu_devices[:, 0])


def test_a_logical_device_is_current_for_one_strategy_and_its_replicas():
    one, other = strategy_of([1, 1, 1, 2], 2), strategy_of([1, 1, 1, 2], 2)
    with one.extended.experimental_logical_device(1):
        assert other.extended.worker_devices == tuple(other.extended.tpu_devices[:, 0])
        seen = one.run(lambda: one.extended.worker_devices[replica_id()])
    assert seen.values == tuple(one.extended.tpu_devices[:, 1])


@pytest.mark.parametrize("number", [2, 7, -3])
def test_missing_logical_devices_are_refused(number):
    extended = strategy_of([1, 1, 1, 2], 4).extended
    with (
        pytest.raises(ValueError, match=rf"not in range \(was {number}, but there are only 2"),
        extended.experimental_logical_device(number),
    ):
        pytest.fail("entered")


def test_state_of_no_particular_variable_is_on_the_first_host():
    strategy = strategy_of([1, 1, 1, 2], 4)
    host = strategy.extended.non_slot_devices([])
    assert host == f"{WORKER}/task:0/device:CPU:0"
    value = PerReplica([1, 2, 3, 4])
    assert strategy.extended.update_non_slot(host, lambda x: x, args=(value,)) is value


def test_the_hardware_is_that_of_the_topology():
    resolver = resolver_of()
    resolver.set_tpu_topology(bytes([0x2A, 4, 8, 2, 16, 4]))
    feature = ringlet.TPUStrategy(resolver).extended.tpu_hardware_feature
    assert feature.embedding_feature is ringlet.tpu.HardwareFeature.EmbeddingFeature.V2
    assert feature.num_embedding_devices_per_chip == 4


# --- reductions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
def test_the_mean_of_integers_needs_an_axis(dtype):
    strategy = strategy_of([1, 1, 1, 1], 2)
    value = PerReplica([np.array([1, 2], dtype), np.array([4, 8], dtype)])
    for reduce in (
        lambda: strategy.reduce("MEAN", value, axis=None),
        lambda: strategy.extended.reduce_to("MEAN", value, "CPU:0"),
        lambda: strategy.extended.batch_reduce_to("MEAN", [(value, "CPU:0")]),
        lambda: strategy.reduce("MEAN", {"x": value}, axis=None),
    ):
        with pytest.raises(TypeError, match=rf"Cannot convert 0.5 to EagerTensor of dtype {dtype}"):
            reduce()
    assert strategy.reduce("SUM", value, axis=None).tolist() == [5, 10]
    assert float(strategy.reduce("MEAN", value, axis=0)) == 3.75
    mean = strategy.run(lambda x: ringlet.get_replica_context().all_reduce("MEAN", x), args=(value,))
    assert mean.values[0].tolist() == [2.5, 5]


def test_components_of_mirrored_values_are_combined():
    strategy = strategy_of([1, 1, 1, 1], 4)
    with strategy.scope():
        variable = ringlet.Variable(1.5)
    assert float(strategy.reduce("SUM", variable, axis=None)) == 6
    assert float(strategy.reduce("MEAN", variable, axis=None)) == 1.5
    assert float(strategy.reduce("SUM", Mirrored([2.5] * 4), axis=None)) == 10


def test_results_are_on_the_requested_devices():
    strategy = strategy_of([1, 1, 1, 1], 2)
    value = PerReplica([np.float32(1), np.float32(2)])
    with strategy.scope():
        variable = ringlet.Variable(0.0)
    extended = strategy.extended
    assert extended.reduce_to("SUM", value, "CPU:0") == 3
    assert type(extended.reduce_to("SUM", {"x": value}, "CPU:0")["x"]) is not Mirrored
    everywhere = extended.reduce_to("SUM", value, variable)
    assert type(everywhere) is Mirrored
    assert everywhere.values == (3, 3)
    one, all_of_them = extended.batch_reduce_to("MEAN", [(value, "CPU:0"), (value, value)])
    assert one == 1.5
    assert all_of_them.values == (1.5, 1.5)


def test_structures_are_combined_leaf_by_leaf():
    strategy = strategy_of([1, 1, 1, 1], 2)
    found = strategy.reduce("MEAN", {"x": PerReplica([1.0, 2.0]), "y": [PerReplica([3.0, 5.0])]}, axis=None)
    assert found == {"x": 1.5, "y": [4.0]}


def test_a_broadcast_returns_its_argument():
    array = np.ones(2)
    assert strategy_of([1, 1, 1, 1], 2).extended.broadcast_to(array, "CPU:0") is array


# --- variables -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("aggregation", list(ringlet.VariableAggregation))
def test_a_variable_that_is_kept_equal_is_updated_with_equal_values(aggregation):
    strategy = strategy_of([1, 1, 1, 1], 2)
    with strategy.scope():
        variable = ringlet.Variable(0.0, aggregation=aggregation)
    different = PerReplica([1.0, 2.0])

    def update(value):
        strategy.extended.update(variable, lambda v, x: v.assign(x), args=(value,))

    if aggregation is ringlet.VariableAggregation.NONE:
        update(different)
        assert [float(component) for component in variable.values] == [1, 2]
    else:
        with pytest.raises(TypeError, match="Expected value to be mirrored across replicas"):
            update(different)
    update(Mirrored([3.0, 3.0]))
    update(4.0)
    assert [float(component) for component in variable.values] == [4, 4]


def test_components_know_their_variable():
    strategy = strategy_of([1, 1, 1, 1], 2)
    with strategy.scope():
        variable = ringlet.Variable(0.0)
    assert strategy.extended.value_container(variable.values[1]) is variable


# --- steps of TensorFlow 1 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("steps_per_run", "taken"), [(None, 1), (1, 1), (2, 3), (0, 3)])
def test_another_number_of_steps_per_run_than_one_makes_a_loop(steps_per_run, taken):
    strategy = ringlet.TPUStrategy(
        resolver_of(), ringlet.tpu.DeviceAssignment.build(resolver_of().topology, num_replicas=2)
    )
    if steps_per_run is not None:
        strategy.extended.steps_per_run = steps_per_run
    iterator = strategy.make_dataset_iterator(ringlet.data.Dataset.range(8).batch(2))
    seen = []
    done = strategy.extended.experimental_run_steps_on_iterator(
        lambda context, batch: (seen.append(batch), context.set_last_step_output("batch", batch)), iterator, 3
    )
    assert len(seen) == taken
    assert [part.tolist() for part in done.last_step_outputs["batch"].values] == [[2 * taken - 2], [2 * taken - 1]]


# --- datasets --------------------------------------------------------------------------------------------------------


def test_a_function_makes_a_dataset_for_each_host():
    contexts = []

    def dataset_fn(context):
        contexts.append((context.num_input_pipelines, context.input_pipeline_id, context.num_replicas_in_sync))
        return ringlet.data.Dataset.range(64).batch(1).shard(context.num_input_pipelines, context.input_pipeline_id)

    strategy = ringlet.TPUStrategy(resolver_of("v4-16"))
    step = next(iter(strategy.distribute_datasets_from_function(dataset_fn)))
    assert contexts == [(2, 0, 16), (2, 1, 16)]
    assert [int(part[0]) for part in step.values] == [*range(0, 16, 2), *range(1, 16, 2)]


def test_an_input_function_is_called_for_each_host():
    strategy = ringlet.TPUStrategy(resolver_of("v4-16"))
    contexts = []

    def input_fn(context):
        contexts.append((context.num_input_pipelines, context.input_pipeline_id, context.num_replicas_in_sync))
        return ringlet.data.Dataset.range(100 * len(contexts), 100 * len(contexts) + 8)

    step = strategy.make_input_fn_iterator(input_fn).get_next()
    assert contexts == [(2, 0, 16), (2, 1, 16)]
    assert [int(part) for part in step.values] == [*range(100, 108), *range(200, 208)]
    called = strategy.make_input_fn_iterator(lambda context: lambda: context.input_pipeline_id)
    assert called.get_next().values == (0,) * 8 + (1,) * 8
    with pytest.raises(ValueError, match="the same kind for each host"):
        strategy.make_input_fn_iterator(lambda context: [1] if context.input_pipeline_id else lambda: 1)


def test_every_row_of_a_batch_reaches_one_replica_whatever_hosts_there_are():
    for accelerator_type in ("v4-8", "v4-16", "v4-32"):
        strategy = ringlet.TPUStrategy(resolver_of(accelerator_type))
        count = strategy.num_replicas_in_sync
        batches = strategy.experimental_distribute_dataset(ringlet.data.Dataset.range(2 * count).batch(count))
        rows = [sorted(int(row) for part in step.values for row in part) for step in batches]
        assert rows == [list(range(count)), list(range(count, 2 * count))]


def test_a_dataset_for_each_replica_is_for_others():
    options = ringlet.InputOptions(experimental_replication_mode=ringlet.InputReplicationMode.PER_REPLICA)
    strategy = strategy_of([1, 1, 1, 1], 2)
    with pytest.raises(NotImplementedError, match="of MirroredStrategy, not of TPUStrategy"):
        strategy.experimental_distribute_dataset(ringlet.data.Dataset.range(4).batch(2), options)
