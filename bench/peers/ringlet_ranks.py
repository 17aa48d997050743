"""Ringlet between processes: rank 0 starts the others; arrays are in shared memory, or ordinary NumPy arrays."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
from peer import ArrayRank, Question, begin, complaint_about, pin, serve

# How long ranks wait for each other; a question has a shorter limit, which ends them.
_PATIENCE_SECONDS = 120.0

# Up to this size calls are also timed one by one, at most so many of them: beyond it a millisecond is no tail.
_TAIL_BYTES = 32 << 10
_TAIL_CALLS = 2000


class RingletRank(ArrayRank):
    """A rank of the group of all processes.

    Parameters
    ----------
    ringlet : module
    member : Member
    is_shared : bool
        Whether arrays are from ``ringlet.empty_shared``.
    """

    variants: ClassVar[Mapping[str, Sequence[str]]] = {
        "all_reduce": ("in_place", "out", "shared"),
        "reduce_scatter": ("out",),
        "all_gather": ("out", "shared"),
        "broadcast": ("in_place", "shared"),
        "all_to_all": ("out",),
        "barrier": ("out",),
    }

    def __init__(self, ringlet: Any, member: Any, is_shared: bool) -> None:
        self._ringlet = ringlet
        self._member = member
        self._is_shared = is_shared
        self.rank, self.num_ranks, self.num_processes = member.rank, member.num_ranks, member.num_ranks
        self.version = f"ringlet {ringlet.__version__}, {'shared' if is_shared else 'private'} arrays"
        self.barrier = member.barrier

    def largest(self, value: float) -> float:
        """Return the largest value of all ranks."""
        return float(self._member.all_reduce(np.float64(value), self._ringlet.collectives.Op.MAX))

    def allocate(self, count: int, dtype: np.dtype[Any]) -> None:
        """Allocate both arrays."""
        if self._is_shared:
            self.x, self.y = (self._ringlet.empty_shared(count, dtype) for _ in range(2))
        else:
            super().allocate(count, dtype)

    def call(self, collective: str, variant: str) -> Callable[[], object]:
        """Return a function that makes one call; for an all-reduce, a plan, which checks its arguments once."""
        member, x = self._member, self.x
        block = len(x) // self.num_ranks
        out = {"in_place": x, "out": self.y, "shared": None}[variant]
        if collective == "all_reduce":
            plan: Callable[[], object] = member.plan_all_reduce(x, out=out)
            return plan
        return {
            "reduce_scatter": partial(member.reduce_scatter, x, out=self.y[:block]),
            "all_gather": partial(member.all_gather, x[:block], out=out),
            "broadcast": partial(member.broadcast, x if self.rank == 0 else None, out=out),
            "all_to_all": partial(member.all_to_all, x, out=out),
        }[collective]

    def complaint(self, collective: str, variant: str) -> str | None:
        """Compare this rank's result with the expected result."""
        if variant == "shared":
            return complaint_about(self.result, collective, self.rank, self.num_ranks)
        return super().complaint(collective, variant)

    def details(self, question: Question, call: Callable[[], object], calls: int) -> Mapping[str, float]:
        """Time all-reduces one by one, and count page faults, the maximum over the ranks."""
        if question.question != "all_reduce":
            return {}
        repeats = max(3, min(_TAIL_CALLS, 2 * calls)) if question.size_bytes <= _TAIL_BYTES else 3
        self.barrier()
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        slowest, before = 0.0, time.perf_counter()
        for _ in range(repeats):
            call()
            now = time.perf_counter()
            slowest, before = max(slowest, now - before), now
        self.barrier()
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults
        return {"slowest_call": self.largest(slowest), "faults_per_call": self.largest(faults) / repeats}


def main() -> None:
    """Serve questions as one rank; without a number, as rank 0, which starts the others."""
    options = begin()
    rank = options.rank or 0
    others = [
        subprocess.Popen([sys.executable, __file__, *sys.argv[1:], "--rank", str(other)], stdin=subprocess.DEVNULL)
        for other in range(1, options.ranks if rank == 0 else 0)
    ]
    # Before ringlet starts a thread of its own, which then stays with its rank.
    pin(rank, options.cores)
    import ringlet

    join = ringlet.collectives.init_process_group
    with join(rank, options.ranks, name=str(options.folder), timeout_seconds=_PATIENCE_SECONDS) as member:
        serve(RingletRank(ringlet, member, options.memory == "shared"), options)
    for other in others:
        other.wait(timeout=30)


if __name__ == "__main__":
    main()
