"""Measures all-reduce over two simulated hosts beside Open MPI's own ``Allreduce``, under the same flags.

Run as root, as ``python -m bench.hosts``, in an environment with ``ringlet[mpi]``; the hosts are network namespaces.
A ratio above 1 means that ringlet is faster; both alternate in rounds, and the median of the rounds is reported.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bench.harness import Statistics, format_bytes, parse_sizes, ratios
from bench.report import format_seconds

__all__ = ["main"]

_SIZES = "8B,64KiB,4MiB,16MiB,64MiB"
_SECONDS = 0.2  # of one region


def _measure(sizes: Sequence[int], rounds: int) -> None:
    """Measure on the ranks of a job, and print a table on rank 0."""
    from ringlet.collectives import init_process_group

    member = init_process_group(timeout_seconds=120)
    from mpi4py import MPI  # after the group, which has loaded it

    world = MPI.COMM_WORLD
    for size in sizes:
        x, ours, theirs = (np.full(size // 4, member.rank + 1, np.float32) for _ in range(3))
        calls: dict[str, Callable[[], Any]] = {
            "ringlet": lambda x=x, ours=ours: member.all_reduce(x, out=ours),
            "Allreduce": lambda x=x, theirs=theirs: world.Allreduce(x, theirs),
        }
        for call in calls.values():
            call()
        assert np.array_equal(ours, theirs), "the results differ"
        # All ranks make the same number of calls.
        count = world.bcast(max(1, int(_SECONDS / _seconds_of_each(calls["ringlet"], 3))))
        seconds: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(rounds):
            for name, call in calls.items():
                world.Barrier()
                seconds[name].append(_seconds_of_each(call, count))
        if member.rank == 0:
            medians = [format_seconds(Statistics(tuple(seconds[name])).median) for name in calls]
            gain = ratios(seconds["Allreduce"], seconds["ringlet"]).median
            print(f"| {format_bytes(size)} | {' | '.join(medians)} | {gain:.2f} |", flush=True)
    member.close()


def _seconds_of_each(call: Callable[[], object], count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


def main(arguments: Sequence[str] | None = None) -> int:
    """Start the jobs, and print their tables."""
    parser = argparse.ArgumentParser(prog="python -m bench.hosts", description=__doc__)
    parser.add_argument("--sizes", type=parse_sizes, default=parse_sizes(_SIZES), help=f"of the array ({_SIZES})")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--on-ranks", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.on_ranks:
        _measure(options.sizes, options.rounds)
        return 0
    from tests.hosts.simulated_hosts import simulated_hosts

    sizes = ",".join(f"{size}B" for size in options.sizes)
    program = [sys.executable, "-m", "bench.hosts", "--on-ranks", "--sizes", sizes, "--rounds", str(options.rounds)]
    for slots in ([1, 1], [2, 2]):
        print(f"\n2 hosts x {slots[0]}\n\n| array | ringlet | Allreduce | Allreduce / ringlet |")
        print("| --- | --- | --- | --- |")
        with simulated_hosts() as hosts:
            process = hosts.launch(slots, program)
            output, _ = process.communicate(timeout=600)
            print("\n".join(line for line in output.splitlines() if line.startswith("|")))
            if process.returncode:
                print(output, file=sys.stderr)
                raise subprocess.CalledProcessError(process.returncode, program, output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
