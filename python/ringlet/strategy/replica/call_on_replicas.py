"""One call for each replica of this process, in parallel threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ringlet.errors import DeadlineExceededError
from ringlet.strategy.replica.error_selection import primary_failure
from ringlet.strategy.replica.replica_threads import NO_WORK, ReplicaThreadPool

T = TypeVar("T")


class _ParallelCall:
    """The work that replica threads execute: a call for each replica, with its result or failure."""

    def __init__(self, finish: Callable[[int], None], call: Callable[[int], Any], count: int) -> None:
        self._finish = finish
        self._call = call
        self.results: list[Any] = [None] * count
        self.failures: dict[int, BaseException] = {}

    def execute(self, replica: int) -> None:
        try:
            self.results[replica] = self._call(replica)
        except BaseException as error:
            self.failures[replica] = error
        finally:
            self._finish(replica)


def call_on_replicas(pool: ReplicaThreadPool, call: Callable[[int], T], abort: Callable[[str], None]) -> list[T]:
    """Call a function for each replica of this process, in parallel threads; the calls may wait for each other.

    `abort` is called with a reason if a call is interrupted or too slow. Raises DeadlineExceededError
    if a call is too slow, else the failure chosen by :func:`primary_failure`, if any.
    """
    owner = object()
    try:
        threads = pool.acquire(owner)
        work = _ParallelCall(threads.claims.finish, call, pool.num_replicas)
        threads.prepare(work)
        threads.claims.open()
        threads.claims.summon_all()
        try:
            for replica in iter(threads.claims.claim, -1):
                work.execute(replica)
            is_finished = threads.claims.wait_finished(pool.timeout_seconds)
        except BaseException as error:  # Ctrl-C may interrupt between any two instructions
            abort(f"{type(error).__name__} interrupted a collective call of the replicas")
            raise
        if not is_finished:
            text = (
                f"a collective call of the replicas of this process has not ended within {pool.timeout_seconds:g} s: "
                "allow more time with RINGLET_TIMEOUT_SECONDS"
            )
            abort(text)
            raise DeadlineExceededError(text)
        threads.work = NO_WORK
    finally:
        pool.release(owner)
    if work.failures:
        raise primary_failure(work.failures)[1]
    return work.results
