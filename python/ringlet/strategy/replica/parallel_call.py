"""One call of all ranks that this process drives, by a thread each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ringlet.errors import DeadlineExceededError
from ringlet.strategy.replica.error_selection import first_failure
from ringlet.strategy.replica.replica_threads import NO_WORK, CrewPool

__all__ = ["call_everywhere"]

T = TypeVar("T")


class _Round:
    """What the threads of a crew execute."""

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


def call_everywhere(crews: CrewPool, call: Callable[[int], T], abort: Callable[[str], None]) -> list[T]:
    """Call a function for each replica of this process, in threads that run at the same time.

    Parameters
    ----------
    crews : CrewPool
        Of the strategy; its threads wait for each other in the calls.
    call : callable
        Takes the number of the replica.
    abort : callable
        Ends what the others wait in, if one of them cannot go on.

    Returns
    -------
    list
        What each call gave.

    Raises
    ------
    Exception
        The first one that is no consequence of another one.

    Examples
    --------
    >>> call_everywhere(CrewPool(2), lambda replica: 10 * replica, print)
    [0, 10]
    """
    owner = object()
    try:
        crew = crews.acquire(owner)
        work = _Round(crew.claims.finish, call, crews.num_replicas)
        crew.prepare(work)
        crew.claims.open()
        crew.claims.summon_all()
        try:
            for replica in iter(crew.claims.claim, -1):
                work.execute(replica)
            is_finished = crew.claims.wait_finished(crews.timeout_seconds)
        except BaseException as error:  # Ctrl-C between two instructions
            abort(f"{type(error).__name__} came while the replicas made a call together")
            raise
        if not is_finished:
            abort("a call that the replicas of this process make together has not ended in time")
            raise DeadlineExceededError("a call that the replicas of this process make together has not ended in time")
        crew.work = NO_WORK
    finally:
        crews.release(owner)
    if work.failures:
        raise first_failure(work.failures)[1]
    return work.results
