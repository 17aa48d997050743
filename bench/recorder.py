"""The cost of the flight recorder: for an operation, and for an all-reduce of 64 KiB between processes.

Programs with and without it (``RINGLET_RECORDER=0``) run in alternation; the minimum over all rounds is reported,
because other work on the machine only adds time::

    python -m bench.recorder --rounds 20
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

import numpy as np

import ringlet
from ringlet.collectives import Group, init_process_group

MODES = {"with": "1", "without": "0"}


def best_seconds(call: Callable[[], object], calls: int, repeats: int) -> float:
    """The shortest time of a call, over blocks of calls."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        best = min(best, (time.perf_counter() - start) / calls)
    return best


def time_one_rank(calls: int, repeats: int) -> float:
    """Seconds of a call of a group of one rank, which never waits: most of it is the cost that all calls have."""
    values = np.ones(2, np.float32)
    return best_seconds(Group(1).member(0).plan_all_reduce(values, out=values), calls, repeats)


def time_two_processes(calls: int, repeats: int) -> float:
    """Seconds of an all-reduce of 64 KiB between two processes."""
    values = np.ones(16384, np.float32)
    out = np.empty_like(values)
    return best_seconds(init_process_group().plan_all_reduce(values, out=out), calls, repeats)


QUESTIONS = {
    "8 B, 1 rank": (time_one_rank, 1, 500),
    "64 KiB, 2 processes": (time_two_processes, 2, 100),
}


def main(arguments: list[str] | None = None) -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10, help="pairs of programs (%(default)s)")
    parser.add_argument("--repeats", type=int, default=500, help="blocks of calls in each program (%(default)s)")
    options = parser.parse_args(arguments)
    print(f"{'all-reduce':<22}{'without':>12}{'with':>12}{'difference':>14}{'ratio':>9}")
    for name, (measure, workers, calls) in QUESTIONS.items():
        best = dict.fromkeys(MODES, float("inf"))
        for number in range(options.rounds):
            for mode in sorted(MODES, reverse=number % 2 == 1):
                seconds = ringlet.launch(
                    measure, n=workers, args=(calls, options.repeats), environment={"RINGLET_RECORDER": MODES[mode]}
                )
                best[mode] = min(best[mode], *seconds)
        without, recorded = best["without"] * 1e9, best["with"] * 1e9
        difference = f"{recorded - without:+.0f} ns"
        print(f"{name:<22}{without:>9.0f} ns{recorded:>9.0f} ns{difference:>14}{recorded / without:>9.3f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
