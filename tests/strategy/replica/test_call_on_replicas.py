"""Parallel calls for the replicas of a process."""

from __future__ import annotations

import threading

import pytest

from ringlet.strategy.replica.call_on_replicas import call_on_replicas
from ringlet.strategy.replica.replica_threads import ReplicaThreadPool
from tests.strategy.replicas import SECONDS


def refuse(reason):
    pytest.fail(f"aborted the group: {reason}")


@pytest.mark.parametrize("count", [1, 2, 5])
def test_the_calls_run_in_parallel_and_results_are_in_their_order(count):
    all_here = threading.Barrier(count, timeout=SECONDS)

    def call(replica):
        all_here.wait()
        return 10 * replica

    pool = ReplicaThreadPool(count)
    for _ in range(3):
        assert call_on_replicas(pool, call, refuse) == [10 * replica for replica in range(count)]
    assert len(pool.helpers()) == count - 1


def test_the_primary_failure_is_raised_after_all_have_ended():
    ended = []

    def call(replica):
        ended.append(replica)
        raise LookupError(f"replica {replica}")

    with pytest.raises(LookupError, match="replica 0"):
        call_on_replicas(ReplicaThreadPool(2), call, refuse)
    assert sorted(ended) == [0, 1]


def test_an_interrupt_between_two_calls_aborts_the_group(monkeypatch):
    reasons = []
    pool = ReplicaThreadPool(2)
    threads = pool.acquire("the test")
    pool.release("the test")

    class Interrupted:
        def __getattr__(self, name):
            if name == "claim":
                raise KeyboardInterrupt
            return getattr(claims, name)

    claims, threads.claims = threads.claims, Interrupted()
    with pytest.raises(KeyboardInterrupt):
        call_on_replicas(pool, lambda replica: replica, reasons.append)
    threads.claims = claims
    assert reasons == ["KeyboardInterrupt interrupted a collective call of the replicas"]
