"""Who coordinates: one ClusterCoordinator for each strategy, and one strategy for each cluster."""

from __future__ import annotations

import gc

import pytest

import ringlet
from ringlet.coordinator import ClusterCoordinator
from ringlet.coordinator.dispatcher import Dispatcher
from ringlet.errors import FailedPreconditionError
from tests.coordinator.in_threads import coordinator_of, strategy_of


@pytest.fixture
def coordinator():
    with coordinator_of(workers=2) as made:
        yield made


def test_a_strategy_has_one_coordinator(coordinator):
    assert ClusterCoordinator(coordinator.strategy) is coordinator


def test_a_coordinator_whose_making_was_interrupted_leaves_everything_to_the_next_one(monkeypatch):
    start = Dispatcher.start

    def interrupted(dispatcher):
        start(dispatcher)
        raise KeyboardInterrupt

    strategy = strategy_of(2, 1, ringlet.ParameterServerStrategy)
    with monkeypatch.context() as patch:
        patch.setattr(Dispatcher, "start", interrupted)
        with pytest.raises(KeyboardInterrupt) as kept:
            ClusterCoordinator(strategy)
    coordinator = ClusterCoordinator(strategy)
    assert coordinator.fetch([coordinator.schedule(int, args=(i,)) for i in range(50)]) == list(range(50))
    coordinator.shutdown()
    del kept


def test_other_strategies_have_none():
    with pytest.raises(ValueError, match=r"Only `tf\.distribute.*ParameterServerStrategy` is supported"):
        ClusterCoordinator(ringlet.OneDeviceStrategy("CPU:0"))


def test_two_strategies_do_not_share_the_workers_of_a_cluster(coordinator):
    other = ringlet.ParameterServerStrategy(ringlet.cluster_resolver.LocalClusterResolver(2, 1))
    other.extended._known_servers = coordinator.strategy.extended._servers()
    with pytest.raises(FailedPreconditionError, match="create a resolver for this strategy"):
        ClusterCoordinator(other)


def test_a_strategy_that_is_gone_leaves_its_cluster_to_the_next_one():
    with coordinator_of(workers=2) as first:
        first.schedule(lambda: 1).fetch()
        servers = first.strategy.extended._servers()
        first._dispatcher._tasks.stop = lambda timeout: None
        other = ringlet.ParameterServerStrategy(ringlet.cluster_resolver.LocalClusterResolver(2, 1))
        other.extended._known_servers = servers
    first.strategy.of_a_program_in_a_cycle = first
    gc.disable()
    try:
        del first
        second = ClusterCoordinator(other)
    finally:
        gc.enable()
    assert second.schedule(lambda: 2).fetch() == 2
    del servers.tasks.stop
    second.shutdown()
