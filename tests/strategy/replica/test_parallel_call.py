"""One call for each replica of a process, at the same time."""

from __future__ import annotations

import threading

import pytest

from ringlet.strategy.replica.parallel_call import call_everywhere
from ringlet.strategy.replica.replica_threads import CrewPool
from tests.strategy.replicas import SECONDS


def refuse(reason):
    pytest.fail(f"ended the group: {reason}")


@pytest.mark.parametrize("count", [1, 2, 5])
def test_the_calls_run_at_the_same_time_and_answers_are_in_their_order(count):
    all_here = threading.Barrier(count, timeout=SECONDS)

    def call(replica):
        all_here.wait()
        return 10 * replica

    pool = CrewPool(count)
    for _ in range(3):
        assert call_everywhere(pool, call, refuse) == [10 * replica for replica in range(count)]
    assert len(pool.helpers()) == count - 1


def test_the_first_failure_is_raised_after_all_have_ended():
    ended = []

    def call(replica):
        ended.append(replica)
        raise LookupError(f"replica {replica}")

    with pytest.raises(LookupError, match="replica 0"):
        call_everywhere(CrewPool(2), call, refuse)
    assert sorted(ended) == [0, 1]


def test_an_interrupt_between_two_calls_ends_what_the_others_wait_in(monkeypatch):
    told = []
    pool = CrewPool(2)
    crew = pool.acquire("only to know it")
    pool.release("only to know it")

    class Interrupted:
        def __getattr__(self, name):
            if name == "claim":
                raise KeyboardInterrupt
            return getattr(claims, name)

    claims, crew.claims = crew.claims, Interrupted()
    with pytest.raises(KeyboardInterrupt):
        call_everywhere(pool, lambda replica: replica, told.append)
    crew.claims = claims
    assert told == ["KeyboardInterrupt came while the replicas made a call together"]
