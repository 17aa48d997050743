"""Measures the cost of datasets: shuffled batches of arrays, their distribution, records of files, and memory.

Run as ``python -m bench.datasets``; ``--environments FOLDER`` measures tf.data and PyTorch's DataLoader beside it.
``bench/README.md`` defines the columns.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path

from bench import harness, report
from bench.beside import alternate_beside
from bench.dataset_memory import MemoryUse, memory_over
from bench.dataset_peers import PEERS, DatasetPeers, peer_title
from bench.dataset_questions import (
    FULL,
    RANGE,
    RECORDS,
    SHUFFLED,
    SMALL,
    Sizes,
    numpy_title,
    questions,
    split_title,
    write_records,
)
from bench.goals import Goal, at_least, at_most, in_spite_of, table, unless_disturbed
from bench.harness import Statistics, ratios
from bench.machine import describe_machine

__all__ = ["main"]

Answers = Mapping[str, Sequence[float]]

# Goals 19 to 23.
_MOST_TIMES_NUMPY, _LEAST_TIMES_PEER, _MOST_SPLIT, _MORE_BYTES = 1.5, 10.0, 1.5, 64 << 20

# What goal 20 holds ringlet against: the way in which each is documented and used.
_USUAL = {"tf.data": "distributed", "DataLoader": "usual"}


def _times(value: float) -> str:
    return f"{value:.2f} x"


def _goals(answers: Answers, counts: Sequence[int], sizes: Sizes, memory: MemoryUse) -> tuple[list[Goal], list[Goal]]:
    """Durations and bytes, which others can only have lengthened; and ratios, which they can have changed."""
    absolute, relative = [], []
    for count in counts:
        title = f"{SHUFFLED} P={count}"
        ratio = ratios(answers[title], answers[numpy_title(title)]).median
        relative.append(at_most("19", f"ringlet / NumPy loop, {title}", _MOST_TIMES_NUMPY, ratio, _times))
        batch = Statistics(tuple(answers[f"{RANGE} P={count}"])).median
        absolute.append(
            at_most("14", f"global batch of {sizes.batch} of a range, P={count}", 5e-6, batch, report.format_seconds)
        )
        for peer in _USUAL.items():
            for asked in (title, f"{RANGE} P={count}"):
                relative += _peer_goal("20", _LEAST_TIMES_PEER, peer, asked, answers)
    for variant in ("one by one", "batches"):
        relative += _peer_goal("21", 1.0, ("tf.data", variant), RECORDS, answers)
    smallest, largest = (answers[split_title(sizes.split_bytes[at])] for at in (0, -1))
    name = f"{split_title(sizes.split_bytes[-1])} / {harness.format_bytes(sizes.split_bytes[0])}"
    relative.append(at_most("22", name, _MOST_SPLIT, ratios(largest, smallest).median, _times))
    limit = memory.buffer_bytes + _MORE_BYTES
    name = f"memory over a file of {harness.format_bytes(memory.file_bytes)}"
    absolute.append(at_most("23", name, limit, memory.grown_bytes, lambda value: f"{value / 2**20:.1f} MiB"))
    return absolute, relative


def _peer_goal(number: str, limit: float, peer: tuple[str, str], title: str, answers: Answers) -> list[Goal]:
    theirs = answers.get(peer_title(*peer, title))
    if theirs is None:
        return []
    gain = ratios(theirs, answers[title]).median
    return [at_least(number, f"{', '.join(peer)} / ringlet, {title}", limit, gain, _times)]


def _row(title: str, seconds: Sequence[float], answers: Answers, sizes: Sizes) -> list[str]:
    times = Statistics(tuple(seconds))
    asked = title.rpartition(": ")[2]
    rows = sizes.batch if asked.startswith((SHUFFLED, RANGE)) else 1
    is_split = asked.startswith("cut")
    beside = "-" if asked == title else _times(ratios(seconds, answers[asked]).median)
    rate = "-" if is_split else f"{rows / times.median:,.0f}"
    return [title, report.format_seconds(times.median), f"{times.spread:.0%}", rate, beside]


def _measured(options: argparse.Namespace, sizes: Sizes, folder: Path) -> tuple[dict[str, list[float]], float]:
    """Return the seconds of all subjects in every round, and the fraction of the cores' time used by others."""
    records = folder / "records.tfrecord"
    write_records(records, sizes.records, sizes.record_bytes)
    asked = questions(sizes, options.replicas, records)
    for question in asked.values():
        question.check(question.call())
    region = options.milliseconds / 1e3
    subjects = {title: partial(question.measure, region) for title, question in asked.items()}
    place = options.environments
    with DatasetPeers(place.resolve(), options.replicas, sizes, records) if place else nullcontext() as peers:
        subjects.update(peers.subjects(asked, region) if peers else {})
        return alternate_beside(subjects, peers.cpu_seconds if peers else lambda: 0.0, rounds=options.rounds)


def main(arguments: Sequence[str] | None = None) -> int:
    """Check, measure in alternation, print the table and the goals, and write the requested files.

    Returns
    -------
    int
        0, even if a goal was missed. A wrong result raises an error.
    """
    parser = argparse.ArgumentParser(prog="python -m bench.datasets", description=__doc__)
    parser.add_argument("--replicas", type=harness.parse_counts, default=[2, 8], help="such as 2,8")
    parser.add_argument("--rounds", type=int, default=7, help="of everything in alternation")
    parser.add_argument("--milliseconds", type=float, default=50.0, help="length of one timed region")
    parser.add_argument("--small", action="store_true", help="little data, to see that everything runs")
    parser.add_argument("--json", type=Path, help="file for every figure of every round")
    parser.add_argument(
        "--environments", type=Path, help=f"folder with environments of {', '.join(PEERS)}, to measure them"
    )
    options = parser.parse_args(arguments)
    sizes = SMALL if options.small else FULL
    machine = describe_machine()
    print("\n".join(machine.lines()), "\n")
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        answers, share = _measured(options, sizes, Path(name))
        memory = memory_over(Path(name), sizes.large_file_bytes)
    print(f"meanwhile other processes took {share:.0%} of the cores\n")
    absolute, relative = _goals(answers, options.replicas, sizes, memory)
    reached = [in_spite_of(share, goal) for goal in absolute] + [unless_disturbed(share, goal) for goal in relative]
    reached.sort(key=lambda goal: int(goal.number))
    rows = [_row(title, seconds, answers, sizes) for title, seconds in answers.items()]
    header = ("what", "time", "spread", "elements/s", "times ringlet")
    print(report.format_table(header, rows), "\n\n" + table(reached), sep="")
    if options.json:
        report.write_json(options.json, {
            "benchmark": "datasets", "machine": machine.as_dict(), "others": share, "sizes": asdict(sizes),
            "seconds": answers, "memory": asdict(memory), "goals": [asdict(goal) for goal in reached],
        })  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
