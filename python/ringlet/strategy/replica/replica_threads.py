"""Helper threads and the collective group of a strategy's replicas, and the pool that keeps them between runs.

For P replicas, a `ReplicaThreads` has a counter of the replicas that threads have claimed, a group of P ranks, and P-1
helper threads, or P if the thread that calls ``run`` runs no replica. A strategy keeps the free `ReplicaThreads` in a
pool: each run acquires one and releases it, so that concurrent and nested runs have separate threads. Helpers refer to
their `ReplicaThreads` and never to the strategy, which can therefore be collected while they are parked.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from typing import Any, Protocol

from ringlet import _core
from ringlet.collectives import Group, Member, default_timeout_seconds
from ringlet.devices.blas_threads import blas_limiter
from ringlet.errors import FailedPreconditionError
from ringlet.observe.stacks import location
from ringlet.observe.stall_reports import stall_seconds

# Maximum time that the interpreter's exit waits for helper threads to end.
EXIT_SECONDS = 1.0

# Maximum time that a run waits for replicas abandoned by an earlier run.
_PATIENCE_SECONDS = 1.0

_ENDED = "has returned from its step function"
_ABANDONED = "strategy.run has raised while replicas were running"
_INTERPRETER_ENDS = "the interpreter is ending"


class Work(Protocol):
    """Interface of the work that helpers execute."""

    def execute(self, replica: int) -> None:
        """Run one replica to its end; never raises."""
        ...


class _NoWork:
    def execute(self, replica: int) -> None:
        raise AssertionError(f"replica {replica} was claimed outside of a run")


# The placeholder for the work of a ReplicaThreads between runs.
NO_WORK = _NoWork()


class ReplicaThreads:
    """The counter of claimed replicas, the helper threads and the collective group that one run at a time uses."""

    def __init__(self, num_replicas: int, timeout_seconds: float) -> None:
        self.claims = _core.Crew(num_replicas)
        self.work: Work = NO_WORK
        self.helpers: list[threading.Thread] = []
        # For each replica, the id of the helper thread that runs it, or last ran it.
        self.thread_ids: dict[int, int] = {}
        # True once a run has raised while replicas were busy.
        self.is_abandoned = False
        self._has_departures = False
        self._num_replicas = num_replicas
        self._timeout_seconds = timeout_seconds
        self.stall_seconds = stall_seconds()
        self._new_group(epoch=0)

    def _new_group(self, epoch: int) -> None:
        # A configured time-out of 0 means no time-out; the value here is then infinity.
        self.group = Group(self._num_replicas, timeout_seconds=self._timeout_seconds, epoch=epoch)
        self.members: list[Member] = [self.group.member(rank) for rank in range(self._num_replicas)]

    def prepare(self, work: Work, caller_runs: bool = True) -> None:
        """Prepare for a run; helpers, and the caller if `caller_runs`, may claim replicas after ``claims.open()``."""
        if self.group.failure is not None:
            self._new_group(self.group.epoch + 1)
        if self._has_departures:
            for member in self.members:
                member.rejoin()
            self._has_departures = False
        # Some helpers are missing if Ctrl-C or a limit on threads interrupted an earlier start.
        num_helpers = self._num_replicas - caller_runs
        if len(self.helpers) < num_helpers:
            self._start_helpers(num_helpers)
        self.work = work

    def depart(self, replica: int) -> None:
        """Mark a replica as making no more collective calls in this run."""
        self._has_departures = True
        self.members[replica].depart(_ENDED)

    def _start_helpers(self, num_helpers: int) -> None:
        for number in range(len(self.helpers) + 1, num_helpers + 1):
            thread = threading.Thread(target=_help, args=(self,), name=f"ringlet-helper-{number}", daemon=True)
            thread.start()
            self.helpers.append(thread)

    def describe_running(self, first_replica: int = 0) -> str:
        """Describe the running replicas, each with the line that it executes."""
        return "; ".join(
            f"replica {first_replica + replica} is {location(self.thread_ids.get(replica))}"
            for replica in self.claims.running()
        )

    def close(self) -> None:
        """Stop the helpers without waiting for them."""
        self.claims.close()


def _help(threads: ReplicaThreads) -> None:
    """Main function of a helper thread: claim and execute replicas until the counter of `threads` is closed."""
    forks = fork_count()
    thread = threading.current_thread()
    _helpers.add(thread)
    try:
        blas_limiter().limit_this_thread(threads.group.num_ranks)
        while (replica := threads.claims.wait_for_claim()) >= 0:
            threads.thread_ids[replica] = threading.get_ident()
            threads.work.execute(replica)
            if fork_count() != forks:  # in a process forked by a step function, the other threads do not exist
                return
    finally:
        _helpers.discard(thread)


class ReplicaThreadPool:
    """Pool of the `ReplicaThreads` of one strategy.

    A `ReplicaThreads` in use has an owner, an object unique to a run. Ctrl-C may interrupt between any two
    instructions, so ownership is recorded by owner alone: an interrupted run releases everything that it may have
    acquired.
    """

    def __init__(self, num_replicas: int) -> None:
        self.num_replicas = num_replicas
        self.timeout_seconds = default_timeout_seconds()
        self._all: list[ReplicaThreads] = []
        self._owners: dict[ReplicaThreads, object] = {}
        self._abandoned: list[ReplicaThreads] = []
        self._closed: str | None = None
        weakref.finalize(self, _close_each, self._all).atexit = False
        _pools.add(self)

    def acquire(self, owner: object) -> ReplicaThreads:
        """Acquire the threads for one run; `owner` is unique to the run."""
        if self._closed is not None:
            raise FailedPreconditionError(f"this strategy is closed: {self._closed}. Create a new strategy")
        if self._abandoned:
            self._drop_abandoned()
        for threads in self._all:
            if self._owners.setdefault(threads, owner) is owner:
                return threads
        threads = ReplicaThreads(self.num_replicas, self.timeout_seconds)
        self._owners[threads] = owner
        self._all.append(threads)
        return threads

    def release(self, owner: object) -> None:
        """Release the threads that a run may have acquired; abandon them if replicas of the run are still running."""
        for threads, holder in list(self._owners.items()):
            if holder != owner:
                continue
            if threads.work is not NO_WORK and not _finish_unclaimed(threads):
                self.abandon(threads)
                return
            threads.work = NO_WORK
            if self._closed is None:
                del self._owners[threads]
            else:
                threads.close()

    def close(self, reason: str) -> None:
        """Refuse further runs and stop the helpers; the helpers of a current run stop when it ends."""
        self._closed = self._closed or reason
        for threads in list(self._all):
            # Closes threads that are not in use; they cannot be acquired any more.
            if self._owners.setdefault(threads, self._owners) is self._owners:
                threads.close()

    def abandon(self, threads: ReplicaThreads) -> None:
        """Refuse further runs until the replicas of this run, which keep their threads, have returned."""
        threads.is_abandoned = True
        threads.group.abort(_ABANDONED)
        threads.close()
        if threads not in self._abandoned:  # Ctrl-C may have interrupted an earlier call
            self._abandoned.append(threads)
        if threads in self._all:
            self._all.remove(threads)
        self._owners.pop(threads, None)

    def _drop_abandoned(self) -> None:
        for threads in tuple(self._abandoned):
            if threads.claims.running():
                threads.claims.wait_finished(_PATIENCE_SECONDS)
            if running := threads.describe_running():
                raise FailedPreconditionError(
                    f"an earlier strategy.run or map has raised while {running}: this strategy is usable again once "
                    "these replicas have returned. Wait for them, or create a new strategy"
                )
            self._abandoned.remove(threads)

    def helpers(self) -> list[threading.Thread]:
        """Return the helper threads, except those of abandoned runs."""
        return [thread for threads in self._all for thread in threads.helpers]

    def forget(self) -> None:
        """Drop all threads in a forked child, where they do not exist."""
        # Kept alive and not closed: a thread of the parent may have held one of their locks at the fork.
        _left_behind.extend(self._all + self._abandoned)
        self._owners.clear()
        self._all.clear()
        self._abandoned.clear()

    def __deepcopy__(self, memo: dict[int, Any]) -> ReplicaThreadPool:
        return ReplicaThreadPool(self.num_replicas)


def _finish_unclaimed(threads: ReplicaThreads) -> bool:
    """Finish the replicas that no thread has claimed; return whether no replica is running."""
    for unclaimed in iter(threads.claims.claim, -1):
        threads.claims.finish(unclaimed)
    return not threads.claims.running()


def _close_each(items: list[ReplicaThreads]) -> None:
    for threads in items:
        threads.close()


_pools: weakref.WeakSet[ReplicaThreadPool] = weakref.WeakSet()
_left_behind: list[ReplicaThreads] = []
# Running helper threads, including those whose pool was freed.
_helpers: set[threading.Thread] = set()
_forks = 0


def fork_count() -> int:
    """Return how many forks separate this process from the process that imported this module."""
    return _forks


def _after_fork_in_child() -> None:
    global _forks
    _forks += 1
    _helpers.clear()
    for pool in list(_pools):
        pool.forget()


def _close_all() -> None:
    """Stop all helpers at exit: a helper that left the core later would run in a finalizing interpreter."""
    deadline = time.monotonic() + EXIT_SECONDS
    pools = list(_pools)
    items = [threads for pool in pools for threads in pool._all + pool._abandoned]
    for pool in pools:
        pool.close(_INTERPRETER_ENDS)
    for threads in items:
        threads.group.abort(_INTERPRETER_ENDS)
        threads.close()
    # Threads that called run are not helpers, so they are not joined: wait until their replicas have ended.
    while any(threads.claims.running() for threads in items) and time.monotonic() < deadline:
        time.sleep(0.001)
    for thread in _helpers.copy():
        thread.join(timeout=max(0.0, deadline - time.monotonic()))


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
