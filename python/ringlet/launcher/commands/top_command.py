"""``ringlet top``: a table of a running job, every second until it ends."""

from __future__ import annotations

import argparse
import importlib.util
import math
import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from ringlet.launcher.command_line import CommandError
from ringlet.launcher.commands.inspect_command import (
    Snapshot,
    aligned,
    headline,
    list_jobs,
    missing_ranks,
    read_subject,
)
from ringlet.observe.divergence import calls_by_group, rank_ranges
from ringlet.observe.recorder import Operation
from ringlet.tpu.units import format_seconds

_EPILOG = """\
examples:
  ringlet top                          list the running jobs
  ringlet top 4711                     the job of a worker or launcher, by pid
  ringlet top 8f0c2a6de15b9347         by the RINGLET_JOB_ID of its processes
  ringlet top --once 4711              one table

Rates are for the last interval. The command ends with the job, or on
Ctrl-C. The exit status is 2 if the job is not running at the start, else 0.
"""
_HEAD = ("ranks", "pid", "runs/s", "calls/s", "bytes/s", "waiting", "memory", "now")
_Calls = dict[str, dict[int, dict[int, Operation]]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to `parser`."""
    parser.epilog = _EPILOG
    parser.add_argument(
        "subject", metavar="PID|JOB", nargs="?", help="a process, or a job; by default the running jobs are listed"
    )
    parser.add_argument("--interval", metavar="S", type=float, default=1.0, help="seconds between tables (%(default)s)")
    parser.add_argument("--once", action="store_true", help="print one table")


def execute(options: argparse.Namespace) -> int:
    """Print tables until the job ends, or list the running jobs; return the exit status."""
    if not 0 < options.interval < math.inf:
        raise CommandError(f"--interval must be a positive number of seconds, got {options.interval}")
    if options.subject is None:
        return list_jobs()
    if Path(options.subject).exists():
        raise CommandError(f"{options.subject} is a file: ringlet inspect {options.subject} shows it")
    before = _read(options.subject)
    if not before:
        raise CommandError(
            f"no process of {options.subject} is running: ringlet inspect {options.subject} shows the last calls"
        )
    jobs = {shot.process.job for shot in before.values()}
    subject = jobs.pop() if len(jobs) == 1 and "" not in jobs else options.subject
    with ExitStack() as stack:
        paint = _painter(stack)
        try:
            while True:
                time.sleep(options.interval)
                try:
                    after = _read(subject)
                except CommandError:  # no process is left
                    after = {}
                if not after:
                    break
                first = next(iter(after.values())).process
                paint(headline(len(after), first.job, first.host, first.command), list(_rows(before, after)))
                if options.once:
                    return 0
                before = after
        except KeyboardInterrupt:
            return 0
    print("the job has ended")
    return 0


def _read(subject: str) -> dict[int, Snapshot]:
    try:
        found = [shot for shot in read_subject(subject) if not shot.has_exited]
    except OSError as error:
        raise CommandError(str(error)) from error
    return {shot.process.pid: shot for shot in found}


def _rows(before: dict[int, Snapshot], after: dict[int, Snapshot]) -> Iterator[tuple[str, ...]]:
    calls = calls_by_group(shot.process for shot in after.values())
    oldest = min(shot.at for shot in after.values())
    rows = [(min(_ranks(shot), default=-1), _row(before.get(pid), shot, calls, oldest)) for pid, shot in after.items()]
    return (row for _, row in sorted(rows))


def _row(before: Snapshot | None, shot: Snapshot, calls: _Calls, oldest: float) -> tuple[str, ...]:
    ranks, pid = _ranks(shot), shot.process.pid
    current = [thread[-1] for thread in shot.process.threads if thread and thread[-1].ended is None]
    if before is None:
        rates: tuple[str, ...] = ("", "", "", "")
    else:
        seconds = shot.at - before.at
        runs, count, size, waiting = (new - old for new, old in zip(_sums(shot), _sums(before), strict=True))
        rates = (
            f"{runs / seconds:,.1f}" if shot.process.num_runs else "",
            f"{count / seconds:,.1f}",
            _bytes(size / seconds),
            f"{min(max(waiting / seconds / max(len(ranks), 1), 0), 1):.0%}",
        )
    return (
        rank_ranges(ranks).partition(" ")[2] if ranks else "-",
        str(pid),
        *rates,
        _bytes(_resident(pid)),
        _now(min(current, key=lambda call: call.began), shot, calls, oldest) if current else "",
    )


def _ranks(shot: Snapshot) -> list[int]:
    """Return the ranks of the threads, each in its largest group."""
    return sorted({max(thread, key=lambda call: call.num_ranks).rank for thread in shot.process.threads if thread})


def _sums(shot: Snapshot) -> tuple[float, ...]:
    """Return the totals so far: strategy runs, calls, bytes, and seconds of waiting (also in current calls)."""
    totals, threads = shot.process.totals.values(), filter(None, shot.process.threads)
    current = sum(
        (shot.at if call.arrived is None else call.arrived) - call.began
        for call in (thread[-1] for thread in threads)
        if call.ended is None
    )
    return (
        shot.process.num_runs,
        sum(total.count for total in totals),
        sum(total.bytes for total in totals),
        sum(total.waiting_seconds for total in totals) + current,
    )


def _now(call: Operation, shot: Snapshot, calls: _Calls, oldest: float) -> str:
    missing = missing_ranks(call, calls[call.group][call.sequence], oldest)
    waits = f", waits for {rank_ranges(missing)}" if missing else ""
    return f"for {format_seconds(shot.at - call.began)} in {call.text}{waits}"


def _resident(pid: int) -> float:
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:  # noqa: PTH123  # a process may exit meanwhile
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _bytes(number: float) -> str:
    unit = min(int(math.log10(number)) // 3, 4) if number >= 1 else 0
    return f"{number / 1000**unit:.{min(unit, 1)}f} {('B', 'kB', 'MB', 'GB', 'TB')[unit]}"


def _painter(stack: ExitStack) -> Any:
    """Return a function that prints a table; on a terminal, it replaces the previous table."""
    if sys.stdout.isatty() and importlib.util.find_spec("rich"):
        from rich.live import Live  # an optional dependency, and slow to import
        from rich.table import Table

        live = stack.enter_context(Live(auto_refresh=False))

        def draw(title: str, rows: list[tuple[str, ...]]) -> None:
            table = Table(*_HEAD, title=title, title_justify="left")
            for row in rows:
                table.add_row(*row)
            live.update(table, refresh=True)

        return draw
    # Move to the top left, and erase the screen.
    begin, end = ("\x1b[H\x1b[J", "") if sys.stdout.isatty() else ("", "\n")

    def write(title: str, rows: list[tuple[str, ...]]) -> None:
        print(begin + "\n".join([title, *aligned([_HEAD, *rows])]) + end, flush=True)

    return write
