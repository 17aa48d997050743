"""How soon two unpinned processes are as fast as before, after a busy loop beside them has ended.

In each trial, two ranks sum 8 bytes without a pause, first in quiet, then beside a busy loop, then in quiet again. They
are back when several blocks of calls in a row take at most 1.3 times the median of the quiet blocks before. Cores of
virtual machines change their speed by themselves, so each block also times a loop of plain Python on each rank; the
second column divides the time of a call by the slower of these::

    python -m bench.after_busy_loops --trials 20
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
import time
from collections.abc import Sequence

import numpy as np

import ringlet
from bench.busy_loops import busy_loops
from ringlet.collectives import Op, init_process_group

CALLS = 1000
STEADY_BLOCKS = 5
LIMIT = 1.3

# The end of a block of calls in seconds since its phase began, and what a call took in seconds, and in loops of Python.
Block = tuple[float, float, float]


def trial_blocks(seconds: float) -> list[list[Block]]:
    """Return the blocks of a rank in the three phases of a trial, each of which lasts `seconds`."""
    member = init_process_group()
    values, flags = np.ones(2, np.float32), np.zeros(2)
    phases: list[list[Block]] = []
    for num_loops in (0, 1, 0):
        blocks: list[Block] = []
        with busy_loops(num_loops if member.rank == 0 else 0):
            member.barrier()
            begin = time.perf_counter()
            flags[0] = 0.0
            while not flags[0]:
                own_speed = _python_loop_seconds()
                start = time.perf_counter()
                for _ in range(CALLS):
                    member.all_reduce(values, Op.MAX, out=values)
                end = time.perf_counter()
                flags[:] = (end - begin > seconds), own_speed
                member.all_reduce(flags, Op.MAX, out=flags)
                per_call = (end - start) / CALLS
                blocks.append((end - begin, per_call, per_call / flags[1]))
        phases.append(blocks)
    return phases


def _python_loop_seconds() -> float:
    start = time.perf_counter()
    for _ in range(2000):
        pass
    return time.perf_counter() - start


def seconds_until_back(quiet: Sequence[Block], after: Sequence[Block], measure: int) -> float:
    """Return when the blocks `after` are as fast as the median of `quiet`, by element `measure`; infinity for never."""
    limit = LIMIT * statistics.median(block[measure] for block in quiet)
    for first in range(len(after) - STEADY_BLOCKS + 1):
        if all(block[measure] <= limit for block in after[first : first + STEADY_BLOCKS]):
            return after[first][0]
    return float("inf")


def main(arguments: list[str] | None = None) -> None:
    """Measure, and print a line for each trial and the number of trials that were back in time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=20, help="fresh launches of two workers (%(default)s)")
    parser.add_argument("--seconds", type=float, default=1.0, help="length of each phase (%(default)s)")
    options = parser.parse_args(arguments)
    found: list[tuple[float, float]] = []
    print(
        "us a call: quiet, beside the loop, after it; ms until back: as timed, and corrected for the speed of the cores"
    )
    for _ in range(options.trials):
        quiet, busy, after = ringlet.launch(trial_blocks, 2, args=(options.seconds,))[0]
        found.append((seconds_until_back(quiet, after, 1), seconds_until_back(quiet, after, 2)))
        medians = [statistics.median(block[1] for block in blocks) * 1e6 for blocks in (quiet, busy, after)]
        print(
            "  ".join(f"{us:6.2f}" for us in medians), *(f"{1e3 * seconds:8.1f}" for seconds in found[-1]), flush=True
        )
    for limit in (0.005, 0.05):
        counts = [sum(seconds[column] <= limit for seconds in found) for column in (0, 1)]
        print(f"back within {1e3 * limit:g} ms: {counts[0]} as timed, {counts[1]} corrected, of {len(found)}")


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main(sys.argv[1:])
