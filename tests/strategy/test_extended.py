"""Users write strategies of their own around hooks."""

from __future__ import annotations

from typing import Any

import pytest

import ringlet
from ringlet.values import PerReplica


class InTurn(ringlet.StrategyExtended):
    """Two replicas, one after the other, with nothing between them."""

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


@pytest.mark.parametrize(
    "use",
    [
        lambda s: s.reduce("SUM", 1, axis=None),
        lambda s: s.extended.worker_devices,
        lambda s: s.extended.parameter_devices,
        lambda s: s.experimental_distribute_dataset(()),
        lambda s: s.distribute_datasets_from_function(lambda _: ()),
    ],
)
def test_a_hook_that_is_missing_is_named_with_its_class(use):
    with pytest.raises(NotImplementedError, match="InTurn"):
        use(InTurnStrategy())


def test_a_strategy_without_hooks_says_what_it_lacks():
    class Empty(ringlet.Strategy):
        def __init__(self) -> None:
            super().__init__(ringlet.StrategyExtended(self))

    with pytest.raises(NotImplementedError, match="runs no replicas"):
        Empty().run(lambda: None)
    with pytest.raises(NotImplementedError, match="how many replicas"):
        Empty().num_replicas_in_sync  # noqa: B018


def test_the_extended_object_does_not_keep_its_strategy():
    extended = InTurnStrategy().extended
    with pytest.raises(RuntimeError, match="keep the strategy"):
        extended.call_for_each_replica(lambda: None)


def test_what_programs_read_has_the_answers_of_a_single_process():
    extended = InTurnStrategy().extended
    assert (extended.should_checkpoint, extended.should_save_summary) == (True, True)
    assert (extended.experimental_require_static_shapes, extended.experimental_between_graph) == (False, False)
