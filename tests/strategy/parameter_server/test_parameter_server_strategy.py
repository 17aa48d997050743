"""ParameterServerStrategy in the coordinator, and its counterpart in a worker."""

from __future__ import annotations

import copy
import logging
import pickle

import numpy as np
import pytest

import ringlet
from ringlet import VariableAggregation, VariableSynchronization
from ringlet.cluster_resolver import LocalClusterResolver, SimpleClusterResolver
from ringlet.compat import tf
from ringlet.data import Dataset, InputOptions, InputReplicationMode
from ringlet.errors import FailedPreconditionError
from ringlet.experimental.partitioners import FixedShardsPartitioner
from ringlet.strategy.parameter_server.dataset_for_workers import DatasetForWorkers
from ringlet.strategy.parameter_server.parameter_server_client import ParameterServers
from ringlet.strategy.parameter_server.parameter_server_strategy import (
    ParameterServerStrategy,
    reduce_strategy,
    refusing_variables,
    task_strategy,
)
from ringlet.train import Checkpoint, ClusterSpec
from ringlet.values import PerReplica, ShardedVariable
from ringlet.values.variables.table_variable import TableVariable
from tests.coordinator.in_threads import ThreadTasks


def over_threads(ps=2, partitioner=None, kind=ParameterServerStrategy):
    strategy = kind(LocalClusterResolver(1, ps), partitioner)
    strategy.extended._known_servers = ParameterServers(ThreadTasks(1, ps))
    return strategy


@pytest.fixture(scope="module")
def shared():
    strategy = over_threads()
    yield strategy
    strategy.extended._cluster().stop()


@pytest.fixture(scope="module")
def cutting():
    strategy = over_threads(partitioner=FixedShardsPartitioner(2))
    yield strategy
    strategy.extended._cluster().stop()


# --- clusters ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cluster", "options", "text"),
    [
        ({}, {}, "Cluster spec must be non-empty in `tf.distribute.cluster_resolver.ClusterResolver`"),
        ({"worker": ["a:1"]}, {}, "There must be at least one ps"),
        ({"ps": ["a:1"]}, {}, "There must be at least one worker"),
        ({"worker": ["a:1"], "ps": []}, {}, "There must be at least one ps"),
        ({"worker": ["a:1"], "ps": ["b:1"], "x": ["c:1"]}, {}, "Disallowed task type found in cluster spec"),
        ({"worker": ["a:1"], "ps": ["b:1"]}, {"task_type": "worker", "task_id": 1}, "`task_id` 1 exceeds the maximum"),
        ({"worker": ["a:1"], "ps": ["b:1"], "chief": ["c:1", "d:1"]}, {}, "at most one 'chief' job"),
    ],
)
def test_a_cluster_has_workers_and_parameter_servers_and_nothing_else(cluster, options, text):
    with pytest.raises(ValueError, match=text):
        ParameterServerStrategy(SimpleClusterResolver(ClusterSpec(cluster), **options))


@pytest.mark.parametrize("resolver", [None, "local", {"worker": ["a:1"], "ps": ["b:1"]}])
def test_an_invalid_resolver_is_refused_with_a_remedy(resolver):
    with pytest.raises(TypeError, match=r"write ringlet\.cluster_resolver\.LocalClusterResolver\(workers=2, ps=1\)"):
        ParameterServerStrategy(resolver)


def test_a_partitioner_is_called():
    with pytest.raises(TypeError, match=r"ringlet\.experimental\.partitioners"):
        ParameterServerStrategy(LocalClusterResolver(1, 1), 3)


def test_nothing_is_started_before_it_is_needed():
    resolver = LocalClusterResolver(3, 2)
    strategy = ParameterServerStrategy(resolver)
    assert repr(strategy) == "ParameterServerStrategy(workers=3, ps=2)"
    assert strategy.run(lambda x: x + 1, args=(2,)) == 3
    assert resolver._cluster is None


def test_its_properties_are_those_of_tensorflow(shared):
    extended = shared.extended
    assert (shared.num_replicas_in_sync, shared.cluster_resolver) == (1, None)
    assert extended.worker_devices == ("/device:CPU:0",)
    assert extended.parameter_devices == ("/job:chief/replica:0/task:0/device:CPU:0",)
    assert (extended.experimental_between_graph, extended.experimental_should_init, extended.should_checkpoint) == (
        True,
    ) * 3
    assert ringlet.experimental.ParameterServerStrategy is ringlet.ParameterServerStrategy


def test_it_is_neither_copied_nor_pickled(shared):
    for make in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises((TypeError, RuntimeError), match=r"(copy|pickle).*ParameterServerStrategy"):
            make(shared)


# --- variables --------------------------------------------------------------------------------------------------------


def test_variables_are_assigned_round_robin():
    strategy = over_threads(ps=3)
    with strategy.scope():
        variables = [ringlet.Variable(float(i), name=f"v{i}") for i in range(4)]
    assert [v.device for v in variables] == [f"/job:ps/replica:0/task:{i}/device:CPU:0" for i in (0, 1, 2, 0)]
    assert all(type(v) is TableVariable and v.distribute_strategy is strategy for v in variables)
    strategy.extended._cluster().stop()


def test_a_failed_creation_does_not_advance_the_round_robin(shared):
    count = shared.extended._variable_count
    with shared.scope(), pytest.raises(ValueError, match="initial_value"):
        ringlet.Variable(None)
    assert shared.extended._variable_count == count


def test_variables_keep_the_synchronization_and_the_aggregation_that_were_asked_for(shared):
    with shared.scope():
        v = ringlet.Variable(
            1, synchronization=VariableSynchronization.ON_READ, aggregation=VariableAggregation.MEAN, trainable=None
        )
    assert (v.synchronization.name, v.aggregation.name, v.trainable) == ("ON_READ", "MEAN", False)
    with shared.scope(), pytest.raises(ValueError, match="Invalid variable aggregation mode: x"):
        ringlet.Variable(1, aggregation="x")


def test_shards_are_assigned_round_robin(cutting):
    with cutting.scope():
        v, scalar = ringlet.Variable(np.arange(6.0).reshape(3, 2), name="w"), ringlet.Variable(1.5)
    assert isinstance(v, ShardedVariable)
    assert [shard.name for shard in v] == ["w/part_0:0", "w/part_1:0"]
    first, second = (shard.device[len("/job:ps/replica:0/task:")] for shard in v)
    assert {first, second} == {"0", "1"}
    assert type(scalar) is TableVariable
    assert cutting.extended.variable_created_in_scope(v)
    assert v.distribute_strategy is cutting


def test_colocated_variables_are_on_one_server_and_not_sharded(cutting):
    with cutting.scope():
        table, other = ringlet.Variable(np.ones((4, 2))), ringlet.Variable(1.0)
        count = cutting.extended._variable_count
        for beside, device in [(other, other.device), (table.variables[1], table.variables[1].device), (table, None)]:
            with cutting.extended.colocate_vars_with(beside):
                slot = ringlet.Variable(np.zeros((4, 2)))
            assert type(slot) is TableVariable
            assert slot.device == (device or table.variables[0].device)
        assert cutting.extended._variable_count == count
        with pytest.raises(ValueError, match="must only be passed a variable created in this"):
            cutting.extended.colocate_vars_with(1.0)


def test_a_deep_copy_is_another_variable_in_the_same_place(cutting):
    with cutting.scope():
        v, table = ringlet.Variable(1.5, name="v", trainable=False), ringlet.Variable([1.0, 2.0, 3.0])
    twin, whole = copy.deepcopy(v), copy.deepcopy(table)
    twin.assign(2.5)
    whole.assign_add([1.0, 1.0, 1.0])
    assert (v.numpy(), twin.numpy(), twin.name, twin.device, twin.trainable) == (1.5, 2.5, "v:0", v.device, False)
    assert (table.numpy().tolist(), whole.numpy().tolist()) == ([1.0, 2.0, 3.0], [2.0, 3.0, 4.0])
    assert [shard.device for shard in whole] == [shard.device for shard in table]


def test_a_deep_copy_is_all_that_the_variable_is(shared):
    with shared.scope():
        v = tf.Variable(
            [1.0, 2.0],
            constraint=abs,
            synchronization=VariableSynchronization.ON_WRITE,
            aggregation=VariableAggregation.MEAN,
        )
    twin = copy.deepcopy(v)
    assert (twin.constraint, twin.synchronization, twin.aggregation) == (abs, v.synchronization, v.aggregation)
    assert v.synchronization is VariableSynchronization.ON_WRITE
    assert type(twin.read_value()) is type(v.read_value()) is not np.ndarray


def test_nonsense_of_a_partitioner_is_refused():
    strategy = over_threads(partitioner=lambda shape, dtype: [2, 2])
    with strategy.scope(), pytest.raises(ValueError, match=r"variable_partitioner must return .*, got: \[2, 2\]"):
        ringlet.Variable(np.ones((4, 2)))
    strategy.extended._cluster().stop()


def test_variables_are_made_and_changed_by_replicas_too(shared):
    def step():
        v = ringlet.Variable(1.0)
        return v.assign_add(2.0).read_value()

    assert shared.run(step) == 3.0


def test_no_variables_are_made_where_they_are_refused(shared):
    text = "Creating variables in `dataset_fn` is not allowed"
    with shared.scope(), refusing_variables(text), pytest.raises(ValueError, match=text):
        ringlet.Variable(1.0)
    with shared.scope():
        assert ringlet.Variable(1.0).numpy() == 1.0


def test_a_strategy_of_a_stopped_cluster_raises_and_a_new_one_works():
    strategy = over_threads()
    with strategy.scope():
        v = ringlet.Variable(1.5)
    strategy.extended._cluster().stop()
    with strategy.scope(), pytest.raises(FailedPreconditionError, match="create another strategy"):
        ringlet.Variable(1.0)
    assert v.assign_add(1.0).numpy() == 2.5


# --- updates and reductions -------------------------------------------------------------------------------------------


def test_updates_and_reductions_are_those_of_one_replica(shared):
    with shared.scope():
        v, w = ringlet.Variable(1.0, name="v"), ringlet.Variable([1.0, 2.0], name="w")
    extended = shared.extended
    assert extended.update(v, lambda each, x: each.assign_add(x), args=(1.0,)) is v
    assert extended.update(v, lambda each: each.read_value() * 2, group=False) == (4.0,)
    with pytest.raises(ValueError, match=r"You can not update `var` 1\.0"):
        extended.update(1.0, lambda each: each)
    table = ShardedVariable([w])
    assert extended.update(table, lambda each, x: each.assign_add(x), args=([1.0, 1.0],)) is table
    assert extended.non_slot_devices([w, v]) is v
    assert extended.update_non_slot(v, lambda: 3) == 3
    assert shared.reduce("SUM", 3.0, axis=None) == 3.0
    assert shared.reduce("MEAN", np.array([1.0, 2.0]), axis=0) == 1.5
    assert extended.reduce_to("SUM", 3.0, "CPU:0") == 3.0
    assert extended.broadcast_to(3, "") == 3
    assert shared.gather(np.array([3.0]), axis=0).tolist() == [3.0]
    assert shared.experimental_local_results(PerReplica([1])) == (1,)
    values = shared.experimental_distribute_values_from_function(lambda context: context.num_replicas_in_sync)
    assert values.values == (1,)


def test_each_call_in_the_coordinator_warns_that_no_worker_runs_it(caplog):
    strategy = ParameterServerStrategy(LocalClusterResolver(1, 1))
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            strategy.run(lambda: 1)
            strategy.reduce("SUM", 1.0, axis=None)
    assert ["ClusterCoordinator.schedule" in record.message for record in caplog.records] == [True] * 4


# --- datasets ---------------------------------------------------------------------------------------------------------


def batches(context):
    return Dataset.range(context.get_per_replica_batch_size(4)).batch(2)


def test_datasets_are_built_by_workers(shared):
    worker = task_strategy(*reduce_strategy(shared)[1])
    for name, given in (
        ("experimental_distribute_dataset", batches(ringlet.InputContext())),
        ("distribute_datasets_from_function", batches),
    ):
        dataset = getattr(shared, name)(given)
        assert type(dataset) is DatasetForWorkers
        with pytest.raises(ValueError, match="create_per_worker_dataset"):
            iter(dataset)
        for built in (dataset.build(), getattr(worker, name)(given)):
            assert [batch.tolist() for batch in built] == [[0, 1], [2, 3]]


def test_iterators_of_tensorflow_1_are_the_coordinator_s(shared):
    assert shared.make_dataset_iterator(Dataset.range(4).batch(2)).get_next().tolist() == [0, 1]
    assert shared.make_input_fn_iterator(lambda _: Dataset.range(4).batch(2)).get_next().tolist() == [0, 1]


def test_options_of_datasets_are_checked_where_they_are_built(shared):
    options = InputOptions(experimental_replication_mode=InputReplicationMode.PER_REPLICA)
    with pytest.raises(NotImplementedError, match="PER_REPLICA"):
        shared.experimental_distribute_dataset(Dataset.range(4), options).build()
    with pytest.raises(TypeError, match=r"options must be a ringlet\.data\.InputOptions"):
        shared.experimental_distribute_dataset(Dataset.range(4), 5)


# --- in a worker ------------------------------------------------------------------------------------------------------


def test_a_worker_has_one_strategy_in_the_place_of_the_coordinator_s(shared):
    make, args = reduce_strategy(shared)
    worker = make(*args)
    assert make(*args) is worker
    assert worker is not shared
    assert isinstance(worker, ringlet.ParameterServerStrategy)
    assert repr(worker) == "ParameterServerStrategy(in a worker)"
    with worker.scope():
        assert ringlet.get_strategy() is worker
    assert worker.run(lambda: ringlet.get_replica_context().num_replicas_in_sync) == 1


def test_calls_in_a_worker_do_not_warn(caplog):
    worker = task_strategy(*reduce_strategy(ParameterServerStrategy(LocalClusterResolver(1, 1)))[1])
    assert worker.run(lambda: 1) == 1
    assert worker.reduce("SUM", 1.0, axis=None) == 1
    assert not caplog.records


def test_workers_make_no_variables_and_start_no_processes(shared):
    worker = task_strategy(*reduce_strategy(shared)[1])
    with worker.scope(), pytest.raises(ValueError, match=r"Variable 'v' float64\[\] cannot be created here"):
        ringlet.Variable(1.0, name="v")
    with pytest.raises(RuntimeError, match="a worker has no access to the other processes"):
        worker.extended._cluster()


# --- checkpoints ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shards", [1, 3, 5])
def test_a_checkpoint_is_restored_under_another_number_of_shards(tmp_path, cutting, shards):
    value = np.arange(14.0).reshape(7, 2)
    with cutting.scope():
        table, counter = ringlet.Variable(value, name="table"), ringlet.Variable(3, name="counter")
    path = Checkpoint(table=table, counter=counter).save(tmp_path / "ckpt")
    strategy = over_threads(partitioner=FixedShardsPartitioner(shards))
    with strategy.scope():
        other, counts = ringlet.Variable(np.zeros((7, 2))), ringlet.Variable(0)
    Checkpoint(table=other, counter=counts).restore(path).assert_consumed()
    np.testing.assert_array_equal(other, value)
    assert counts.numpy() == 3
    strategy.extended._cluster().stop()


def test_a_variable_of_the_program_is_on_its_own_host(shared):
    with shared.scope():
        theirs = tf.Variable(1.0)
    mine = tf.Variable(1.0)
    assert (theirs.device[:7], mine.device) == ("/job:ps", "/job:localhost/replica:0/task:0/device:CPU:0")
