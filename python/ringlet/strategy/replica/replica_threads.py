"""Crews: the threads and the group of ranks that one run of a step function needs.

A *crew* has a claim counter, P-1 helper threads beside the thread that calls ``run``, and a group with one rank for
each replica. A strategy keeps the crews that are free: a run takes one and gives it back, so that concurrent and nested
runs each have their own. Helpers hold their crew and never the strategy, which can therefore go while they are parked.
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

__all__ = ["NO_WORK", "Crew", "CrewPool", "fork_count"]

# How long the end of the interpreter waits for helpers that are on their way out.
EXIT_SECONDS = 1.0

_ENDED = "has returned from its step function"
_GIVEN_UP = "a run of it was given up while replicas were running"
_INTERPRETER_ENDS = "the interpreter is ending"


class Work(Protocol):
    """What helpers execute."""

    def execute(self, replica: int) -> None:
        """Run one replica to its end; never raises."""
        ...


class _NoWork:
    def execute(self, replica: int) -> None:
        raise AssertionError(f"replica {replica} was claimed while no run was on")


# What a crew has between runs.
NO_WORK = _NoWork()


class Crew:
    """What one run at a time needs.

    Parameters
    ----------
    num_replicas : int
        Replicas of this process.
    timeout_seconds : float
        How long a rank waits for the others; infinity for ever.

    Examples
    --------
    >>> crew = Crew(2, timeout_seconds=10.0)
    >>> crew.group.num_ranks, crew.claims.running()
    (2, [])
    """

    def __init__(self, num_replicas: int, timeout_seconds: float) -> None:
        self.claims = _core.Crew(num_replicas)
        self.work: Work = NO_WORK
        self.helpers: list[threading.Thread] = []
        # Which thread a helper's replica runs or last ran in.
        self.threads: dict[int, int] = {}
        # Whether a run has raised while replicas were busy.
        self.is_given_up = False
        self._has_departures = False
        self._num_replicas = num_replicas
        self._timeout_seconds = timeout_seconds
        self._new_group(epoch=0)

    def _new_group(self, epoch: int) -> None:
        # Time-outs of 0 mean never, and infinity is what that becomes.
        self.group = Group(self._num_replicas, timeout_seconds=self._timeout_seconds, epoch=epoch)
        self.members: list[Member] = [self.group.member(rank) for rank in range(self._num_replicas)]

    def prepare(self, work: Work) -> None:
        """Get ready for a run, whose replicas may be claimed once ``claims.open()`` was called."""
        if self.group.failure is not None:
            self._new_group(self.group.epoch + 1)
        if self._has_departures:
            for member in self.members:
                member.rejoin()
            self._has_departures = False
        # Not all at once the first time, if Ctrl-C or a limit on threads came between.
        if len(self.helpers) < self._num_replicas - 1:
            self._start_helpers()
        self.work = work

    def depart(self, replica: int) -> None:
        """Tell the group that a replica makes no more calls in this run."""
        self._has_departures = True
        self.members[replica].depart(_ENDED)

    def _start_helpers(self) -> None:
        for number in range(len(self.helpers) + 1, self._num_replicas):
            thread = threading.Thread(target=_help, args=(self,), name=f"ringlet-helper-{number}", daemon=True)
            thread.start()
            self.helpers.append(thread)

    def close(self) -> None:
        """Let the helpers end; they are not waited for."""
        self.claims.close()


def _help(crew: Crew) -> None:
    """What a helper thread does for all its life."""
    forks = fork_count()
    thread = threading.current_thread()
    _helpers.add(thread)
    try:
        blas_limiter().limit_this_thread(crew.group.num_ranks)
        while (replica := crew.claims.wait_for_claim()) >= 0:
            crew.threads[replica] = threading.get_ident()
            crew.work.execute(replica)
            if fork_count() != forks:  # this is the child of a step function that forked: there is no crew here
                return
    finally:
        _helpers.discard(thread)


class CrewPool:
    """The crews of one strategy.

    A crew in use has an owner, some object that stands for a run. Ctrl-C may come between any two instructions, so
    what is in use is told by owners alone: whoever is interrupted gives back whatever it may have got.

    Parameters
    ----------
    num_replicas : int
        Replicas of this process.

    Examples
    --------
    >>> pool = CrewPool(2)
    >>> crew = pool.acquire("a run")
    >>> pool.release("a run")
    >>> pool.acquire("another run") is crew
    True
    """

    def __init__(self, num_replicas: int) -> None:
        self.num_replicas = num_replicas
        self.timeout_seconds = default_timeout_seconds()
        self._all: list[Crew] = []
        self._owners: dict[Crew, object] = {}
        self._closed: str | None = None
        weakref.finalize(self, _close_crews, self._all).atexit = False
        _pools.add(self)

    def acquire(self, owner: object) -> Crew:
        """Take a crew for one run.

        Parameters
        ----------
        owner : object
            Another one for every run.

        Raises
        ------
        FailedPreconditionError
            If the pool is closed; the message says why.
        """
        if self._closed is not None:
            raise FailedPreconditionError(f"this strategy is closed: {self._closed}. Make a new strategy")
        for crew in self._all:
            if self._owners.setdefault(crew, owner) is owner:
                return crew
        crew = Crew(self.num_replicas, self.timeout_seconds)
        self._owners[crew] = owner
        self._all.append(crew)
        return crew

    def release(self, owner: object) -> None:
        """Give back what a run has, if anything; the pool is closed if replicas of it are still running."""
        for crew, holder in tuple(self._owners.items()):
            if holder != owner:
                continue
            if crew.work is not NO_WORK and not _is_idle(crew):
                self.give_up(crew, _GIVEN_UP)
                return
            crew.work = NO_WORK
            if self._closed is None:
                del self._owners[crew]
            else:
                crew.close()

    def close(self, reason: str) -> None:
        """Refuse further runs and let the helpers end; those of a run that is on end with it."""
        self._closed = self._closed or reason
        for crew in list(self._all):
            if self._owners.setdefault(crew, self._owners) is self._owners:  # free: nobody else gets it now
                crew.close()

    def give_up(self, crew: Crew, reason: str) -> None:
        """Close the pool because of a run that does not end; a replica keeps its thread until it returns."""
        crew.is_given_up = True
        crew.group.abort(reason)
        crew.close()
        self.close(reason)

    def helpers(self) -> list[threading.Thread]:
        """Give the helper threads that exist."""
        return [thread for crew in self._all for thread in crew.helpers]

    def forget(self) -> None:
        """Drop all crews in a forked child, where their threads do not exist."""
        # Not closed and not freed: threads of the parent may hold their locks in this copy of them.
        _left_behind.extend(self._all)
        self._owners.clear()
        self._all.clear()

    def __deepcopy__(self, memo: dict[int, Any]) -> CrewPool:
        return CrewPool(self.num_replicas)


def _is_idle(crew: Crew) -> bool:
    """Whether no replica runs, or will: those that nobody has claimed are left out."""
    for unclaimed in iter(crew.claims.claim, -1):
        crew.claims.finish(unclaimed)
    return not crew.claims.running()


def _close_crews(crews: list[Crew]) -> None:
    for crew in crews:
        crew.close()


_pools: weakref.WeakSet[CrewPool] = weakref.WeakSet()
_left_behind: list[Crew] = []
# Helpers between their first and their last instruction here, also those whose pool is gone.
_helpers: set[threading.Thread] = set()
_forks = 0


def fork_count() -> int:
    """Count the forks that lie between the first process and this one, as far as this module has seen.

    Returns
    -------
    int

    Examples
    --------
    >>> fork_count() >= 0
    True
    """
    return _forks


def _after_fork_in_child() -> None:
    global _forks
    _forks += 1
    _helpers.clear()
    for pool in list(_pools):
        pool.forget()


def _close_all() -> None:
    """At exit: a thread that came out of the core later would find an interpreter that is being torn down."""
    deadline = time.monotonic() + EXIT_SECONDS
    pools = list(_pools)
    crews = [crew for pool in pools for crew in list(pool._all)]
    for pool in pools:
        pool.close(_INTERPRETER_ENDS)
    for crew in crews:
        crew.group.abort(_INTERPRETER_ENDS)
        crew.close()
    # The thread that called run is no helper, and may be in a collective, too.
    while any(crew.claims.running() for crew in crews) and time.monotonic() < deadline:
        time.sleep(0.001)
    for thread in _helpers.copy():
        thread.join(timeout=max(0.0, deadline - time.monotonic()))


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
