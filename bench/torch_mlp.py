"""Measures the steps per second of training a PyTorch model, with ringlet and with DistributedDataParallel over gloo.

Run as ``python -m bench.torch_mlp``; ``bench/README.md`` defines the columns. It needs torch and scikit-learn in
the environment of ringlet.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np

from bench import harness, report
from bench.beside import alternate_beside
from bench.goals import Goal, at_least, table
from bench.harness import Statistics, ratios
from bench.machine import describe_machine
from bench.reference import WrongAnswerError
from bench.training_team import TrainingTeam

__all__ = ["main"]

# Goal 25: steps per second, as a multiple of gloo's.
_GOAL = 1.3
_CHECKED_STEPS = 5
# Both take the mean of the same gradients: only the order of a few roundings may differ.
_TOLERANCE = 1e-5


def _environments(trainer: str, num_workers: int) -> list[dict[str, str]]:
    """Return, for each process, the variables for its rendezvous, with one thread per linear algebra library."""
    port = _free_port()
    addresses = [f"localhost:{number}" for number in range(1, num_workers + 1)]
    threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    found = []
    for worker in range(num_workers):
        cluster = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": worker}}
        gloo = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(num_workers)}
        mine = {"TF_CONFIG": json.dumps(cluster), "RINGLET_JOB_ID": f"bench {trainer} {os.getpid()}"}
        found.append({**threads, **gloo, "RANK": str(worker), **mine})
    return found


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _subjects(options: argparse.Namespace) -> list[str]:
    return ["ringlet", *[f"gloo, {size} MB" for size in options.buckets], *([] if options.small else ["alone"])]


def _start(name: str, options: argparse.Namespace) -> TrainingTeam:
    trainer, _, bucket = name.partition(", ")
    arguments = ["bench.torch_mlp_rank", "--trainer", trainer, "--batch", str(options.batch)]
    if bucket:
        arguments += ["--bucket", bucket.split()[0]]
    if options.hidden is not None:
        arguments += ["--hidden", str(options.hidden)]
    return TrainingTeam(arguments, _environments(trainer, options.workers))


def _check(teams: Mapping[str, TrainingTeam], folder: Path) -> int:
    """Train a few steps with all teams that exchange gradients, and compare the parameters; return their number.

    Raises
    ------
    WrongAnswerError
        If the parameters differ between teams, or in any bit between the workers of a team.
    """
    learned: dict[str, np.ndarray] = {}
    for number, name in enumerate(name for name in teams if name != "alone"):
        path = folder / f"{number}.npy"
        answers = teams[name].ask({"steps": _CHECKED_STEPS, "save": str(path)})
        if len({answer["digest"] for answer in answers}) > 1:
            raise WrongAnswerError(f"after {_CHECKED_STEPS} steps the workers of {name} hold different parameters")
        learned[name] = np.load(path)
        difference = float(np.abs(learned["ringlet"] - learned[name]).max())
        if not difference <= _TOLERANCE:
            raise WrongAnswerError(
                f"after {_CHECKED_STEPS} steps a parameter differs by {difference:g} between ringlet and {name}"
            )
    return int(learned["ringlet"].size)


def _seconds_per_step(team: TrainingTeam, steps: int) -> float:
    return max(answer["seconds"] for answer in team.ask({"steps": steps})) / steps


def _best_gloo(seconds: dict[str, list[float]]) -> list[float]:
    """Return the times of gloo's fastest bucket size."""
    gloo = [values for name, values in seconds.items() if name.startswith("gloo")]
    return min(gloo, key=lambda values: Statistics(tuple(values)).median)


def _rows(seconds: dict[str, list[float]]) -> Iterator[list[str]]:
    best = _best_gloo(seconds)
    for name, values in seconds.items():
        times = Statistics(tuple(values))
        part = f"{ratios(best, values).median:.2f}"
        yield [name, report.format_seconds(times.median), f"{times.spread:.0%}", f"{1 / times.median:.1f}", part]


def _goals(seconds: dict[str, list[float]]) -> list[Goal]:
    reached = ratios(_best_gloo(seconds), seconds["ringlet"]).median
    return [at_least("25", "steps per second of ringlet / of the best gloo", _GOAL, reached, "{:.2f}".format)]


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.torch_mlp", description=__doc__)
    parser.add_argument("--workers", type=int, default=2, help="processes, of one thread each")
    parser.add_argument("--batch", type=int, default=32, help="rows of all workers together")
    parser.add_argument("--hidden", type=int, help="units of each hidden layer, for a smaller model")
    parser.add_argument(
        "--buckets", type=harness.parse_counts, default=[5, 25, 100], help="of DistributedDataParallel, in MB"
    )
    parser.add_argument("--steps", type=int, default=10, help="in a row, of each in each round")
    parser.add_argument("--rounds", type=int, default=15, help="of everything in alternation")
    parser.add_argument("--small", action="store_true", help="a small model, two rounds: that it runs")
    parser.add_argument("--json", type=Path, help="file for every figure of every round")
    options = parser.parse_args(arguments)
    if options.small:
        options.hidden, options.steps, options.rounds, options.buckets = 64, 2, 2, [25]
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Check, measure in alternation, print the table and the goal, and write the requested files.

    Returns
    -------
    int
        0, even if a goal was missed. A wrong result raises an error.
    """
    options = _parse(arguments)
    machine = describe_machine()
    print("\n".join(machine.lines()), "\n")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        teams = {name: stack.enter_context(_start(name, options)) for name in _subjects(options)}
        count = _check(teams, folder)
        subjects: dict[str, Callable[[], float]] = {
            name: partial(_seconds_per_step, team, options.steps) for name, team in teams.items()
        }
        seconds, share = alternate_beside(
            subjects, lambda: sum(team.cpu_seconds() for team in teams.values()), rounds=options.rounds
        )
    print(f"{count:,} parameters, {options.workers} workers, {options.batch // options.workers} rows each")
    print(f"meanwhile other processes took {share:.0%} of the cores\n")
    columns = ("by", "a step", "spread", "steps/s", "steps/s / best gloo")
    goals = _goals(seconds)
    print(report.format_table(columns, list(_rows(seconds))), "\n\n" + table(goals), sep="")
    if options.json:
        report.write_json(options.json, {
            "benchmark": "torch_mlp", "machine": machine.as_dict(), "others": share, "seconds": seconds,
            "parameters": count, "goals": [asdict(goal) for goal in goals],
        })  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
