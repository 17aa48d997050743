"""Measures all-reduce over two simulated hosts beside Open MPI's own ``Allreduce``, under the same flags.

Run as root, as ``python -m bench.hosts``, in an environment with ``ringlet[mpi]``; the hosts are network namespaces.
``Sendrecv`` exchanges the whole array between the first ranks of the hosts, in both directions at once: the bytes that
an all-reduce over two hosts must move. A ratio above 1 means that ringlet is faster; the calls alternate in rounds, and
the median of the rounds is reported.
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

    world, half = MPI.COMM_WORLD, member.num_ranks // 2
    partner = {0: half, half: 0}.get(member.rank)  # only the first ranks of the hosts exchange
    for size in sizes:
        x, ours, theirs, other = (np.full(size // 4, member.rank + 1, np.float32) for _ in range(4))
        calls: dict[str, Callable[[], Any]] = {
            "ringlet": lambda x=x, ours=ours: member.all_reduce(x, out=ours),
            "Allreduce": lambda x=x, theirs=theirs: world.Allreduce(x, theirs),
            "Sendrecv": lambda x=x, other=other: partner is not None and world.Sendrecv(x, partner, recvbuf=other),
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
            gains = [f"{ratios(seconds[name], seconds['ringlet']).median:.2f}" for name in ("Allreduce", "Sendrecv")]
            print(f"| {format_bytes(size)} | {' | '.join([*medians, *gains])} |", flush=True)
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
    parser.add_argument("--rate", help="of each host's outgoing traffic, as tc writes it, such as 1gbit")
    parser.add_argument("--on-ranks", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.on_ranks:
        _measure(options.sizes, options.rounds)
        return 0
    from tests.hosts.simulated_hosts import simulated_hosts

    sizes = ",".join(f"{size}B" for size in options.sizes)
    program = [sys.executable, "-m", "bench.hosts", "--on-ranks", "--sizes", sizes, "--rounds", str(options.rounds)]
    for slots in ([1, 1], [2, 2]):
        shaped = f", {options.rate}" if options.rate else ""
        print(
            f"\n2 hosts x {slots[0]}{shaped}\n\n| array | ringlet | Allreduce | Sendrecv | Allreduce / ringlet | ",
            end="",
        )
        print("Sendrecv / ringlet |\n| --- | --- | --- | --- | --- | --- |")
        with simulated_hosts() as hosts:
            for name in hosts.names if options.rate else ():
                shape = f"tc -n {name} qdisc add dev net root tbf rate {options.rate} burst 256kb latency 100ms"
                subprocess.run(shape.split(), check=True)
            process = hosts.launch(slots, program)
            output, _ = process.communicate(timeout=600)
            print("\n".join(line for line in output.splitlines() if line.startswith("|")))
            if process.returncode:
                print(output, file=sys.stderr)
                raise subprocess.CalledProcessError(process.returncode, program, output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
