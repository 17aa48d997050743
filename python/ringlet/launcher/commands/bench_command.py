"""``ringlet bench``: compare the time of all-reduce with the time of a NumPy pass over the same memory."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringlet.collectives import Group, Member, empty_shared, init_process_group
from ringlet.collectives.available_memory import check_available_memory
from ringlet.config import show_config
from ringlet.devices import visible_cores
from ringlet.errors import SharedMemoryFullError
from ringlet.launcher.command_line import CommandError, closed_output_ignored, whole_number
from ringlet.launcher.launch import launch
from ringlet.tpu.units import format_bytes, format_seconds

_SIZES = (8, 1 << 10, 32 << 10, 1 << 20, 8 << 20, 64 << 20)
_DTYPES = ("float32", "float64", "int32", "int64")  # exact for the sums that _is_right checks
_ROUNDS, _ROUND_BYTES, _MOST_CALLS = 9, 1 << 22, 500

_EPILOG = """\
Each rank calls all_reduce(x, out=x), and the sums are checked. The limit is the
time in which all ranks at once negate x in place with NumPy, which reads and
writes as many bytes as an all-reduce must; for small arrays, it is the time of
a NumPy call. Both are medians of rounds that alternate, so that other work on
the machine affects both equally. The exit status is 1 if a sum is wrong.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to `parser`."""
    parser.usage = "ringlet bench all_reduce [-n N] [--processes] [--dtype D] [--json]"
    parser.epilog = _EPILOG
    parser.add_argument("collective", choices=("all_reduce",), help="the collective to measure")
    parser.add_argument("-n", "--ranks", metavar="N", help="number of ranks (one for each core, at least 2)")
    parser.add_argument("--processes", action="store_true", help="ranks are processes instead of threads")
    parser.add_argument("--dtype", choices=_DTYPES, default=_DTYPES[0], help="element type (%(default)s)")
    parser.add_argument("--json", action="store_true", help="print JSON")


def execute(options: argparse.Namespace) -> int:
    """Measure and print a table; return the exit status."""
    cores = visible_cores().count
    num_ranks = max(2, cores) if options.ranks is None else whole_number("-n", options.ranks)
    try:
        check_available_memory(2 * num_ranks * max(_SIZES), f"-n {num_ranks}")
    except SharedMemoryFullError as error:
        raise CommandError(str(error)) from error
    rows = [_row(*samples) for samples in zip(_SIZES, *_ranks(num_ranks, options), strict=True)]
    kind = "processes" if options.processes else "threads"
    with closed_output_ignored():
        if options.json:
            run = {"collective": options.collective, "ranks": num_ranks, "kind": kind, "dtype": options.dtype}
            print(json.dumps({**run, "rows": rows, "config": show_config("dicts")}))
        else:
            print(f"{options.collective} of {options.dtype} by {num_ranks} {kind} on {cores} cores\n\n{_table(rows)}")
    return int(not all(row["is_right"] for row in rows))


def _ranks(num_ranks: int, options: argparse.Namespace) -> list[list[Any]]:
    if options.processes:
        return launch(_measure, num_ranks, args=(_SIZES, options.dtype))
    with ThreadPoolExecutor(num_ranks) as pool:
        return list(pool.map(partial(_measure, _SIZES, options.dtype), map(Group(num_ranks).member, range(num_ranks))))


def _measure(sizes: tuple[int, ...], dtype: str, member: Member | None = None) -> list[Any]:
    """Return, for each size, the seconds of all-reduce and of NumPy in each round, and whether the sums are correct."""
    results = []
    with member or init_process_group() as rank:
        for size in sizes:
            x = empty_shared(size // np.dtype(dtype).itemsize, dtype)
            calls = (partial(rank.all_reduce, x, out=x), partial(np.negative, x, out=x))
            is_right = _is_right(rank, x)
            x.fill(0)  # repeated sums in place would grow without bound
            rounds = [[_seconds(rank, size, call) for call in calls] for _ in range(1 + _ROUNDS)]
            reductions, passes = map(list, zip(*rounds[1:], strict=True))  # the first round is a warm-up
            results.append((reductions, passes, _is_right(rank, x) and is_right))
    return results


def _is_right(rank: Member, x: NDArray[Any]) -> bool:
    x.fill(rank.rank + 1)
    x[::7] += 1
    rank.all_reduce(x, out=x)
    x[::7] -= rank.num_ranks
    return bool((x == rank.num_ranks * (rank.num_ranks + 1) // 2).all())


def _seconds(member: Member, size: int, call: Callable[[], object]) -> float:
    count = max(1, min(_MOST_CALLS, _ROUND_BYTES // size))
    member.barrier()
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


def _row(size: int, *samples: Any) -> dict[str, Any]:
    reductions, passes, are_right = zip(*samples, strict=True)  # a round lasts until its last rank has finished
    seconds, limit = (float(np.median(np.max(rounds, axis=0))) for rounds in (reductions, passes))
    return {"bytes": size, "seconds": seconds, "limit_seconds": limit, "is_right": all(are_right)}


def _table(rows: list[dict[str, Any]]) -> str:
    lines = [f"{'size':>8} {'time':>10} {'limit':>10} {'x limit':>8}"]
    for size, seconds, limit, is_right in (row.values() for row in rows):
        times = f"{format_seconds(seconds):>10} {format_seconds(limit):>10} {seconds / limit:8.1f}"
        lines.append(f"{format_bytes(size):>8} {times}{'' if is_right else '  wrong sums'}")
    return "\n".join(lines)
