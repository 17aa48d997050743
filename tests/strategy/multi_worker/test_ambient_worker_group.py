"""The workers of this process are found inside and outside of the scope of their strategy."""

from __future__ import annotations

from ringlet import context
from ringlet.strategy.multi_worker.ambient_worker_group import current_workers, remember_workers


class Workers:
    """Stand-ins that are only told apart."""


class Strategy:
    def __init__(self, workers):
        self.extended = self
        self._workers = workers


def test_without_strategies_of_several_processes_there_are_none():
    assert current_workers() is None


def test_the_last_ones_that_live_are_found_outside_of_scopes():
    first, second = Workers(), Workers()
    remember_workers(first)
    remember_workers(second)
    assert current_workers() is second
    del second
    assert current_workers() is first
    del first
    assert current_workers() is None


def test_those_of_the_current_strategy_come_first():
    mine, last = Workers(), Workers()
    remember_workers(last)
    with context.Scope(context.Mode(Strategy(mine))):
        assert current_workers() is mine
    with context.Scope(context.Mode(Strategy(None))):
        assert current_workers() is last
