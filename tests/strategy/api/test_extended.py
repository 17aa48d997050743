"""User-defined strategies, which override hooks."""

from __future__ import annotations

from typing import Any

import pytest

import ringlet
from ringlet.values import PerReplica


class InTurn(ringlet.StrategyExtended):
    """Two replicas that run one after the other."""

    _num_replicas_in_sync = 2

    def _call_for_each_replica(self, fn: Any, args: Any, kwargs: Any) -> Any:
        rows, keywords = ringlet.values.split_arguments(args, kwargs, 2)
        return ringlet.values.regroup([fn(*row, **named) for row, named in zip(rows, keywords, strict=True)])


class InTurnStrategy(ringlet.Strategy):
    def __init__(self) -> None:
        super().__init__(InTurn(self))


def test_a_strategy_of_two_hooks_runs_functions():
    strategy = InTurnStrategy()
    value = strategy.experimental_distribute_values_from_function(lambda c: c.replica_id_in_sync_group)
    assert strategy.num_replicas_in_sync == 2
    assert strategy.run(lambda x, *, y: x + y, args=(value,), kwargs={"y": PerReplica([10, 20])}).values == (10, 21)
    assert strategy.experimental_local_results({"x": value}) == ({"x": 0}, {"x": 1})
    with strategy.scope():
        assert ringlet.get_strategy() is strategy


def test_a_strategy_without_hooks_of_datasets_splits_batches_over_its_replicas():
    strategy, dataset = InTurnStrategy(), ringlet.data.Dataset.range(4)
    (batch,) = strategy.experimental_distribute_dataset(dataset.batch(4))
    (pair,) = strategy.distribute_datasets_from_function(lambda _: dataset.batch(2))
    for value in (batch, pair):
        assert [part.tolist() for part in value.values] == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    "use",
    [
        lambda s: s.reduce("SUM", 1, axis=None),
        lambda s: s.extended.worker_devices,
        lambda s: s.gather(1, axis=0),
        lambda s: s.extended.reduce_to("SUM", 1, "CPU:0"),
        lambda s: s.extended.batch_reduce_to("SUM", [(1, "CPU:0")]),
        lambda s: s.extended.parameter_devices,
    ],
)
def test_a_hook_that_is_missing_is_named_with_its_class(use):
    with pytest.raises(NotImplementedError, match="InTurn"):
        use(InTurnStrategy())


def test_a_strategy_without_hooks_names_the_missing_one():
    class Empty(ringlet.Strategy):
        def __init__(self) -> None:
            super().__init__(ringlet.StrategyExtended(self))

    with pytest.raises(NotImplementedError, match="does not run replicas"):
        Empty().run(lambda: None)
    with pytest.raises(NotImplementedError, match="number of replicas"):
        Empty().num_replicas_in_sync  # noqa: B018


def test_an_extended_object_without_its_strategy_is_refused():
    with pytest.raises(TypeError, match=r"container_strategy must be the strategy .*, got None of type NoneType"):
        ringlet.StrategyExtended(None)


def test_the_extended_object_does_not_keep_its_strategy():
    extended = InTurnStrategy().extended
    with pytest.raises(RuntimeError, match="keep a reference"):
        extended.call_for_each_replica(lambda: None)


def test_properties_have_the_values_of_a_single_process():
    extended = InTurnStrategy().extended
    assert extended.experimental_should_init
    assert (extended.should_checkpoint, extended.should_save_summary) == (True, True)
    assert (extended.experimental_require_static_shapes, extended.experimental_between_graph) == (False, False)


class Largest(InTurn):
    """Also overrides how values are combined and variables updated."""

    def __init__(self, container_strategy: ringlet.Strategy) -> None:
        super().__init__(container_strategy)
        self.updates: list[Any] = []

    @property
    def worker_devices(self) -> tuple[str, ...]:
        return ("CPU:0", "CPU:1")

    def _reduce_to(self, op: Any, value: Any, destinations: Any, options: Any) -> Any:
        return max(value.values)

    def _gather(self, value: Any, axis: int) -> Any:
        return [part for component in value.values for part in component]

    def _update(self, var: Any, fn: Any, args: Any, kwargs: Any, group: bool) -> Any:
        self.updates.append(var)
        return super()._update(var, fn, args, kwargs, group)


class LargestStrategy(ringlet.Strategy):
    def __init__(self) -> None:
        super().__init__(Largest(self))


def test_calls_of_a_users_strategy_run_its_hooks():
    strategy = LargestStrategy()
    value = strategy.experimental_distribute_values_from_function(lambda c: c.replica_id_in_sync_group + 1.5)
    assert strategy.reduce("SUM", value, axis=None) == 2.5
    assert strategy.extended.reduce_to("MEAN", value, "CPU:0") == 2.5
    assert strategy.extended.batch_reduce_to("SUM", [(value, "CPU:0")] * 2) == [2.5, 2.5]
    assert strategy.gather(PerReplica([[1], [2, 3]]), axis=0) == [1, 2, 3]
    assert strategy.extended.update("w", lambda w, x: (w, x), args=(value,), group=False) == (("w",), (1.5,))
    assert strategy.extended.updates == ["w"]
    assert strategy.extended.broadcast_to(3, "CPU:0") == 3
    assert strategy.run(lambda x: x, args=(value,), options=ringlet.RunOptions()).values == (1.5, 2.5)


def test_calls_of_a_users_strategy_belong_outside_of_others():
    strategy = LargestStrategy()
    with ringlet.MirroredStrategy(["CPU:0"]).scope():
        for call in (
            lambda: strategy.gather(PerReplica([[1], [2]]), axis=0),
            lambda: strategy.extended.reduce_to("SUM", 1, "CPU:0"),
            lambda: strategy.extended.update("w", lambda w: w),
            lambda: strategy.extended.call_for_each_replica(lambda: 1),
        ):
            with pytest.raises(RuntimeError, match="Mixing different strategies"):
                call()


def test_a_users_strategy_makes_plain_variables_or_its_own():
    made: list[Any] = []

    class Making(InTurn):
        parameter_devices = ("/job:localhost/replica:0/task:0/device:CPU:0",)

        def _create_variable(self, request: Any) -> Any:
            made.append(request)
            return super()._create_variable(request)

    class MakingStrategy(ringlet.Strategy):
        def __init__(self) -> None:
            super().__init__(Making(self))

    strategy = MakingStrategy()
    with strategy.scope():
        variable = ringlet.Variable(1.5)
    assert len(made) == 1
    assert strategy.extended.variable_created_in_scope(variable)
    assert strategy.extended.update(variable, lambda v, x: float(v.assign_add(x).read_value()), args=(1.0,)) == 2.5
    assert strategy.extended.read_var(variable) == 2.5
