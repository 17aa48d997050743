"""The current worker group, inside and outside of the scope of its strategy."""

from __future__ import annotations

from ringlet import context
from ringlet.strategy.multi_worker.ambient_worker_group import current_workers, register_workers


class Workers:
    """A group that is only compared by identity."""


class Strategy:
    def __init__(self, workers):
        self.extended = self
        self._workers = workers


def test_there_is_no_group_without_strategies_of_several_processes():
    assert current_workers() is None


def test_outside_of_scopes_it_is_that_of_the_last_living_strategy():
    first, second = Workers(), Workers()
    register_workers(first)
    register_workers(second)
    assert current_workers() is second
    del second
    assert current_workers() is first
    del first
    assert current_workers() is None


def test_that_of_the_current_strategy_comes_first():
    mine, last = Workers(), Workers()
    register_workers(last)
    with context.Scope(context.Mode(Strategy(mine))):
        assert current_workers() is mine
    with context.Scope(context.Mode(Strategy(None))):
        assert current_workers() is last
