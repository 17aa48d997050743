"""Measures NumPy functions on tiled arrays, compared with untiled arrays and with JAX on eight host devices.

Run as ``python -m bench.sharding``; ``--environments FOLDER`` measures JAX beside it. ``bench/README.md`` defines the
columns.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path

from bench import harness, report
from bench.beside import alternate_beside
from bench.goals import Goal, at_least, at_most, in_spite_of, table, unless_disturbed
from bench.harness import Statistics, ratios
from bench.machine import describe_machine
from bench.peers.sharding_inputs import SPECS
from bench.sharding_peer import ShardingPeer, peer_title
from bench.sharding_programs import FUNCTIONS, PROGRAMS, small_questions, title_of_small
from bench.sharding_questions import COMPUTE_BOUND, MEMORY_BOUND, questions, title_of

__all__ = ["main"]

Answers = Mapping[str, Sequence[float]]

# Goals 26 to 29. Sizes from which an operation is large, and below which it is small.
_LARGE_BYTES, _SMALL_BYTES = 64 << 20, 64 << 10
_LEAST_GAIN, _MOST_LOSS, _MOST_SECONDS = 1.7, 1.1, 30e-6
_LEAST_BESIDE_JAX = {"large": 1.0, "small": 3.0}
# Goals 36 and 37, of small arrays.
_MOST_SECONDS_SMALL, _MOST_LOSS_SMALL = 60e-6, 4.0


def _times(value: float) -> str:
    return f"{value:.2f} x"


def _against_untiled(answers: Answers, name: str, size_bytes: int) -> list[Goal]:
    title = title_of(name, size_bytes, "tiled")
    untiled = answers.get(title_of(name, size_bytes, "untiled"))
    if untiled is None or size_bytes < _LARGE_BYTES:
        return []
    what = f"{name}, {harness.format_bytes(size_bytes)}"
    if name in COMPUTE_BOUND:
        gain = ratios(untiled, answers[title]).median
        return [at_least("26", f"untiled on one thread / tiled, {what}", _LEAST_GAIN, gain, _times)]
    if name in MEMORY_BOUND:
        loss = ratios(answers[title], untiled).median
        return [at_most("27", f"tiled / untiled, {what}", _MOST_LOSS, loss, _times)]
    return []


def _goals(answers: Answers, sizes: Sequence[int]) -> tuple[list[Goal], list[Goal]]:
    """Return goals on durations, which other load can only lengthen, and on ratios, which it can change either way."""
    absolute, relative = [], []
    for size in sizes:
        regime = "large" if size >= _LARGE_BYTES else "small" if size < _SMALL_BYTES else None
        for name in SPECS:
            title = title_of(name, size, "tiled")
            relative += _against_untiled(answers, name, size)
            if name == "add" and regime == "small":
                seconds = Statistics(tuple(answers[title])).median
                absolute.append(at_most("28", title, _MOST_SECONDS, seconds, report.format_seconds))
            theirs = answers.get(peer_title(title))
            if theirs is not None and regime is not None:
                gain = ratios(theirs, answers[title]).median
                relative.append(at_least("29", f"JAX / {title}", _LEAST_BESIDE_JAX[regime], gain, _times))
    return absolute, relative


def _small_goals(answers: Answers) -> tuple[list[Goal], list[Goal]]:
    medians = {name: Statistics(tuple(answers[title_of_small(name, "tiled")])).median for name in FUNCTIONS}
    losses = {
        name: ratios(answers[title_of_small(name, "tiled")], answers[title_of_small(name, "untiled")]).median
        for name in PROGRAMS
    }
    return [
        at_most("36", f"{name}, tiled", _MOST_SECONDS_SMALL, seconds, report.format_seconds)
        for name, seconds in medians.items()
    ], [at_most("37", f"tiled / untiled, {name}", _MOST_LOSS_SMALL, loss, _times) for name, loss in losses.items()]


def _row(title: str, seconds: Sequence[float], answers: Answers) -> list[str]:
    times = Statistics(tuple(seconds))
    tiled = title.removeprefix("JAX: ").rpartition(", ")[0].removesuffix(", tiled") + ", tiled"
    beside = "-" if tiled == title or tiled not in answers else _times(ratios(seconds, answers[tiled]).median)
    return [title, report.format_seconds(times.median), f"{times.spread:.0%}", beside]


def _measured(options: argparse.Namespace) -> tuple[dict[str, list[float]], float]:
    """Return the seconds of all subjects in every round, and the fraction of the cores' time used by others."""
    region, folder = options.milliseconds / 1e3, options.environments
    subjects: dict[str, Callable[[], float]] = {}
    with ShardingPeer(folder.resolve()) if folder else nullcontext() as peer:
        for size in options.bytes:
            for name in SPECS:
                for question in questions(name, size):
                    question.check()
                    subjects[question.title] = partial(question.measure, region)
                if peer:
                    subjects.update(peer.subjects(name, size, region))
        for name in (*FUNCTIONS, *PROGRAMS):
            for question in small_questions(name):
                question.check()
                subjects[question.title] = partial(question.measure, region)
        return alternate_beside(subjects, peer.cpu_seconds if peer else lambda: 0.0, rounds=options.rounds)


def main(arguments: Sequence[str] | None = None) -> int:
    """Check, measure in alternation, print the table and the goals, and write the requested files.

    Returns
    -------
    int
        0, even if a goal was missed. A wrong result raises an error.
    """
    parser = argparse.ArgumentParser(prog="python -m bench.sharding", description=__doc__)
    parser.add_argument("--bytes", type=harness.parse_sizes, default=[1 << 14, 64 << 20], help="such as 16KiB,64MiB")
    parser.add_argument("--rounds", type=int, default=7, help="of everything in alternation")
    parser.add_argument("--milliseconds", type=float, default=20.0, help="length of one timed region")
    parser.add_argument("--json", type=Path, help="file for every figure of every round")
    parser.add_argument("--environments", type=Path, help="folder with an environment of JAX, to measure it too")
    options = parser.parse_args(arguments)
    machine = describe_machine()
    print("\n".join(machine.lines()), "\n")
    answers, share = _measured(options)
    print(f"meanwhile other processes took {share:.0%} of the cores\n")
    absolute, relative = _goals(answers, options.bytes)
    small_absolute, small_relative = _small_goals(answers)
    reached = [in_spite_of(share, goal) for goal in absolute + small_absolute]
    reached += [unless_disturbed(share, goal) for goal in relative + small_relative]
    reached.sort(key=lambda goal: int(goal.number))
    rows = [_row(title, seconds, answers) for title, seconds in answers.items()]
    print(report.format_table(("what", "time", "spread", "times tiled"), rows), "\n\n" + table(reached), sep="")
    if options.json:
        report.write_json(options.json, {
            "benchmark": "sharding", "machine": machine.as_dict(), "others": share, "seconds": answers,
            "goals": [asdict(goal) for goal in reached],
        })  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
