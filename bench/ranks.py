"""Threads as ranks, each on a core: execution, timing, and the overhead of Python."""

from __future__ import annotations

import os
import resource
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from bench.machine import usable_cores

__all__ = ["Meets", "RankThreads", "Region", "gil_round_seconds", "slowest_call_seconds", "time_region"]

T = TypeVar("T")
Call = Callable[[], object]


class Meets(Protocol):
    """Interface of a barrier between ranks, as in ``ringlet.collectives.Member``."""

    def barrier(self) -> None:
        """Wait for all ranks."""


@dataclass(frozen=True)
class RankThreads:
    """Runs ranks, one thread each.

    Attributes
    ----------
    num_ranks : int
    pin : bool
        Whether to bind rank i to the i-th usable core, cyclically.
    on_failure : callable
        Called in the thread of a rank that raised: must release the ranks that wait for it.

    Examples
    --------
    >>> RankThreads(3).run(lambda rank: rank * rank)
    [0, 1, 4]
    """

    num_ranks: int
    pin: bool = True
    on_failure: Callable[[], object] = lambda: None

    def run(self, body: Callable[[int], T]) -> list[T]:
        """Run ``body(rank)`` on every rank and wait for all.

        Returns
        -------
        list
            The results, in rank order.

        Raises
        ------
        BaseException
            The exception of the first rank that failed.
        """
        answers: dict[int, T] = {}
        failures: list[BaseException] = []
        cores = usable_cores()

        def run_rank(rank: int) -> None:
            try:
                if self.pin and hasattr(os, "sched_setaffinity"):
                    os.sched_setaffinity(0, {cores[rank % len(cores)]})
                answers[rank] = body(rank)
            except BaseException as error:
                failures.append(error)
                self.on_failure()

        threads = [threading.Thread(target=run_rank, args=(rank,)) for rank in range(self.num_ranks)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
        return [answers[rank] for rank in range(self.num_ranks)]


@dataclass(frozen=True)
class Region:
    """Costs of one timed region of back-to-back calls.

    Attributes
    ----------
    seconds_per_call : float
        Seconds per call of the slowest rank.
    faults_per_call : float
        Page faults of the whole process between the region's two barriers, per call.
    """

    seconds_per_call: float
    faults_per_call: float


def time_region(threads: RankThreads, members: Sequence[Meets], calls: Sequence[Call], repeats: int) -> Region:
    """Time `repeats` back-to-back calls on every rank, between two barriers.

    Parameters
    ----------
    threads : RankThreads
    members : sequence
        Members, whose ``barrier()`` each rank calls.
    calls : sequence of callable
        The timed call of each rank.
    repeats : int

    Returns
    -------
    Region
    """

    def body(rank: int) -> tuple[float, int]:
        member, call = members[rank], calls[rank]
        # A rank may begin a call while another still holds the result of the one before: a steady state has two.
        held = call()
        call()
        del held
        member.barrier()
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        start = time.perf_counter()
        for _ in range(repeats):
            call()
        elapsed = time.perf_counter() - start
        member.barrier()
        return elapsed, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults

    answers = threads.run(body)
    return Region(max(seconds for seconds, _ in answers) / repeats, max(faults for _, faults in answers) / repeats)


def slowest_call_seconds(threads: RankThreads, members: Sequence[Meets], calls: Sequence[Call], repeats: int) -> float:
    """Return the longest single call among `repeats` on every rank, which medians hide.

    Returns
    -------
    float
        Seconds.
    """

    def body(rank: int) -> float:
        member, call = members[rank], calls[rank]
        call()
        member.barrier()
        slowest = 0.0
        before = time.perf_counter()
        for _ in range(repeats):
            call()
            now = time.perf_counter()
            slowest = max(slowest, now - before)
            before = now
        member.barrier()
        return slowest

    return max(threads.run(body))


def gil_round_seconds(num_ranks: int, *, rounds: int = 300, pin: bool = True) -> float:
    """Return the seconds in which each of `num_ranks` threads passes the interpreter lock to the next one once.

    Threads of one interpreter can make a collective call only in turn, so a blocking call of all takes at least this
    time. The threads form a ring of locks: each waits for its own and releases its neighbour's.

    Parameters
    ----------
    num_ranks : int
    rounds : int
        Number of rounds of the ring in one measurement.
    pin : bool

    Returns
    -------
    float

    Examples
    --------
    >>> 0 < gil_round_seconds(2, rounds=10) < 1
    True
    """
    turns = [threading.Lock() for _ in range(num_ranks)]
    for turn in turns:
        turn.acquire()
    start_line = threading.Barrier(num_ranks + 1)

    def body(rank: int) -> float:
        mine, next_one = turns[rank], turns[(rank + 1) % num_ranks]
        start_line.wait()
        for _ in range(rounds):
            mine.acquire()
            next_one.release()
        return time.perf_counter()

    elapsed: list[float] = []
    runner = threading.Thread(target=lambda: elapsed.extend(RankThreads(num_ranks, pin).run(body)))
    runner.start()
    start_line.wait()
    start = time.perf_counter()
    turns[0].release()
    runner.join()
    return (max(elapsed) - start) / rounds
