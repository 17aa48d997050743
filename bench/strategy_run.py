"""Measures the overhead of a strategy: run, reduce, variables, datasets, tiles, import.

Run as ``python -m bench.strategy_run``; ``--environments FOLDER`` measures TensorFlow beside it. ``bench/README.md``
defines the columns.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path

from bench import harness, ranks, report
from bench.beside import alternate_beside
from bench.busy_loops import add_option, busy_loops
from bench.goals import Goal, at_most, in_spite_of, table, unless_disturbed
from bench.harness import Statistics
from bench.machine import describe_machine
from bench.strategy_peers import StrategyPeers, peer_goals, peer_rows
from bench.strategy_questions import questions

__all__ = ["main"]

Answers = Mapping[str, Sequence[float]]

# Goal 13: seconds of a run whose step function does nothing, by replicas.
_RUN_GOALS = {2: 10e-6, 4: 20e-6, 8: 40e-6}

# Goal 17: seconds with two replicas.
_CALL_GOALS = {"reduce of a scalar": 5e-6, "all_reduce of 100 leaves": 150e-6}

# What an import is timed of: what comes before it, and itself. Names of ringlet load on first use, so that the import
# alone would promise too much.
_IMPORTS = {
    "import numpy": ("", "import numpy"),
    "import ringlet, after numpy": ("import numpy", "import ringlet"),
    "import ringlet and all its names, after numpy": (
        "import numpy",
        "import ringlet; [getattr(ringlet, name) for name in dir(ringlet)]",
    ),
}


def _import_seconds(before: str, imports: str) -> float:
    """Return the seconds of `imports` in a separate interpreter."""
    script = f"import time\n{before}\nstart = time.perf_counter()\n{imports}\nprint(time.perf_counter() - start)"
    # With byte code, as an installed package has; the first import of a source tree writes it.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", script]
    finished = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return float(finished.stdout)


def _subjects(replica_counts: Sequence[int], region_seconds: float) -> dict[str, Callable[[], float]]:
    """Return all subjects to time by name, after checking the answer to each question."""
    asked = questions(replica_counts)
    for question in asked:
        question.check(question.call())
    subjects: dict[str, Callable[[], float]] = {}
    for name, (before, imports) in _IMPORTS.items():
        subjects[name] = partial(_import_seconds, before, imports)
    for count in replica_counts:
        subjects[f"GIL round P={count}"] = partial(ranks.gil_round_seconds, count, rounds=100, pin=False)
    for question in asked:
        subjects[question.title] = partial(question.measure, region_seconds)
    return subjects


def _median(seconds: Sequence[float]) -> float:
    return Statistics(tuple(seconds)).median


def _strategy_goals(answers: Answers, count: int) -> list[Goal]:
    goals = []
    no_op = answers[f"run, no-op P={count}"]
    if count in _RUN_GOALS:
        goals.append(
            at_most("13", f"run of a no-op, P={count}", _RUN_GOALS[count], _median(no_op), report.format_seconds)
        )
    reduced, hand_overs = answers[f"run, all_reduce of a float P={count}"], answers[f"GIL round P={count}"]
    added = [(a - b) / c for a, b, c in zip(reduced, no_op, hand_overs, strict=True)]
    name = f"all_reduce of a float inside run, P={count}"
    goals.append(at_most("13", name, 2.0, _median(added), lambda value: f"{value:.2f} GIL rounds"))
    for asked, limit in _CALL_GOALS.items() if count == 2 else ():
        reached = _median(answers[f"{asked} P={count}"])
        goals.append(at_most("17", f"{asked}, P={count}", limit, reached, report.format_seconds))
    batch = _median(answers[f"dataset, a global batch of 100 P={count}"])
    goals.append(at_most("14", f"global batch of 100, P={count}", 5e-6, batch, report.format_seconds))
    return goals


def _goals(answers: Answers, counts: Sequence[int]) -> list[Goal]:
    goals = [goal for count in counts for goal in _strategy_goals(answers, count)]
    for name, seconds in (
        ("tile views, 8x8 of a matrix", 10e-6),
        ("tile views, 256 MiB over 8 replicas", 20e-6),
        ("split, 1 GiB over 8 logical devices", 10e-6),
    ):
        goals.append(at_most("11", name, seconds, _median(answers[name]), report.format_seconds))
    name = "import ringlet and all its names, after numpy"
    goals.append(at_most("15", name, 0.06, _median(answers[name]), report.format_seconds))
    return sorted(goals, key=lambda goal: int(goal.number))


def _row(name: str, seconds: Sequence[float]) -> list[str]:
    times = Statistics(tuple(seconds))
    fastest, slowest = report.format_seconds(times.minimum), report.format_seconds(times.maximum)
    return [name, report.format_seconds(times.median), f"{times.spread:.0%}", fastest, slowest]


def _answers(options: argparse.Namespace) -> tuple[dict[str, list[float]], float]:
    """Return the seconds of all subjects in every round, and the fraction of the cores' time used by others."""
    region_seconds = options.milliseconds / 1e3
    subjects = _subjects(options.replicas, region_seconds)
    folder = options.environments
    with StrategyPeers(folder.resolve(), options.replicas) if folder else nullcontext() as peers:
        subjects.update(peers.subjects(region_seconds) if peers else {})
        with busy_loops(options.busy) as load_seconds:
            own_seconds = lambda: load_seconds() + (peers.cpu_seconds() if peers else 0.0)  # noqa: E731
            return alternate_beside(subjects, own_seconds, rounds=options.rounds)


def main(arguments: Sequence[str] | None = None) -> int:
    """Check, measure in alternation, print the table and the goals, and write the requested files.

    Returns
    -------
    int
        0, even if a goal was missed. A wrong result raises an error.
    """
    parser = argparse.ArgumentParser(prog="python -m bench.strategy_run", description=__doc__)
    parser.add_argument("--replicas", type=harness.parse_counts, default=[2, 4, 8], help="such as 2,4,8")
    parser.add_argument("--rounds", type=int, default=7, help="of everything in alternation")
    parser.add_argument("--milliseconds", type=float, default=20.0, help="length of one timed region")
    add_option(parser)
    parser.add_argument("--json", type=Path, help="file for every figure of every round")
    parser.add_argument("--environments", type=Path, help="folder with an environment of TensorFlow, to measure it too")
    options = parser.parse_args(arguments)
    machine = describe_machine()
    print("\n".join(machine.lines()), "\n")
    answers, share = _answers(options)
    beside_loops = f"busy loops beside the replicas: {options.busy}; " if options.busy else ""
    print(f"{beside_loops}meanwhile other processes took {share:.0%} of the cores\n")
    reached = [in_spite_of(share, goal) for goal in _goals(answers, options.replicas)]
    reached += [unless_disturbed(share, goal) for goal in peer_goals(answers)]
    rows = [_row(name, seconds) for name, seconds in answers.items()]
    beside = peer_rows(answers)
    print(beside + "\n\n" if beside else "", end="")
    print(report.format_table(("what", "time", "spread", "fastest", "slowest"), rows), "\n\n" + table(reached), sep="")
    if options.json:
        report.write_json(options.json, {
            "benchmark": "strategy_run", "machine": machine.as_dict(), "busy": options.busy, "others": share,
            "seconds": answers, "goals": [asdict(goal) for goal in reached],
        })  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
