"""Measures pushes, pulls and functions on workers: ringlet's parameter server, beside Ray, Dask and TensorFlow.

Run as ``python -m bench.parameter_server``; ``--environments FOLDER`` measures the peers. ``bench/README.md`` defines
the columns.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from bench import report
from bench.beside import alternate_beside
from bench.goals import Goal, at_least, at_most, in_spite_of, table, unless_disturbed
from bench.harness import Statistics, ratios
from bench.machine import describe_machine
from bench.parameter_server_peers import PEERS, ParameterServerPeers, title_of

__all__ = ["main"]

Answers = Mapping[str, Sequence[float]]

# Goals 30 to 33: seconds that each question may take, and how many times as long the peers take at least.
_MOST_SECONDS = {
    "push and pull 4 MiB": ("30", 2e-3),
    "1,000 empty closures": ("31", 0.1),
    "sparse update of 1,000 rows": ("32", 200e-6),
}
_LEAST_RATIO = 10.0


def _times(value: float) -> str:
    return f"{value:.1f} x"


def _goals(answers: Answers) -> tuple[list[Goal], list[Goal]]:
    """Return goals on durations, which other load can only lengthen, and on ratios, which it can change either way."""
    absolute, relative = [], []
    for question, (number, limit) in _MOST_SECONDS.items():
        ours = answers[title_of(question, "ringlet")]
        seconds = Statistics(tuple(ours)).median
        absolute.append(at_most(number, question, limit, seconds, report.format_seconds))
        for peer in PEERS:
            theirs = answers.get(title_of(question, peer))
            if theirs is not None:
                gain = ratios(theirs, ours).median
                relative.append(at_least("33", f"{peer} / ringlet, {question}", _LEAST_RATIO, gain, _times))
    return absolute, relative


def _row(title: str, seconds: Sequence[float], answers: Answers) -> list[str]:
    who, _, question = title.partition(": ")
    times = Statistics(tuple(seconds))
    beside = "-" if who == "ringlet" else _times(ratios(seconds, answers[title_of(question, "ringlet")]).median)
    return [question, who, report.format_seconds(times.median), f"{times.spread:.0%}", beside]


def _names(text: str) -> list[str]:
    known = {name.lower(): name for name in PEERS}
    names = [word.strip().lower() for word in text.split(",")]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise argparse.ArgumentTypeError(f"there is no peer {', '.join(unknown)}: choose from {', '.join(PEERS)}")
    return [known[name] for name in names]


def main(arguments: Sequence[str] | None = None) -> int:
    """Check, measure in alternation, print the table and the goals, and write the requested files.

    Returns
    -------
    int
        0, even if a goal was missed. A wrong result raises an error.
    """
    parser = argparse.ArgumentParser(prog="python -m bench.parameter_server", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="of everything in alternation")
    parser.add_argument("--milliseconds", type=float, default=50.0, help="length of one timed region")
    parser.add_argument("--json", type=Path, help="file for every figure of every round")
    parser.add_argument("--environments", type=Path, help="folder with environments of the peers, to measure them too")
    parser.add_argument("--peers", type=_names, default=list(PEERS), help="default: ray,dask,tensorflow")
    options = parser.parse_args(arguments)
    machine = describe_machine()
    print("\n".join(machine.lines()), "\n")
    with ParameterServerPeers(options.environments and options.environments.resolve(), options.peers) as peers:
        versions = peers.versions
        print("\n".join(versions.values()), "\n")
        subjects = peers.subjects(options.milliseconds / 1e3)
        answers, share = alternate_beside(subjects, peers.cpu_seconds, rounds=options.rounds)
    print(f"meanwhile other processes took {share:.0%} of the cores\n")
    absolute, relative = _goals(answers)
    reached = [in_spite_of(share, goal) for goal in absolute] + [unless_disturbed(share, goal) for goal in relative]
    rows = [_row(title, seconds, answers) for title, seconds in answers.items()]
    print(
        report.format_table(("what", "who", "time", "spread", "times ringlet"), rows), "\n\n" + table(reached), sep=""
    )
    if options.json:
        report.write_json(options.json, {
            "benchmark": "parameter_server", "machine": machine.as_dict(), "versions": versions, "others": share,
            "seconds": answers, "goals": [asdict(goal) for goal in reached],
        })  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
