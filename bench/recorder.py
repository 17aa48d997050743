"""The cost of the flight recorder, and of a trace: for an operation, and for an all-reduce of 64 KiB between processes.

Programs without it (``RINGLET_RECORDER=0``), with it, and with a trace (``RINGLET_TRACE``) run in alternation. Of all
blocks of calls, the best is reported, because other work on the machine only adds time, and the median, because the
thread that writes the trace works in some of the blocks only::

    python -m bench.recorder --rounds 20
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np

import ringlet
from ringlet.collectives import Group, init_process_group

MODES = {
    "without": {"RINGLET_RECORDER": "0", "RINGLET_TRACE": ""},
    "recorder": {"RINGLET_RECORDER": "1", "RINGLET_TRACE": ""},
    "trace": {"RINGLET_RECORDER": "1"},
}


def block_seconds(call: Callable[[], object], calls: int, repeats: int) -> list[float]:
    """Return the seconds of a call in each of several blocks of calls."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        seconds.append((time.perf_counter() - start) / calls)
    return seconds


def time_one_rank(calls: int, repeats: int) -> list[float]:
    """Return the seconds of a call of a group of one rank, which never waits: mostly the overhead of all calls."""
    values = np.ones(2, np.float32)
    return block_seconds(Group(1).member(0).plan_all_reduce(values, out=values), calls, repeats)


def time_a_method(calls: int, repeats: int) -> list[float]:
    """Return the seconds of the same call in a method, whose frames the recorder traverses to find the program line."""
    values = np.ones(2, np.float32)
    member = Group(1).member(0)
    return block_seconds(lambda: member.all_reduce(values, out=values), calls, repeats)


def time_two_processes(calls: int, repeats: int) -> list[float]:
    """Return the seconds of an all-reduce of 64 KiB between two processes."""
    values = np.ones(16384, np.float32)
    out = np.empty_like(values)
    return block_seconds(init_process_group().plan_all_reduce(values, out=out), calls, repeats)


QUESTIONS = {
    "8 B, 1 rank": (time_one_rank, 1, 500),
    "8 B, 1 rank, method": (time_a_method, 1, 500),
    "64 KiB, 2 processes": (time_two_processes, 2, 100),
}


def main(arguments: list[str] | None = None) -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10, help="programs of each kind (%(default)s)")
    parser.add_argument("--repeats", type=int, default=500, help="blocks of calls in each program (%(default)s)")
    options = parser.parse_args(arguments)
    print(f"{'all-reduce':<22}{'':<10}{'best':>12}{'ratio':>9}{'median':>12}{'ratio':>9}")
    with tempfile.TemporaryDirectory() as folder:
        MODES["trace"]["RINGLET_TRACE"] = folder
        for name, (measure, workers, calls) in QUESTIONS.items():
            seconds: dict[str, list[float]] = {mode: [] for mode in MODES}
            for number in range(options.rounds):
                for mode in sorted(MODES, reverse=number % 2 == 1):
                    each = ringlet.launch(measure, n=workers, args=(calls, options.repeats), environment=MODES[mode])
                    seconds[mode] += itertools.chain(*each)
            best, median = min(seconds["without"]), statistics.median(seconds["without"])
            for mode, found in seconds.items():
                numbers = [(min(found), best), (statistics.median(found), median)]
                columns = "".join(f"{value * 1e9:>9.0f} ns{value / base:>9.3f}" for value, base in numbers)
                print(f"{name:<22}{mode:<10}{columns}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
