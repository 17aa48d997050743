"""Variables with a component for each replica: who reads and writes which, and when they are one buffer."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import ringlet
from ringlet import Variable, VariableAggregation, VariableSynchronization
from ringlet.values import DistributedValues, Mirrored, MirroredVariable, PerReplica, SyncOnReadVariable

AGG, SYNC = VariableAggregation, VariableSynchronization


@pytest.fixture
def strategy():
    return ringlet.MirroredStrategy(["CPU:0", "CPU:1", "CPU:2"])


def make(strategy, value=0.0, **keywords):
    with strategy.scope():
        return Variable(value, **keywords)


def replica_id():
    return int(ringlet.get_replica_context().replica_id_in_sync_group)


def values(variable):
    return [component.numpy().tolist() for component in variable.values]


def address(array):
    return array.__array_interface__["data"][0]


# --- what they are ---------------------------------------------------------------------------------------------------


def test_the_synchronization_decides_the_class(strategy):
    assert type(make(strategy)) is type(make(strategy, synchronization=SYNC.ON_WRITE)) is MirroredVariable
    assert type(make(strategy, synchronization=SYNC.ON_READ)) is SyncOnReadVariable
    assert isinstance(make(strategy), Variable)
    assert isinstance(make(strategy), DistributedValues)


def test_components_have_names_and_devices_of_their_own(strategy):
    v = make(strategy, name="v")
    assert [c.name for c in v.values] == ["v:0", "v/replica_1:0", "v/replica_2:0"]
    assert [c.device[-5:] for c in v.values] == ["CPU:0", "CPU:1", "CPU:2"]
    assert v.name == "v:0"
    assert v.is_distributed_variable
    assert strategy.run(lambda: v.device).values == strategy.extended.worker_devices


def test_its_text_shows_all_components(strategy):
    assert repr(make(strategy, 1.5, name="v")) == (
        "MirroredVariable:{\n"
        "  0: <ringlet.Variable 'v:0' shape=() dtype=float64, numpy=1.5>,\n"
        "  1: <ringlet.Variable 'v/replica_1:0' shape=() dtype=float64, numpy=1.5>,\n"
        "  2: <ringlet.Variable 'v/replica_2:0' shape=() dtype=float64, numpy=1.5>\n"
        "}"
    )
    text = str(make(strategy, 1, synchronization=SYNC.ON_READ))  # its total need not be known
    assert text.startswith("SyncOnReadVariable:{")


def test_replicas_get_the_variable_itself_among_their_arguments(strategy):
    v = make(strategy)
    assert strategy.run(lambda x, nested: x is v and nested["v"][0] is v, args=(v,), kwargs={"nested": {"v": [v]}})


def test_a_variable_with_a_single_replica_is_a_distributed_one():
    one = ringlet.MirroredStrategy(["CPU:0"])
    v = make(one, aggregation=AGG.SUM)
    assert type(v) is MirroredVariable
    assert one.run(lambda: float(v.assign_add(2.0))) == 2
    assert type(v.assign(3.0)) is np.ndarray


# --- one buffer ------------------------------------------------------------------------------------------------------


def test_equal_components_are_one_buffer_and_replicas_get_array_objects_of_their_own(strategy):
    v = make(strategy, np.zeros(1000))
    arrays = strategy.run(v.read_value)
    assert isinstance(arrays, PerReplica)
    assert len({address(array) for array in arrays.values}) == 1


def test_replicas_may_diverge_without_an_aggregation_and_come_together_again(strategy):
    v = make(strategy, np.zeros(2))
    strategy.run(lambda: v.assign_add(np.full(2, float(replica_id()))))
    assert values(v) == [[0, 0], [1, 1], [2, 2]]
    strategy.run(lambda: v.assign_sub(np.full(2, 1.0)))
    assert values(v) == [[-1, -1], [0, 0], [1, 1]]
    assert v.read_value().tolist() == [-1, -1]
    v.assign_add([1.0, 1.0])
    assert values(v) == [[0, 0], [1, 1], [2, 2]]
    v.assign([7.0, 7.0])
    assert len({address(component.read_value()) for component in v.values}) == 1


@pytest.mark.parametrize("aggregation", [AGG.SUM, AGG.MEAN, AGG.ONLY_FIRST_REPLICA])
def test_what_replicas_write_together_is_one_buffer(strategy, aggregation):
    v = make(strategy, np.zeros(2), aggregation=aggregation)
    strategy.run(lambda: v.assign_add(np.full(2, float(replica_id() + 1))))
    assert values(v) == [[{AGG.SUM: 6, AGG.MEAN: 2, AGG.ONLY_FIRST_REPLICA: 1}[aggregation]] * 2] * 3
    assert len({address(component.read_value()) for component in v.values}) == 1


def test_a_value_read_in_a_replica_stays_as_it_is(strategy):
    v = make(strategy, np.zeros(4), aggregation=AGG.SUM)

    def step():
        before = v.read_value()
        v.assign_add(np.full(4, 1.0))
        return before.tolist(), v.read_value().tolist()

    assert strategy.run(step)[0][0].values == (0, 0, 0)
    assert strategy.run(step)[1][0].values == (6, 6, 6)


# --- writing outside of replicas -------------------------------------------------------------------------------------


def test_a_write_outside_of_replicas_gives_what_all_components_have(strategy):
    v = make(strategy, 1.5)
    result = v.assign(2.5)
    assert isinstance(result, Mirrored)
    v.assign(9.0)
    assert [float(x) for x in result.values] == [2.5] * 3
    assert v.assign(3.5, read_value=False) is None


def test_each_component_takes_its_part_of_a_distributed_value(strategy):
    v, w = make(strategy), make(strategy)
    v.assign(PerReplica([np.array(1.0), np.array(2.0), np.array(3.0)]))
    assert values(v) == [1, 2, 3]
    w.assign(v)
    v.assign_add(Mirrored([np.array(1.0)] * 3))
    assert (values(v), values(w)) == ([2, 3, 4], [1, 2, 3])


def test_a_distributed_value_of_another_strategy_is_refused(strategy):
    v = make(strategy)
    with pytest.raises(ValueError, match="with 2 components for 3 replicas"):
        v.assign(PerReplica([1.0, 2.0]))


def test_a_part_that_does_not_fit_is_refused_before_anything_is_written(strategy):
    v = make(strategy, np.zeros(2))
    with pytest.raises(ValueError, match="Shape mismatch"):
        v.assign(PerReplica([np.ones(2), np.ones(3), np.ones(2)]))
    assert values(v) == [[0, 0]] * 3


def test_an_update_writes_the_component_that_it_visits(strategy):
    v = make(strategy)
    strategy.extended.update(v, lambda c, x: c.assign(x), args=(PerReplica([1.0, 2.0, 3.0]),))
    assert values(v) == [1, 2, 3]
    strategy.extended.update(v, lambda _, x: v.assign_add(x), args=(PerReplica([10.0, 20.0, 30.0]),))
    assert values(v) == [11, 22, 33]
    read = strategy.extended.update(v, lambda _: float(v.read_value()), group=False)
    assert read == (11, 22, 33)


# --- writing in replicas ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [1.0, [1.0]])
def test_python_numbers_of_several_replicas_take_the_dtype_of_the_variable(strategy, value):
    v = make(strategy, np.zeros(np.shape(value), np.float32), aggregation=AGG.SUM)

    def step():
        v.assign_add([float(replica_id())] if isinstance(value, list) else float(replica_id()))

    strategy.run(step)
    assert v.read_value().dtype == np.float32
    assert float(v.read_value().sum()) == 3


def test_a_number_that_is_the_same_object_everywhere_cannot_be_summed(strategy):
    v = make(strategy, aggregation=AGG.SUM)
    with pytest.raises(ValueError, match=r"A non-DistributedValues value 6\.5 cannot be reduced"):
        strategy.run(lambda: v.assign_add(6.5))
    assert values(v) == [0, 0, 0]


def test_a_value_that_does_not_fit_stops_all_replicas(strategy):
    v = make(strategy, np.zeros(2, np.float32), aggregation=AGG.SUM)
    with pytest.raises(ValueError, match="holds float32"):
        strategy.run(lambda: v.assign_add(np.ones(2)))
    assert values(v) == [[0, 0]] * 3
    strategy.run(lambda: v.assign_add(np.ones(2, np.float32)))  # and the strategy goes on
    assert values(v) == [[3, 3]] * 3


def test_replicas_of_another_strategy_are_refused_by_name(strategy):
    other = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
    for v in (make(strategy, name="v"), make(strategy, synchronization=SYNC.ON_READ, name="v")):
        for call in (v.read_value, lambda v=v: v.assign(1.0)):
            with pytest.raises(RuntimeError, match=r"Mixing different strategies.*'CPU:0', 'CPU:1'\].*'v:0'"):
                other.run(call)
            with other.scope(), pytest.raises(RuntimeError, match="Mixing different strategies"):
                call()


# --- combined when read ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("aggregation", "expected"), [(AGG.SUM, 6.0), (AGG.MEAN, 2.0), (AGG.ONLY_FIRST_REPLICA, 1.0)])
def test_reading_outside_of_replicas_combines_what_each_wrote(strategy, aggregation, expected):
    v = make(strategy, synchronization=SYNC.ON_READ, aggregation=aggregation)
    strategy.run(lambda: v.assign_add(float(replica_id() + 1)))
    assert values(v) == [1, 2, 3]
    for read in (v.read_value, v.value, v.numpy, lambda: np.asarray(v), lambda: v * 1, lambda: float(v)):
        assert float(read()) == expected
    assert strategy.run(lambda: float(v.read_value())).values == (1, 2, 3)


def test_without_an_aggregation_there_is_nothing_to_read_outside_of_replicas(strategy):
    v = make(strategy, synchronization=SYNC.ON_READ)
    with pytest.raises(ValueError, match="Could not convert"):
        v.read_value()
    with pytest.raises(ValueError, match="Could not convert"):
        v.assign(2.0)  # written, as TensorFlow does
    assert values(v) == [2, 2, 2]
    assert v.assign(3.0, read_value=False) is None


def test_a_total_is_shared_out_so_that_it_is_what_was_assigned(strategy):
    for initial, total in ((0.0, 6.0), (0, 6)):
        v = make(strategy, initial, synchronization=SYNC.ON_READ, aggregation=AGG.SUM)
        assert v.assign(total) == total
        assert values(v) == [2, 2, 2]
        assert v.values[0].dtype == v.dtype


@pytest.mark.parametrize("total", [7, -7, 2**62 + 1])
def test_nothing_of_a_whole_total_is_lost(strategy, total):
    v = make(strategy, 0, synchronization=SYNC.ON_READ, aggregation=AGG.SUM)
    assert int(v.assign(total)) == total
    assert max(values(v)) - min(values(v)) < 3


def test_a_total_of_what_cannot_be_added_is_refused_before_it_is_written(strategy):
    v = make(strategy, True, name="v", synchronization=SYNC.ON_READ, aggregation=AGG.SUM)
    with pytest.raises(ringlet.errors.InvalidArgumentError, match=r"variable 'v:0' .* bool does not support SUM"):
        v.assign(False)
    assert values(v) == [True] * 3


def test_a_mirrored_variable_whose_components_differ_is_its_own_mean(strategy):
    source, v = make(strategy), make(strategy, aggregation=AGG.MEAN)
    strategy.run(lambda: source.assign(float(replica_id())))
    strategy.run(lambda: v.assign(source))
    assert values(v) == [0, 1, 2]
    strategy.run(lambda: v.assign_add(source))
    assert values(v) == [0, 2, 4]


def test_adding_to_a_total_outside_of_replicas_is_refused(strategy):
    v = make(strategy, synchronization=SYNC.ON_READ, aggregation=AGG.SUM)
    for name in ("assign_add", "assign_sub"):
        with pytest.raises(ValueError, match=f"does not support `{name}` in cross-replica context.*strategy.run"):
            getattr(v, name)(1.0)


def test_a_per_replica_is_not_assigned_outside_of_replicas(strategy):
    v = make(strategy, synchronization=SYNC.ON_READ, aggregation=AGG.MEAN)
    with pytest.raises(TypeError, match=r"PerReplica cannot be assigned to.*strategy.run"):
        v.assign(PerReplica([1.0, 2.0, 3.0]))


@pytest.mark.parametrize("context", ["cross", "replica"])
def test_rows_are_not_scattered_into_what_is_combined_when_read(strategy, context):
    v = make(strategy, [1.0], synchronization=SYNC.ON_READ)
    scatter = {"cross": lambda f: f(), "replica": strategy.run}[context]
    with pytest.raises(NotImplementedError, match="doesn't support `scatter_add`"):
        scatter(lambda: v.scatter_add(ringlet.IndexedSlices([1.0], [0])))


# --- as objects ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("synchronization", [SYNC.ON_WRITE, SYNC.ON_READ])
def test_a_deep_copy_belongs_to_the_same_strategy_and_has_a_value_of_its_own(strategy, synchronization):
    v = make(strategy, synchronization=synchronization, name="v")
    strategy.run(lambda: v.assign_add(float(replica_id())))
    twin = copy.deepcopy({"v": v, "again": v})
    assert twin["v"] is twin["again"]
    twin = twin["v"]
    v.assign(9.0, read_value=False)
    assert (type(twin), values(twin), [c.name for c in twin.values][1]) == (type(v), [0, 1, 2], "v/replica_1:0")
    assert twin.distribute_strategy is strategy
    assert strategy.extended.value_container(twin.values[1]) is twin
    strategy.run(lambda: twin.assign_add(1.0))
    assert values(twin) == [1, 2, 3]


def test_a_deep_copy_of_a_strategy_leaves_its_variables_with_the_original(strategy):
    v = make(strategy)
    twin_strategy, twin = copy.deepcopy((strategy, v))
    assert twin_strategy is not strategy
    assert twin.distribute_strategy is strategy


def test_pickling_is_refused(strategy):
    for v in (make(strategy), make(strategy).values[1]):
        with pytest.raises(TypeError, match="cannot pickle variable"):
            pickle.dumps(v)


def test_variables_do_not_keep_a_strategy_and_stay_usable_without_it():
    gone_strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
    v = make(gone_strategy, 1.0, name="v")
    total = make(gone_strategy, 1.0, synchronization=SYNC.ON_READ, aggregation=AGG.SUM, name="total")
    gone = weakref.ref(gone_strategy)
    del gone_strategy
    gc.collect()
    assert gone() is None
    v.assign_add(1.0)
    assert v.numpy() == 2
    assert values(total) == [1, 1]
    with pytest.raises(RuntimeError, match="'v:0' was deleted: keep a reference"):
        v.distribute_strategy  # noqa: B018
    with pytest.raises(RuntimeError, match="'total:0' was deleted: keep a reference"):
        total.read_value()
    assert copy.deepcopy(v).numpy() == 2


def test_a_strategy_does_not_keep_its_variables(strategy):
    v = make(strategy, np.zeros(1000), aggregation=AGG.SUM)
    strategy.run(lambda: v.assign_add(np.ones(1000)))
    gone, component = weakref.ref(v), v.values[1]
    gc.disable()
    try:
        v = None
        assert gone() is None
    finally:
        gc.enable()
    assert component.numpy().tolist() == [3.0] * 1000
    assert strategy.extended.value_container(component) is component


def test_eight_threads_read_and_write_without_seeing_half_a_value():
    strategy = ringlet.MirroredStrategy([f"CPU:{i}" for i in range(8)])
    v = make(strategy, np.zeros(20_000))

    def step():
        me, torn = replica_id(), 0
        for number in range(60):
            array = v.read_value()
            torn += int((array != array[0]).any())
            v.assign(np.full(20_000, me * 100.0 + number))
            held = array[0]
            v.assign_add(np.ones(20_000))
            torn += int(held != array[-1])
            other = v.values[(me + 1) % 8].read_value()
            torn += int((other != other[0]).any())
        return torn

    assert strategy.run(step) == 0  # one object for all
    assert [component[0] for component in v.values] == [me * 100 + 60 for me in range(8)]


@pytest.mark.parametrize(("aggregation", "total"), [(AGG.SUM, 6.0), (AGG.MEAN, 2.0), (AGG.ONLY_FIRST_REPLICA, 1.0)])
def test_a_variable_returned_through_function_is_the_variable_with_its_total(strategy, aggregation, total):
    v = make(strategy, synchronization=SYNC.ON_READ, aggregation=aggregation)

    @ringlet.function
    def step():
        v.assign_add(replica_id() + 1.0)
        return v

    result = strategy.run(step)
    assert result is v
    assert float(result) == total
