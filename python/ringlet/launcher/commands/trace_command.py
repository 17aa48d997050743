"""``ringlet trace``: merge the timelines of a job, and show where its time went."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from ringlet.errors import DataLossError
from ringlet.launcher.command_line import CommandError
from ringlet.launcher.commands.inspect_command import aligned, headline
from ringlet.observe.divergence import rank_ranges
from ringlet.observe.trace_file import SUFFIX, VERSION
from ringlet.observe.trace_summary import RankTime, TraceSummary
from ringlet.tpu.units import format_seconds

_EPILOG = """\
examples:
  RINGLET_TRACE=traces ringlet run -n 4 train.py
  ringlet trace traces                        where the time went
  ringlet trace traces --output job.json      all ranks in one timeline

The timeline is for https://ui.perfetto.dev and chrome://tracing. In a folder,
the newest job is read, and files that are not traces are skipped. The exit
status is 2 if nothing can be read, else 0.
"""


# Longest assumed pause between two writes of a running process, which writes only when it has events.
_LONGEST_GAP_SECONDS = 10


class _File(NamedTuple):
    path: Path
    about: dict[str, Any]

    @property
    def began(self) -> float:
        """Wall-clock time at which the trace began, in microseconds."""
        return float(self.about["began"] + self.about["wall_minus_monotonic"])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to `parser`."""
    parser.epilog = _EPILOG
    parser.add_argument("subjects", metavar="DIR|FILE", nargs="+", help="folders with traces, or their files")
    parser.add_argument("--output", metavar="FILE", help="write all ranks into one timeline")
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")


def execute(options: argparse.Namespace) -> int:
    """Print where the time went, and write the timeline if requested; return the exit status."""
    try:
        files = [file for subject in options.subjects for file in _find(Path(subject))]
        summary, open_files = _merge(files, options.output)
    except OSError as error:
        raise CommandError(str(error)) from error
    ranks, (total, hidden) = summary.ranks(), summary.asynchronous()
    late = _waited_for(ranks)
    if options.json:
        report = {
            "processes": [{"file": str(file.path), **file.about} for file in files],
            "ranks": [asdict(rank) for rank in ranks],
            "slowest_rank": late[0] if late else None,
            "asynchronous": {"seconds": total, "overlapped": hidden},
            "lost": summary.num_lost,
            "open_files": open_files,
        }
        print(json.dumps(report))
        return 0
    print("\n".join(_lines(files, ranks)))
    if late:
        print(f"the others waited longest for rank {late[0]}: {format_seconds(late[1])} in total")
    if total:
        took = format_seconds(total)
        print(f"asynchronous calls took {took}, {hidden / total:.0%} of which overlapped with the program")
    if summary.num_lost:
        print(f"{summary.num_lost} events are missing, because there were too many to write")
    if open_files:
        print(f"{open_files} of {len(files)} files are incomplete: their processes are running, or were killed")
    if options.output:
        print(f"wrote {options.output}: open it at https://ui.perfetto.dev")
    return 0


# --- reading ----------------------------------------------------------------------------------------------------------


def _find(path: Path) -> list[_File]:
    """Return the trace in a file, or the traces of the newest job in a folder."""
    if not path.is_dir():
        return [_File(path, _about(path))]
    files = []
    for name in sorted(path.glob("*" + SUFFIX)):
        try:
            files.append(_File(name, _about(name)))
        except DataLossError as error:
            _note(f"skipped {error}")
    if not files:
        raise CommandError(f"{path} contains no *{SUFFIX} files. Run a job with RINGLET_TRACE={path} to write them")
    files.sort(key=lambda file: file.began)
    job, newest, end = files[-1].about["job"], list[_File](), 0.0
    for file in files:
        if file.about["job"] != job:
            continue
        if not job and file.began > end:  # without a job id, processes that run at the same time form a job
            newest.clear()
        newest.append(file)
        end = max(end, file.path.stat().st_mtime_ns / 1e3 + _LONGEST_GAP_SECONDS * 1e6)
    if len(newest) < len(files):
        _note(f"skipped {len(files) - len(newest)} files of earlier jobs in {path}")
    return newest


def _about(path: Path) -> dict[str, Any]:
    """Return the arguments of the first event of a trace, which describe its process."""
    with path.open(encoding="utf-8", errors="replace") as file:
        first, second = file.readline(), file.readline()
    if not first:
        raise DataLossError(f"{path}: the file is empty", str(path))
    event = _parsed(second) if first == "[\n" else None
    if event is None or event.get("name") != "ringlet" or event.get("ph") != "M":
        raise DataLossError(f"{path}: the file is not a trace written with RINGLET_TRACE", str(path))
    about: dict[str, Any] = event.get("args", {})
    if about.get("version") != VERSION:
        raise DataLossError(
            f"{path}: the trace has version {about.get('version')}, but this installation reads version {VERSION}: use "
            "the version of ringlet that wrote it",
            str(path),
        )
    return about


def _parsed(line: str) -> dict[str, Any] | None:
    try:
        event = json.loads(line.rstrip(",\n"))
    except ValueError:
        return None
    return event if isinstance(event, dict) else None


def _events(path: Path) -> Iterator[dict[str, Any] | None]:
    """Yield the events of a trace, and None at its closing bracket; the last line may be half-written."""
    damaged = 0
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            if damaged:
                raise DataLossError(f"{path} is damaged at line {damaged}", str(path))
            if line == "]\n":
                yield None
            elif line != "[\n":
                event = _parsed(line)
                if event is None:
                    damaged = number
                else:
                    yield event


# --- merging ----------------------------------------------------------------------------------------------------------


def _merge(files: list[_File], output: str | None) -> tuple[TraceSummary, int]:
    """Add up the events of all files, and write them to `output` if given, with times on one clock.

    Return the summary, and the number of files without a closing bracket.
    """
    # The processes of a host share a monotonic clock, whose offset to the wall clock is taken from the first process.
    offsets: dict[str, float] = {}
    for file in sorted(files, key=lambda file: file.began):
        offsets.setdefault(file.about["host"], file.about["wall_minus_monotonic"])
    base = min(file.about["began"] + offsets[file.about["host"]] for file in files)
    summary, num_open = TraceSummary(), 0
    with ExitStack() as stack:
        merged = stack.enter_context(Path(output).open("w", encoding="utf-8")) if output else None
        separator = "[\n"
        for process, (path, about) in enumerate(files):
            shift = offsets[about["host"]] - base
            summary.begin(process, about["began"] + shift)
            has_ended, ranks = False, set()
            for event in _events(path):
                if event is None:
                    has_ended = True
                    continue
                if "ts" in event:
                    event["ts"] += shift
                if event.get("cat") in ("replica", "collective") and "args" in event:
                    ranks.add(event["args"].get("rank", event["tid"] - 1))
                try:
                    summary.add(process, event)
                except (KeyError, TypeError) as error:
                    what = "lacks" if isinstance(error, KeyError) else "has a value of the wrong type:"
                    raise DataLossError(f"{path} is damaged: an event {what} {error}", str(path)) from error
                if merged and event["name" if "name" in event else "ph"] not in ("ringlet", "process_name"):
                    merged.write(separator + _text(event | {"pid": process + 1}))
                    separator = ",\n"
            num_open += not has_ended
            if merged:
                name = f"{about['host']} {rank_ranges(sorted(ranks)) if ranks else ''} ({about['pid']})"
                for kind, args in (
                    ("process_name", {"name": name}),
                    ("process_sort_index", {"sort_index": min(ranks, default=0)}),
                ):
                    merged.write(
                        separator + _text({"ph": "M", "pid": process + 1, "tid": 0, "name": kind, "args": args})
                    )
                    separator = ",\n"
        if merged:
            merged.write("\n]\n")
    summary.end()
    return summary, num_open


def _text(event: dict[str, Any]) -> str:
    if "ts" in event:
        event["ts"] = round(event["ts"], 3)
    return json.dumps(event, separators=(",", ":"))


# --- printing ---------------------------------------------------------------------------------------------------------


def _lines(files: list[_File], ranks: list[RankTime]) -> Iterator[str]:
    first, hosts = files[0].about, sorted({file.about["host"] for file in files})
    yield headline(len(files), first["job"], ", ".join(hosts), first["command"])
    rows: list[tuple[str, ...]] = [
        ("rank", "pid", "time", "compute", "communication", "waiting", "input", "calls", "bytes", "waits mostly for")
    ]
    for rank in ranks:
        about, late = files[rank.process].about, max(rank.waits_for.items(), key=lambda item: item[1], default=None)
        parts = [rank.compute, rank.communication, rank.waiting, rank.input]
        rows.append(
            (
                str(rank.rank),
                f"{about['host']} {about['pid']}" if len(hosts) > 1 else str(about["pid"]),
                format_seconds(rank.seconds),
                *(f"{part / rank.seconds:.1%}" if rank.seconds else "" for part in parts),
                f"{rank.num_calls:,}",
                f"{rank.num_bytes:,}",
                f"rank {late[0]} ({late[1] / rank.waiting:.0%})" if late and rank.waiting else "",
            )
        )
    if len(rows) == 1:
        yield "no rank has made a call"
    else:
        yield from aligned(rows)


def _waited_for(ranks: list[RankTime]) -> tuple[int, float] | None:
    """Return the rank for which other ranks waited longest, and their total waiting time; None if no rank waited."""
    totals: dict[int, float] = {}
    for rank in ranks:
        for late, seconds in rank.waits_for.items():
            totals[late] = totals.get(late, 0.0) + seconds
    return max(totals.items(), key=lambda item: item[1], default=None)


def _note(text: str) -> None:
    print(f"ringlet trace: {text}", file=sys.stderr)
