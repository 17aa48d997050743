"""TPUStrategy: the contract of strategies, its replicas, and tensors on their logical devices."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ringlet
from ringlet.compat import tf
from ringlet.errors import NotFoundError, PartitionError
from ringlet.experimental import TPUStrategy as ExperimentalTPUStrategy
from ringlet.values import PerReplica
from tests.strategy.contract import StrategyContract
from tests.strategy.replicas import replica_id
from tests.strategy.tpu_systems import resolver_of, strategy_of


def tensor_strategy_of(shape, num_replicas):
    """Return a strategy over the same slice, as `tf.distribute` spells it."""
    extended = strategy_of(shape, num_replicas).extended
    return tf.distribute.TPUStrategy(extended.cluster_resolver, extended.device_assignment)


class TestTPUStrategy(StrategyContract):
    """Its replicas are threads, as in MirroredStrategy."""

    def make(self, num_replicas: int) -> ringlet.Strategy:
        return strategy_of([1, 1, 1, 1], num_replicas)


class TestTPUStrategyOfSeveralLogicalDevices(StrategyContract):
    """Replicas of two cores, on a slice of two hosts."""

    COUNTS = (2, 8)

    def make(self, num_replicas: int) -> ringlet.Strategy:
        return strategy_of([1, 1, 1, 2], num_replicas, "v4-16")


# --- replicas --------------------------------------------------------------------------------------------------------


def test_each_device_is_a_replica_by_default():
    strategy = ringlet.TPUStrategy(resolver_of("v4-16"))
    assert strategy.num_replicas_in_sync == 16
    assert strategy.extended.num_logical_devices == 1
    assert repr(strategy) == "TPUStrategy(16 replicas of 1 logical device, on 2 hosts)"


def test_a_strategy_needs_no_resolver(monkeypatch):
    monkeypatch.setenv("TPU_ACCELERATOR_TYPE", "v5litepod-4")
    strategy = ringlet.TPUStrategy()
    assert strategy.num_replicas_in_sync == 4
    assert isinstance(strategy.cluster_resolver, ringlet.cluster_resolver.TPUClusterResolver)


def test_the_resolver_is_the_one_that_was_given():
    resolver = resolver_of()
    strategy = ringlet.TPUStrategy(resolver)
    assert strategy.cluster_resolver is resolver
    assert copy.deepcopy(strategy).cluster_resolver is resolver


def test_hundreds_of_replicas_run():
    strategy = strategy_of([1, 1, 1, 2], 256, "v4-512")
    ids = strategy.run(lambda: replica_id() + 1000)
    assert ids.values == tuple(range(1000, 1256))
    assert strategy.extended.num_hosts == 64


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((5,), TypeError, "TPUClusterResolver, got 5 of type int"),
        ((None, "assignment"), TypeError, "DeviceAssignment, got 'assignment' of type str"),
    ],
)
def test_invalid_resolvers_and_assignments_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        ringlet.TPUStrategy(*arguments)


def test_a_system_without_tpus_is_refused():
    class NoTpus:
        def get_tpu_system_metadata(self):
            return ringlet.tpu.TPUSystemMetadata(0, 0, 0, None, ())

    with pytest.raises(NotFoundError, match="TPUs not found in the cluster"):
        ringlet.TPUStrategy(NoTpus())


@pytest.mark.parametrize(("accelerator_type", "count"), [("v5p-12288", 12288), ("v4-8", 0)])
def test_too_many_replicas_and_none_are_refused(accelerator_type, count):
    resolver = resolver_of(accelerator_type)
    assignment = ringlet.tpu.DeviceAssignment.build(resolver.topology, num_replicas=count)
    with pytest.raises(ValueError, match=f"the slice has {count} replicas"):
        ringlet.TPUStrategy(resolver, assignment)


def test_the_older_strategy_lays_out_no_tensors(caplog):
    strategy = ExperimentalTPUStrategy(resolver_of())
    assert "deprecated" in caplog.text
    assert strategy.run(lambda: replica_id() + 1000).values == tuple(range(1000, 1008))
    assert not hasattr(strategy, "experimental_split_to_logical_devices")
    assert repr(strategy) == "TPUStrategy(8 replicas of 1 logical device, on 1 host)"


# --- tensors on logical devices --------------------------------------------------------------------------------------

IMAGE = np.arange(2 * 4 * 8 * 3, dtype=np.float32).reshape(2, 4, 8, 3)


@pytest.fixture(scope="module")
def of_eight() -> ringlet.TPUStrategy:
    """One replica of eight logical devices."""
    return strategy_of([1, 2, 2, 2], 1, "v4-16")


def test_a_split_tensor_has_the_values_of_the_whole_and_a_tile_for_each_logical_device(of_eight):
    found = of_eight.experimental_split_to_logical_devices(IMAGE, [1, 2, 4, 1])
    np.testing.assert_array_equal(found, IMAGE)
    assert len(found.shards) == 8
    for number, tile in enumerate(found.shards):
        row, column = divmod(number, 4)
        np.testing.assert_array_equal(tile, IMAGE[:, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2])
        assert np.shares_memory(tile, IMAGE)
    assert str(found.sharding) == "{devices=[1,2,4,1]<=[8]}"


def test_a_step_function_splits_its_part_of_a_batch():
    strategy = strategy_of([1, 1, 1, 2], 4)

    def step(x):
        x = strategy.experimental_split_to_logical_devices(x, [2, 1])
        return [tile.copy() for tile in x.shards], x @ np.ones(3)

    batches = strategy.experimental_distribute_dataset(ringlet.data.Dataset.from_tensors(np.eye(8, 3)))
    tiles, sums = strategy.run(step, args=(next(iter(batches)),))
    assert len(tiles) == 2
    assert [part.shape for part in tiles[0].values] == [(1, 3)] * 4
    assert np.concatenate(sums.values).tolist() == [1, 1, 1, 0, 0, 0, 0, 0]


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 3)), min_size=1, max_size=4))
def test_tiles_cover_the_tensor_once_in_row_major_order(dimensions):
    parts, shape = [part for part, _ in dimensions], [part * size for part, size in dimensions]
    tensor = np.arange(np.prod(shape)).reshape(shape)
    count = int(np.prod(parts))
    topology = ringlet.tpu.Topology(
        mesh_shape=[count, 1, 1, 1], device_coordinates=[[[i, 0, 0, 0] for i in range(count)]]
    )
    assignment = ringlet.tpu.DeviceAssignment.build(topology, [count, 1, 1, 1], num_replicas=1)
    strategy = ringlet.TPUStrategy(resolver_of(), assignment)
    found = strategy.experimental_split_to_logical_devices(tensor, parts)
    for number, (tile, cut) in enumerate(zip(found.shards, found.sharding.slices(shape), strict=True)):
        np.testing.assert_array_equal(tile, tensor[cut])
        assert count == 1 or found.sharding.tile_assignment[np.unravel_index(number, parts)] == number


def test_split_tensors_and_lists_can_be_split(of_eight):
    once = of_eight.experimental_split_to_logical_devices([[1.5] * 8], [1, 8])
    again = of_eight.experimental_split_to_logical_devices(once, [1, 8])
    assert [tile.tolist() for tile in again.shards] == [[[1.5]]] * 8
    assert np.shares_memory(again.shards[0], once.shards[0])


def test_a_tensor_is_on_one_logical_device_or_on_all(of_eight):
    assigned = of_eight.experimental_assign_to_logical_device(IMAGE, 7)
    assert (assigned.sharding.kind, assigned.sharding.tile_assignment_devices) == ("maximal", (7,))
    assert [np.shares_memory(shard, IMAGE) for shard in assigned.shards] == [True]
    everywhere = of_eight.experimental_replicate_to_logical_devices(IMAGE)
    assert [np.shares_memory(shard, IMAGE) for shard in everywhere.shards] == [True] * 8


@pytest.mark.parametrize(
    ("shape", "parts", "message"),
    [
        # In the order of the checks: each of these also fails the checks after its own.
        ((5, 4), [3], r"Length of `partition_dimensions` must equal to the rank of `tensor.shape` \(2\)"),
        ((5, 7), [2, 3], r"`partition_dimensions\[0\]` must be divisible by .* \(2\). Received: 5"),
        ((4, 4), [0, 8], r"`partition_dimensions\[0\]` must be divisible by .* \(0\). Received: 4"),
        ((48, 48), [8, 8], r"number of logical devices \(=8\). Received `partition_dimensions`=\[8, 8\]"),
        ((16, 16), [-1, -8], "can only be divided into one or more tiles"),
    ],
)
def test_partitions_that_do_not_fit_are_refused(of_eight, shape, parts, message):
    with pytest.raises(PartitionError, match=message):
        of_eight.experimental_split_to_logical_devices(np.ones(shape), parts)


@pytest.mark.parametrize("parts", [[4.0, 2], 8, None, "24", [True, 8], [None, 8]])
def test_partitions_must_be_integers(of_eight, parts):
    with pytest.raises(TypeError, match="expected a list of integers"):
        of_eight.experimental_split_to_logical_devices(np.ones((16, 16)), parts)


@pytest.mark.parametrize("other", [None, {"a": 1}, ringlet.data.Dataset.range(3)])
def test_invalid_tensors_are_refused(of_eight, other):
    with pytest.raises(TypeError, match="the tensor must be an array, a number, text or a list of these, got"):
        of_eight.experimental_replicate_to_logical_devices(other)


@pytest.mark.parametrize("make", [strategy_of, tensor_strategy_of])
def test_the_parts_of_replicas_are_not_a_tensor_outside_of_them(make):
    strategy = make([1, 1, 1, 2], 2)
    value = PerReplica([np.zeros(2), np.ones(2)])
    with pytest.raises(ValueError, match="PerReplica object as an array outside of replica context"):
        strategy.experimental_split_to_logical_devices(value, [2])
    tiles = strategy.run(lambda x: strategy.experimental_split_to_logical_devices(x, [2]).shards[1][0], args=(value,))
    assert tiles.values == (0, 1)


def test_a_number_is_one_tile():
    strategy = strategy_of([1, 1, 1, 1], 1)
    assert strategy.experimental_split_to_logical_devices(3.0, []).shards == [3.0]


def test_a_tensor_split_again_is_still_writable(of_eight):
    array = np.zeros(8)
    again = of_eight.experimental_split_to_logical_devices(
        of_eight.experimental_split_to_logical_devices(array, [8]), [8]
    )
    again.shards[3][...] = 5
    assert array[3] == 5


def test_a_strategy_has_the_job_of_its_devices_whatever_it_is_called():
    class Resolver:
        def __init__(self, prefix):
            devices = tuple(
                ringlet.tpu.topology.system_metadata.SystemDevice(f"{prefix}/device:TPU:{i}", "TPU") for i in (0, 1)
            )
            self.metadata = ringlet.tpu.TPUSystemMetadata(2, 1, 2, None, devices)

        def get_tpu_system_metadata(self):
            return self.metadata

    topology = ringlet.tpu.Topology(mesh_shape=[2, 1, 1, 1], device_coordinates=[[[0, 0, 0, 0], [1, 0, 0, 0]]])
    assignment = ringlet.tpu.DeviceAssignment.build(topology, num_replicas=2)
    for prefix, job in (("/job:a-b.c/task:0", "a-b.c"), ("", "localhost")):
        strategy = ringlet.TPUStrategy(Resolver(prefix), assignment)
        assert strategy.extended.worker_devices[1] == f"/job:{job}/replica:0/task:0/device:TPU:1"


def test_no_tensor_is_assigned_to_a_single_device_where_all_are_partitioned():
    strategy = strategy_of([1, 1, 1, 2], 4, is_spmd=True)
    with pytest.raises(ValueError, match="in SPMD mode"):
        strategy.experimental_assign_to_logical_device(IMAGE, 99)  # the device is checked later
    assert len(strategy.experimental_replicate_to_logical_devices(IMAGE).shards) == 2


@pytest.mark.parametrize("logical_device_id", [-1, 8])
def test_missing_logical_devices_are_refused(of_eight, logical_device_id):
    with pytest.raises(ValueError, match=f"logical device id {logical_device_id} but there are only total of 8"):
        of_eight.experimental_assign_to_logical_device(IMAGE, logical_device_id)


def test_a_logical_device_is_an_integer(of_eight):
    with pytest.raises(TypeError, match=r"logical_device_id must be the number of a logical device, got 0\.5"):
        of_eight.experimental_assign_to_logical_device(IMAGE, 0.5)
    with pytest.raises(TypeError, match="got True of type bool"):
        of_eight.experimental_assign_to_logical_device(IMAGE, True)
    with (
        pytest.raises(TypeError, match="got None of type NoneType"),
        of_eight.extended.experimental_logical_device(None),
    ):
        pytest.fail("entered")
    assert of_eight.experimental_assign_to_logical_device(IMAGE, np.int64(3)).sharding.tile_assignment_devices == (3,)


# --- what sharded arrays are given to --------------------------------------------------------------------------------


def test_replicas_combine_sharded_arrays_as_any_others():
    strategy = strategy_of([1, 1, 1, 2], 4)
    value = PerReplica([np.arange(4.0) + i for i in range(4)])

    def step(x):
        x = strategy.experimental_split_to_logical_devices(x, [2])
        return x, ringlet.get_replica_context().all_reduce("SUM", x)

    sharded, total = strategy.run(step, args=(value,))
    assert total.values[3].tolist() == [6, 10, 14, 18]
    assert strategy.reduce("MEAN", sharded, axis=None).tolist() == [1.5, 2.5, 3.5, 4.5]
    assert strategy.gather(sharded, axis=0).shape == (16,)
    assert strategy.run(type, args=(sharded,)) is ringlet.sharding.ShardedArray


def test_variables_combine_with_sharded_arrays(of_eight):
    sharded = of_eight.experimental_split_to_logical_devices(np.ones(8), [8])
    with of_eight.scope():
        variable = ringlet.Variable(np.zeros(8))
    variable.assign(sharded)
    assert (variable + sharded).tolist() == (sharded + variable).tolist() == [2.0] * 8


def test_tensors_laid_out_before_a_run_combine_with_those_of_replicas():
    strategy = strategy_of([1, 1, 1, 2], 4)
    weights = strategy.experimental_split_to_logical_devices(np.eye(4), [1, 2])

    def step():
        x = strategy.experimental_replicate_to_logical_devices(np.full((1, 4), float(replica_id())))
        return x @ weights

    with ringlet.sharding.strict():
        result = strategy.run(step)
    assert [str(part.sharding) for part in result.values] == ["{devices=[1,2]<=[2]}"] * 4
    assert [part.tolist() for part in result.values] == [[[float(i)] * 4] for i in range(4)]


def test_logical_devices_of_a_replica_have_its_names():
    strategy = strategy_of([1, 1, 1, 2], 4)
    groups = strategy.run(lambda: strategy.extended.logical_device_group)
    assert [group.names for group in groups.values] == [tuple(row) for row in strategy.extended.tpu_devices]
    assert [group.replica for group in groups.values] == [0, 1, 2, 3]
    assert strategy.extended.logical_device_group is groups.values[0]


def test_step_functions_branch_on_sharded_values_and_print_them(of_eight):
    def step(x):
        total = of_eight.experimental_split_to_logical_devices(x, [8]).sum()
        if total > 3:
            return float(total), int(total), bool(total), f"{total:.2f}", str(total)
        return None

    with ringlet.sharding.strict():
        assert of_eight.run(step, args=(np.ones(8),)) == (8.0, 8, True, "8.00", "8.0")


def test_a_report_of_a_run_predicts_times_on_the_links_of_the_slice(of_eight):
    def step(x):
        return float(of_eight.experimental_split_to_logical_devices(x, [8]).sum())

    with ringlet.sharding.explain() as report:
        of_eight.run(step, args=(np.ones(8),))
    assert report.counts == {"all-reduce": 1}
    assert report.seconds > 0


def test_tensors_laid_out_without_the_strategy_are_moved_to_its_devices(of_eight):
    rows = ringlet.sharding.shard(np.ones(8), ringlet.sharding.Sharding.tiled((8,)))
    total = rows + of_eight.experimental_split_to_logical_devices(np.ones(8), [8])
    with ringlet.sharding.explain() as report:
        assert float(total.sum()) == 16
    assert report.seconds > 0


def test_a_laid_out_tensor_is_laid_out_anew_where_it_lies(of_eight):
    rows = of_eight.experimental_split_to_logical_devices(np.eye(8), [8, 1])
    with ringlet.sharding.explain() as report:
        columns = of_eight.experimental_split_to_logical_devices(rows, [1, 8])
    assert report.counts == {"all-to-all": 1}
    assert columns.shards[3].tolist() == np.eye(8)[:, 3:4].tolist()
    other = strategy_of([1, 2, 2, 2], 1, "v4-16")
    assert len(other.experimental_split_to_logical_devices(rows, [1, 8]).shards) == 8


def test_a_variable_split_over_logical_devices_is_trained_as_a_whole_one_is():
    rng = np.random.default_rng(0)
    rows, wanted = rng.standard_normal((32, 6)), rng.standard_normal((32, 4))
    dataset = ringlet.data.Dataset.from_tensor_slices((rows, wanted)).batch(16)

    def trained(strategy, beginning):
        with strategy.scope():
            weights = ringlet.Variable(beginning, aggregation=ringlet.VariableAggregation.MEAN)

        def step(x, y):
            error = x @ weights - y
            weights.assign_sub(0.1 * (x.T @ error) / len(y))
            return (error**2).mean()

        for batch in strategy.experimental_distribute_dataset(dataset):
            loss = strategy.reduce("MEAN", strategy.run(step, args=batch), axis=None)
        return weights, float(loss)

    tpu = strategy_of([1, 1, 1, 2], 2)
    with ringlet.sharding.strict():
        found, loss = trained(tpu, tpu.experimental_split_to_logical_devices(np.zeros((6, 4)), [1, 2]))
    expected, expected_loss = trained(ringlet.MirroredStrategy(["CPU:0", "CPU:1"]), np.zeros((6, 4)))
    assert str(found.read_value().sharding) == "{devices=[1,2]<=[2]}"
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-12)
    assert loss == pytest.approx(expected_loss, rel=1e-12)


# --- variables of partitioned programs -------------------------------------------------------------------------------


def test_variables_under_the_spmd_flag_have_a_component_for_each_replica_and_stay_equal():
    strategy = strategy_of([1, 1, 1, 2], 4, is_spmd=True)
    with strategy.scope():
        variable = ringlet.Variable(np.zeros(2), aggregation=ringlet.VariableAggregation.SUM)
    assert len(variable.values) == 4
    variable.assign([1.0, 2.0])
    strategy.run(variable.assign_add, args=(PerReplica([np.full(2, float(i)) for i in range(4)]),))
    assert [component.numpy().tolist() for component in variable.values] == [[7.0, 8.0]] * 4
