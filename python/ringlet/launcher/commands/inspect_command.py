"""``ringlet inspect``: show what each rank of a running or ended job did last."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from ringlet.errors import DataLossError
from ringlet.launcher.command_line import CommandError, whole_number
from ringlet.observe.divergence import calls_by_group, first_divergence, rank_ranges
from ringlet.observe.recorder import NAME, Operation, Process, copy_memory, read_process
from ringlet.observe.recorder_memory import start_ticks
from ringlet.tpu.units import format_seconds

_EPILOG = """\
examples:
  ringlet inspect                      list the running jobs
  ringlet inspect 4711                 the job of a worker or launcher, by pid
  ringlet inspect 8f0c2a6de15b9347     by the RINGLET_JOB_ID of its processes
  ringlet inspect logs/                files that ringlet run --log-dir has written

The command neither stops processes nor attaches to them. The exit status is 1
if ranks of one group have made different calls with the same number, 2 if
nothing can be read, else 0.
"""
_COLUMNS = ("call", "ranks", "outcome", "time", "waiting", "last to call", "operation", "place")
_MOST_PID_DIGITS = 8
_SUFFIX = ".recorder"


@dataclass(frozen=True)
class Snapshot:
    """A copy of a process's recorder.

    `at` is the time of the read or, for a file, of its last change, on the ``time.monotonic()`` clock of the process.
    `has_exited` is whether the process had exited by then; None for a file.
    """

    process: Process
    at: float
    has_exited: bool | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to `parser`."""
    parser.epilog = _EPILOG
    parser.add_argument(
        "subjects",
        metavar="PID|JOB|FILE",
        nargs="*",
        help="processes, a job, or files and folders; by default the running jobs are listed",
    )
    parser.add_argument("--last", metavar="N", default="10", help="calls to show of each group (%(default)s)")
    parser.add_argument("--json", action="store_true", help="print all recorded data as JSON")


def execute(options: argparse.Namespace) -> int:
    """Print the report, or list the running jobs; return the exit status."""
    last = whole_number("--last", options.last)
    if not options.subjects:
        return list_jobs()
    try:
        snapshots = [snapshot for subject in options.subjects for snapshot in read_subject(subject)]
    except OSError as error:
        raise CommandError(str(error)) from error
    snapshots = list({(shot.process.host, shot.process.pid): shot for shot in snapshots}.values())
    divergence = first_divergence(shot.process for shot in snapshots)
    if options.json:
        found = None if divergence is None else asdict(divergence) | {"text": str(divergence)}
        print(json.dumps({"processes": [_plain(shot, last) for shot in snapshots], "divergence": found}))
    else:
        lines = [*_process_lines(snapshots), *_call_lines(snapshots, last)]
        print("\n".join([*lines, str(divergence)] if divergence else lines))
    return 0 if divergence is None else 1


# --- reading ----------------------------------------------------------------------------------------------------------


def read_subject(subject: str) -> Iterator[Snapshot]:
    """Read the recorders that a pid, a job, a file or a folder identifies."""
    path = Path(subject)
    if path.is_dir():
        files = sorted(path.glob("*" + _SUFFIX))
        if not files:
            raise CommandError(f"{subject} contains no *{_SUFFIX} files: ringlet run --log-dir writes them")
        yield from map(_read_file, files)
    elif path.exists():
        yield _read_file(path)
    elif subject.isdecimal() and len(subject) <= _MOST_PID_DIGITS:
        yield from _read_pid(int(subject))
    else:
        found = list(_read_memories(_memories(), job=subject))
        if not found:
            raise CommandError(
                f"{subject!r} is neither a pid, nor a file or folder, nor the RINGLET_JOB_ID of a running process of "
                "this user"
            )
        yield from found


def list_jobs() -> int:
    """Print the running jobs of this user, one line each; return the exit status."""
    jobs: dict[str | int, dict[int, Process]] = {}
    for path in _memories():
        with contextlib.suppress(DataLossError):  # a job that uses another version of ringlet
            for shot in _read_memories([path]):
                if not shot.has_exited:
                    jobs.setdefault(shot.process.job or shot.process.pid, {})[shot.process.pid] = shot.process
    if not jobs:
        raise CommandError(
            "no running process of this user has a flight recorder: start a job without RINGLET_RECORDER=0"
        )
    rows: list[tuple[str, ...]] = [("job", "pid", "processes", "command")]
    for processes in jobs.values():
        pid = min(processes)
        command = " ".join(processes[pid].command.split())  # programs of `python -c` have several lines
        rows.append((processes[pid].job or "-", str(pid), str(len(processes)), command))
    print("\n".join(aligned(rows)))
    return 0


def _read_file(path: Path) -> Snapshot:
    process = read_process(path.read_bytes(), str(path))
    return Snapshot(process, path.stat().st_mtime - process.wall_minus_monotonic, None)


def _read_pid(pid: int) -> Iterator[Snapshot]:
    try:
        own = list(_memories_of(pid))
    except FileNotFoundError as error:
        raise CommandError(f"no process has the pid {pid}") from error
    except PermissionError as error:
        raise CommandError(
            f"process {pid} cannot be read: it belongs to another user, or denies access. Run the command as its user "
            "or as root"
        ) from error
    found = list(_read_memories(own))
    if not found:
        raise CommandError(
            f"process {pid} has no flight recorder: it has not created a group of ranks yet, was started with "
            "RINGLET_RECORDER=0, or does not use ringlet"
        )
    jobs = {shot.process.job for shot in found} - {""}
    yield from found
    for job in jobs:
        yield from _read_memories(_memories(), job=job)


def _memories() -> Iterator[str]:
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # the process belongs to another user, or has exited
            yield from _memories_of(int(folder.name))


def _memories_of(pid: int) -> Iterator[str]:
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the descriptor was closed in the meantime
            if str(link.readlink()).startswith(f"/memfd:{NAME}"):
                yield str(link)


def _read_memories(paths: Iterable[str], job: str | None = None) -> Iterator[Snapshot]:
    seen: set[int] = set()
    for path in paths:
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except FileNotFoundError:  # the process exited in the meantime
            continue
        try:
            inode = os.fstat(descriptor).st_ino
            # Launcher and worker share one memory file, which is empty until the worker creates its first group.
            if inode in seen or os.pread(descriptor, 1, 0) in (b"", b"\0"):
                continue
            seen.add(inode)
            process = read_process(copy_memory(descriptor, path), path)
        except DataLossError:
            if job is None:
                raise
            continue  # probably another job, which uses another version of ringlet
        finally:
            os.close(descriptor)
        if job is None or process.job == job:
            yield Snapshot(process, time.monotonic(), start_ticks(process.pid) != process.start_ticks)


# --- printing ---------------------------------------------------------------------------------------------------------


def _process_lines(snapshots: list[Snapshot]) -> Iterator[str]:
    calls = calls_by_group(shot.process for shot in snapshots)
    first, oldest = snapshots[0].process, min(shot.at for shot in snapshots)
    yield headline(len(snapshots), first.job, first.host, first.command)
    rows: list[tuple[str, ...]] = [("rank", "pid", "state")]
    for shot in snapshots:
        pid = f"{shot.process.pid}{' (exited)' if shot.has_exited else ''}"
        if not any(shot.process.threads):
            rows.append(("-", pid, "has made no call"))
        for thread in filter(None, shot.process.threads):
            # A thread may drive a rank of a group and ranks of its subgroups; the rank in the largest group is shown.
            rank = max(thread, key=lambda operation: operation.num_ranks).rank
            made = calls[thread[-1].group][thread[-1].sequence]
            rows.append((str(rank), pid, _state(thread[-1], shot, made, oldest)))
        if shot.process.num_half_written:
            rows.append(("", "", f"{shot.process.num_half_written} records were being written and are omitted"))
    rows[1:] = sorted(rows[1:], key=lambda row: (not row[0].isdecimal(), int(row[0]) if row[0].isdecimal() else 0))
    yield from aligned(rows)


def _state(last: Operation, shot: Snapshot, ranks: dict[int, Operation], oldest: float) -> str:
    call, place = f"call {last.sequence}, {last.text}", f", {last.place}" if last.place else ""
    if last.ended is not None:
        verb = ", which raised an error" if last.outcome == "raised" else ""
        return f"idle for {format_seconds(shot.at - last.ended)} after {call}{verb}{place}"
    missing = missing_ranks(last, ranks, oldest)
    waits = f", waits for {rank_ranges(missing)}" if missing else ""
    return f"for {format_seconds(shot.at - last.began)} in {call}{place}{waits}"


def missing_ranks(call: Operation, ranks: Iterable[int], oldest: float) -> list[int]:
    """Return the ranks for which a call in progress waits; `ranks` have made the call.

    The list is empty if the call began after `oldest`, the time of the oldest snapshot: ranks that had not made the
    call in their snapshots may have made it since.
    """
    if call.ended is not None or call.arrived is not None or call.began >= oldest:
        return []
    return sorted(set(range(call.num_ranks)).difference(ranks))


def _call_lines(snapshots: list[Snapshot], last: int) -> Iterator[str]:
    recent = {op.group for shot in snapshots for thread in shot.process.threads for op in thread[-last:]}
    groups = calls_by_group(shot.process for shot in snapshots)
    for group, calls in groups.items():
        if group not in recent:
            continue
        yield ""
        yield f"group {group[:8]}, {rank_ranges(list(range(next(iter(calls[max(calls)].values())).num_ranks)))}"
        rows: list[tuple[str, ...]] = [_COLUMNS]
        for sequence in sorted(calls)[-last:]:
            rows += _rows_of(sequence, calls[sequence])
        yield from aligned(rows)


def _rows_of(sequence: int, ranks: dict[int, Operation]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each set of equal calls."""
    same: dict[tuple[str, str], list[Operation]] = {}
    for _, operation in sorted(ranks.items()):
        same.setdefault((operation.text, operation.outcome), []).append(operation)
    latest = max(ranks.values(), key=lambda operation: operation.began)
    for (text, outcome), operations in same.items():
        times = [operation.ended - operation.began for operation in operations if operation.ended is not None]
        waits = [operation.arrived - operation.began for operation in operations if operation.arrived is not None]
        names = "all" if len(operations) == operations[0].num_ranks else rank_ranges([op.rank for op in operations])
        yield (
            str(sequence),
            names.partition(" ")[2] or names,
            outcome,
            format_seconds(max(times)) if times else "",
            format_seconds(max(waits)) if waits else "",
            f"rank {latest.rank}" if len(ranks) > 1 else "",
            text,
            "; ".join(dict.fromkeys(operation.place for operation in operations)),
        )


def headline(num_processes: int, job: str, host: str, command: str) -> str:
    """Return the first line of a report about a job."""
    count = "1 process" if num_processes == 1 else f"{num_processes} processes"
    return f"{count}{f' of job {job}' if job else ''} on {host}: {command}"


def aligned(rows: list[tuple[str, ...]]) -> Iterator[str]:
    """Yield the lines of a table with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _plain(shot: Snapshot, last: int) -> dict[str, object]:
    plain = asdict(shot.process) | {"at": shot.at, "has_exited": shot.has_exited}
    return plain | {"threads": [thread[-last:] for thread in plain["threads"]]}
