"""Measures ringlet, between threads and between processes, beside MPI, gloo, JAX, TensorFlow and NumPy, in alternation.

Run as ``python -m bench.compare --ranks 2,4,8 --bytes 8B:64MiB``, after ``python -m bench.environments``, which
creates the environments of the peers; ``bench/README.md`` describes each measurement.
"""

from __future__ import annotations

import argparse
import shlex
import signal
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from bench import command, goals, harness, limits, native, report
from bench.busy_loops import add_option, busy_loops
from bench.collective_results import CollectiveResult
from bench.compare_goals import PeerGoal, goal_rows, in_order, peer_goals
from bench.compare_measure import CellMeasurement, memory_needed_bytes
from bench.compare_results import Measured
from bench.compare_tables import (
    Section,
    as_markdown,
    as_text,
    disturbance_section,
    panels,
    ratio_sections,
    time_sections,
)
from bench.environments import DEFAULT_FOLDER, ENVIRONMENTS
from bench.machine import Machine, describe_machine, usable_cores
from bench.peer_process import PeerProcess
from bench.peer_table import DEFAULT_PEERS, OWN_PROCESSES, PEERS, PeerKind, missing_environments
from bench.peer_team import Failure, PeerTeam
from bench.results import Cell, Result

__all__ = ["chosen_peers", "main"]

_COLLECTIVES = ("all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all")

# What all peers can sum.
_DTYPES = ("float32", "float64", "int32", "int64")

# Whether ringlet has groups of processes here.
_HAS_PROCESSES = sys.platform == "linux"

# Part of the free memory that a cell may take.
_MOST_MEMORY = 0.7


def chosen_peers(wanted: Sequence[str] | None, folder: Path) -> list[str]:
    """Return the peers to measure: the requested ones, or all whose environments are ready.

    Parameters
    ----------
    wanted : sequence of str, optional
        Names of peers, all of which must be ready.
    folder : Path
        Folder of the environments.

    Raises
    ------
    FileNotFoundError
        If a requested or required environment is missing.
    """
    missing = missing_environments(folder, wanted or DEFAULT_PEERS)
    needed = [name for name in missing if wanted or ENVIRONMENTS[name].is_required]
    if needed:
        command = f"python -m bench.environments {' '.join(needed)}"
        where = "" if folder == DEFAULT_FOLDER else f" --into {folder}"
        raise FileNotFoundError(
            f"no environment for {', '.join(needed)} below {folder}. Make what is missing with: {command}{where}"
        )
    return [name for name in wanted or DEFAULT_PEERS if PEERS[name].environment not in missing]


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = command.sweep_parser("compare", __doc__, ranks="2,4,8", sizes="8B:64MiB")
    parser.add_argument("--collectives", type=command.words(_COLLECTIVES), default=list(_COLLECTIVES))
    parser.add_argument(
        "--peers", type=command.words(tuple(PEERS)), help=f"of {', '.join(PEERS)}; default: those ready"
    )
    parser.add_argument(
        "--processes", action=argparse.BooleanOptionalAction, default=_HAS_PROCESSES,
        help="measure ringlet between processes, too, which needs Linux",
    )  # fmt: skip
    parser.add_argument(
        "--unpinned", action="store_true", help="leave Python ranks and peers where the system puts them"
    )
    add_option(parser)
    parser.add_argument("--environments", type=Path, default=DEFAULT_FOLDER, help="folder with the peers' environments")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds that a peer may take for one answer")
    parser.add_argument("--markdown", type=Path, help="file for the tables, as a document")
    parser.add_argument("--plot", type=Path, help="file for a figure of time over size")
    options = command.parse(parser, arguments)
    options.environments = options.environments.resolve()
    if (options.dtype, options.op) not in [(dtype, "SUM") for dtype in _DTYPES]:
        parser.error(f"peers are asked for sums of {', '.join(_DTYPES)}, not for {options.op} of {options.dtype}.")
    if options.processes and not _HAS_PROCESSES:
        parser.error(f"groups of processes need Linux, and this is {sys.platform}: leave --processes out.")
    if min(options.ranks) < 2:
        parser.error("there is nothing to compare with a single rank: give --ranks of at least 2.")
    return options


class _Comparison:
    """All cells of a run, and their results."""

    def __init__(self, options: argparse.Namespace, peers: Sequence[str]) -> None:
        self._options = options
        self._jobs: dict[str, PeerKind] = {
            **(OWN_PROCESSES if options.processes else {}), **{name: PEERS[name] for name in peers},
        }  # fmt: skip
        self._programs = native.build()
        self._probe = limits.Probe(self._programs.limits)
        self._latencies = self._probe.latencies()
        self.measured: list[Measured] = []
        self.results: list[Result] = []
        self.failures: list[Failure] = []
        self.versions: dict[str, str] = {}
        self.idle_shares: dict[int, float] = {}

    def run(self) -> None:
        for num_ranks in self._options.ranks:
            folder, pin = self._options.environments, not self._options.unpinned
            starters = {name: partial(_start, kind, folder, num_ranks, pin) for name, kind in self._jobs.items()}
            print(f"{num_ranks} ranks: starting {'; '.join(self._jobs)} ...", file=sys.stderr, flush=True)
            with PeerTeam(starters, num_ranks, answer_seconds=self._options.timeout) as team:
                self.versions.update(team.versions)
                with busy_loops(self._options.busy) as load_seconds:
                    for size in self._options.bytes:
                        self._measure(team, num_ranks, size, load_seconds)
                self.failures += team.failures
                self.idle_shares[num_ranks] = team.idle_share()
        collectives, variants = self._options.collectives, ("in_place", "out", "shared")
        self.measured.sort(
            key=lambda one: (
                one.task.num_ranks, collectives.index(one.task.collective), variants.index(one.task.variant),
            )
        )  # fmt: skip

    def _measure(self, team: PeerTeam, num_ranks: int, size: int, load_seconds: Callable[[], float]) -> None:
        name = f"{num_ranks} ranks, {harness.format_bytes(size)}"
        budget = _MOST_MEMORY * harness.available_memory_bytes()
        if memory_needed_bytes(num_ranks, size, 1) > budget:
            print(f"{name}: left out, it needs too much of the free memory", file=sys.stderr)
            return
        print(f"{name} ...", end="", file=sys.stderr, flush=True)
        start = time.perf_counter()
        options = self._options
        cell = CellMeasurement(
            team, self._programs, self._probe,
            floor=limits.latency_floor(num_ranks, len(usable_cores()), self._latencies),
            collectives=options.collectives, region_seconds=options.milliseconds / 1e3, rounds=options.rounds,
            keep=memory_needed_bytes(num_ranks, size, len(self._jobs)) <= budget,
            pin=not options.unpinned, load_seconds=load_seconds,
        )  # fmt: skip
        measured, results = cell.measure(Cell(num_ranks, size, options.dtype, "SUM"))
        print(f" {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
        self.measured += measured
        self.results += results

    def goals(self) -> list[PeerGoal]:
        others = [result for result in self.results if isinstance(result, CollectiveResult)]
        all_reduces = [result for result in self.results if not isinstance(result, CollectiveResult)]
        against_limits = [*goals.all_reduce_goals(all_reduces), *goals.collective_goals(others)]
        against_peers = peer_goals(self.measured) if self._options.dtype == "float32" else []
        return in_order([*map(PeerGoal, against_limits), *against_peers])


def _start(kind: PeerKind, folder: Path, num_ranks: int, pin: bool) -> PeerProcess:
    settings = kind.environment_variables(num_ranks)
    return PeerProcess(kind.command(folder, num_ranks), num_ranks, settings, pin=pin)


def _sections(comparison: _Comparison, reached: Sequence[PeerGoal]) -> list[Section]:
    families = {name: kind.family for name, kind in {**OWN_PROCESSES, **PEERS}.items()}
    versions = [[name, families[name], version] for name, version in comparison.versions.items()]
    idle = ", ".join(f"{share:.1%} at P={ranks}" for ranks, share in comparison.idle_shares.items())
    said = f"Part of one core that all of them together took while they were not asked: {idle}."
    sections = [
        Section("Goals", ("goal", "what", "wanted", "reached", "best peer", "verdict"), goal_rows(reached)),
        Section("Peers", ("peer", "family", "version"), versions, said),
    ]
    if comparison.failures:
        rows = [[one.peer, str(one.num_ranks), one.what, one.reason, _first_line(one)] for one in comparison.failures]
        sections.append(Section("Times that there are not", ("peer", "ranks", "asked", "reason", "message"), rows))
    sections.append(disturbance_section(comparison.measured))
    return [*sections, *time_sections(comparison.measured), *ratio_sections(comparison.measured)]


def _first_line(failure: Failure) -> str:
    lines = failure.message.splitlines()
    return lines[0] if len(lines) == 1 else f"{lines[0]} {lines[-1].strip()}"


def _command(options: argparse.Namespace) -> str:
    """Return the command line that repeats the measurement, without paths."""
    told = {
        "ranks": ",".join(map(str, options.ranks)),
        "bytes": ",".join(harness.format_bytes(size).replace(" ", "") for size in options.bytes),
        "dtype": options.dtype, "collectives": ",".join(options.collectives),
        **({"peers": ",".join(options.peers)} if options.peers else {}),
        "rounds": str(options.rounds), "milliseconds": f"{options.milliseconds:g}",
        **({"busy": str(options.busy)} if options.busy else {}),
    }  # fmt: skip
    words = ["python", "-m", "bench.compare", *(word for key in told for word in (f"--{key}", told[key]))]
    words += ["--unpinned"] * options.unpinned
    return shlex.join(words if options.processes or not _HAS_PROCESSES else [*words, "--no-processes"])


def _document(machine: Machine, command: str, sections: Sequence[Section]) -> str:
    lines = ["# ringlet and its peers", "", "Columns, peers and goals are explained in `bench/README.md`.", "",
             f"    {command}", "", *(f"    {line}" for line in machine.lines()), ""]  # fmt: skip
    return "\n".join([*lines, as_markdown(sections), "", "[Back to the index](../index.md)", ""])


def _end_in_order(signal_number: int, _: object) -> None:
    # As an exception, so that the peers are ended first.
    sys.exit(128 + signal_number)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the tables and the goals, and write the requested files.

    Returns
    -------
    int
        0, even if a goal was missed; 2 if environments are missing. A wrong result of ringlet raises an error.
    """
    options = _parse(arguments)
    try:
        peers = chosen_peers(options.peers, options.environments)
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 2
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end_in_order)
    machine = describe_machine()
    print(*machine.lines(), "", sep="\n")
    comparison = _Comparison(options, peers)
    comparison.run()
    reached = comparison.goals()
    sections = _sections(comparison, reached)
    print(as_text(sections))
    if options.json:
        report.write_json(options.json, {
            "benchmark": "compare", "command": _command(options), "machine": machine.as_dict(),
            "peers": comparison.versions, "idle_shares": comparison.idle_shares,
            "failures": [failure.as_dict() for failure in comparison.failures],
            "measured": [one.as_dict() for one in comparison.measured], "goals": [goal.as_dict() for goal in reached],
        })  # fmt: skip
    if options.markdown:
        options.markdown.parent.mkdir(parents=True, exist_ok=True)
        options.markdown.write_text(_document(machine, _command(options), sections), encoding="utf-8")
    if options.plot:
        title = f"ringlet and its peers, {options.dtype}, {machine.cpu}, {machine.cores} cores, {machine.commit}"
        report.write_figure(
            options.plot, panels(comparison.measured), columns=3, y_label="time / least possible time", title=title
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
