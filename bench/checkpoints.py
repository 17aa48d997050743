"""Measures how fast checkpoints are saved and restored, compared with raw transfers of as many bytes.

Also measures the cost of a background save for a loop of NumPy calls, compared with a copy and a blocking save.

Run as ``python -m bench.checkpoints``; ``bench/README.md`` defines the columns.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np

from bench import harness, report
from bench.goals import Goal, at_least, at_most, table
from bench.harness import Statistics, ratios
from bench.machine import Others, describe_machine
from bench.reference import WrongAnswerError

__all__ = ["main"]

# Goal 24: a part of the disk's sequential rate.
_GOAL = 0.7
_PIECE_BYTES = 8 << 20
_NUM_VARIABLES = 8
# Goal 35: the call, in copies of the arrays; what the loop loses besides, in the writer's CPU time.
_MOST_COPIES, _MOST_CPU = 1.2, 1.0
# What is held against what.
_PAIRS = {"save": "write", "restore, warm": "read, warm", "restore, fresh": "read, fresh"}


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


class _Disk:
    """Writes and reads one file of as many bytes sequentially: the rate of the disk, or of its cache."""

    def __init__(self, folder: Path, size_bytes: int) -> None:
        self.path = folder / "raw"
        self._memory = memoryview(np.random.default_rng(1).bytes(size_bytes))
        self._into = memoryview(bytearray(size_bytes))

    def write(self) -> None:
        """Write a new file, and flush it and its directory entry to disk."""
        beside = self.path.with_suffix(".new")
        with beside.open("wb", buffering=0) as file:
            for begin in range(0, len(self._memory), _PIECE_BYTES):
                file.write(self._memory[begin : begin + _PIECE_BYTES])
            os.fsync(file.fileno())
        beside.replace(self.path)
        _flush(self.path.parent)

    def read(self) -> None:
        """Read the file into memory that was used before."""
        with self.path.open("rb", buffering=0) as file:
            for begin in range(0, len(self._into), _PIECE_BYTES):
                file.readinto(self._into[begin : begin + _PIECE_BYTES])


class _Saved:
    """Variables of as many bytes, in a checkpoint."""

    def __init__(self, folder: Path, size_bytes: int) -> None:
        import ringlet

        self.path = folder / "ckpt.safetensors"
        count = max(1, size_bytes // _NUM_VARIABLES // 8)
        random = np.random.default_rng(2)
        self._expected = [random.integers(0, 1 << 40, count) for _ in range(_NUM_VARIABLES)]
        self._variables = [ringlet.Variable(array) for array in self._expected]
        self._checkpoint = ringlet.train.Checkpoint(variables=self._variables)

    def save(self) -> None:
        """Save to a file, and flush it to disk."""
        self._checkpoint.write(self.path)

    def restore(self) -> None:
        """Restore from that file, all checksums compared."""
        self._checkpoint.read(self.path)

    def check(self) -> None:
        """Compare the restored values with the saved ones.

        Raises
        ------
        WrongAnswerError
            If it differs.
        """
        self.save()
        for variable in self._variables:
            variable.assign(np.zeros_like(variable.numpy()))
        self.restore()
        for variable, expected in zip(self._variables, self._expected, strict=True):
            if not np.array_equal(variable.numpy(), expected):
                raise WrongAnswerError("restore gave other values than were saved")


class _Loop:
    """A loop of NumPy calls that saves arrays once, which a save in the background has to copy."""

    def __init__(self, folder: Path, size_bytes: int) -> None:
        import ringlet

        count = max(1, size_bytes // _NUM_VARIABLES // 8)
        self._arrays = [np.arange(count, dtype=np.float64) + number for number in range(_NUM_VARIABLES)]
        checkpoint = ringlet.train.Checkpoint(arrays=self._arrays)
        self._managers = {
            is_background: ringlet.train.CheckpointManager(
                checkpoint, folder / str(is_background), 1, in_background=is_background
            )
            for is_background in (False, True)
        }
        self._values = np.ones(1 << 15)
        self._num_steps = 1
        # The loop takes twice the time of a save.
        self._num_steps = max(1, round(2 * self.save() / self.run()["loop"]))

    def copy(self) -> float:
        """Copy the arrays; return the seconds."""
        begin = time.perf_counter()
        copies = [array.copy() for array in self._arrays]
        seconds = time.perf_counter() - begin
        del copies
        return seconds

    def save(self) -> float:
        """Save; return the seconds."""
        begin = time.perf_counter()
        self._managers[False].save()
        return time.perf_counter() - begin

    def run(self, is_background: bool | None = None) -> dict[str, float]:
        """Save if requested, and run the steps; return seconds of the save, the loop, and the CPU time of others."""
        os.sync()
        begin, cpu = time.perf_counter(), time.process_time() - time.thread_time()
        if is_background is not None:
            self._managers[is_background].save()
        call = time.perf_counter() - begin
        for _ in range(self._num_steps):
            np.sqrt(self._values, out=self._values)
        loop = time.perf_counter() - begin
        if is_background is not None:
            self._managers[is_background].sync()
        return {"call": call, "loop": loop, "cpu": time.process_time() - time.thread_time() - cpu}


_Answers = dict[str, list[dict[str, float]]]


def _loop(folder: Path, size_bytes: int, rounds: int) -> _Answers:
    """Time a loop without a save, with a blocking save, and with a background save, in alternation."""
    loop = _Loop(folder, size_bytes)
    subjects: dict[str, Callable[[], dict[str, float]]] = {
        "copy": lambda: {"call": loop.copy()},
        "loop": loop.run,
        "loop, saving in it": partial(loop.run, False),
        "loop, saving in the background": partial(loop.run, True),
    }
    return harness.alternate(subjects, rounds=rounds)


def _loop_rows(size_bytes: int, answers: _Answers) -> Iterator[list[str]]:
    for name, rounds in answers.items():
        medians = {key: Statistics(tuple([each[key] for each in rounds])).median for key in rounds[0]}
        if name == "loop":
            del medians["call"]
        times = [report.format_seconds(medians[key]) if key in medians else "" for key in ("call", "loop")]
        yield [harness.format_bytes(size_bytes), name, *times]


def _loop_goals(size_bytes: int, answers: _Answers) -> Iterator[Goal]:
    saved, size = answers["loop, saving in the background"], harness.format_bytes(size_bytes)
    copies = ratios([each["call"] for each in saved], [each["call"] for each in answers["copy"]]).median
    yield at_most("35", f"call in the background, {size}, in copies", _MOST_COPIES, copies, "{:.2f}".format)
    lost = [
        (each["loop"] - each["call"] - without["loop"]) / each["cpu"]
        for each, without in zip(saved, answers["loop"], strict=True)
    ]
    part = Statistics(tuple(lost)).median
    yield at_most("35", f"loss of the loop, {size}, in CPU time of the writer", _MOST_CPU, part, "{:.2f}".format)


def _seconds(action: Callable[[], None], before: Callable[[], None]) -> float:
    before()
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def _forget(path: Path) -> None:
    """Drop a file from the page cache."""
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


def _keep(path: Path) -> None:
    """Keep a file in the page cache."""
    with path.open("rb", buffering=0) as file:
        while file.read(_PIECE_BYTES):
            pass


def _subjects(folder: Path, size_bytes: int) -> dict[str, Callable[[], float]]:
    """Return all subjects to time by name, after checking the result."""
    disk, saved = _Disk(folder, size_bytes), _Saved(folder, size_bytes)
    saved.check()
    disk.write()
    # What an earlier measurement has left to be written is written first.
    return {
        "write": partial(_seconds, disk.write, os.sync),
        "save": partial(_seconds, saved.save, os.sync),
        "read, warm": partial(_seconds, disk.read, partial(_keep, disk.path)),
        "restore, warm": partial(_seconds, saved.restore, partial(_keep, saved.path)),
        "read, fresh": partial(_seconds, disk.read, partial(_forget, disk.path)),
        "restore, fresh": partial(_seconds, saved.restore, partial(_forget, saved.path)),
    }


def _goals(size_bytes: int, seconds: dict[str, list[float]]) -> Iterator[Goal]:
    for ours, theirs in _PAIRS.items():
        reached = ratios(seconds[theirs], seconds[ours]).median
        yield at_least("24", f"{ours}, {harness.format_bytes(size_bytes)}", _GOAL, reached, "{:.0%}".format)


def _rows(size_bytes: int, seconds: dict[str, list[float]]) -> Iterator[list[str]]:
    for name, values in seconds.items():
        times = Statistics(tuple(values))
        rate, took = f"{size_bytes / times.median / 1e9:.2f}", report.format_seconds(times.median)
        part = f"{ratios(seconds[_PAIRS[name]], values).median:.0%}" if name in _PAIRS else ""
        yield [harness.format_bytes(size_bytes), name, took, f"{times.spread:.0%}", rate, part]


def main(arguments: Sequence[str] | None = None) -> int:
    """Check, measure in alternation, print the table and the goals, and write the requested files.

    Returns
    -------
    int
        0, even if a goal was missed. A wrong result raises an error.
    """
    parser = argparse.ArgumentParser(prog="python -m bench.checkpoints", description=__doc__)
    parser.add_argument("--bytes", type=harness.parse_sizes, default=None, help="of the variables, such as 64MiB,1GiB")
    parser.add_argument("--small", action="store_true", help="1 MiB and two rounds: that it runs")
    parser.add_argument("--rounds", type=int, default=5, help="of everything in alternation")
    parser.add_argument("--folder", type=Path, help="on the disk to measure; the one of temporary files, unless given")
    parser.add_argument("--json", type=Path, help="file for every figure of every round")
    options = parser.parse_args(arguments)
    sizes = options.bytes or harness.parse_sizes("1MiB" if options.small else "64MiB,256MiB,1GiB")
    machine, others = describe_machine(), Others()
    print("\n".join(machine.lines()), "\n")
    answers: dict[int, dict[str, list[float]]] = {}
    loops: dict[int, _Answers] = {}
    for size in sizes:
        print(f"{harness.format_bytes(size)} ...", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            subjects = _subjects(Path(folder), size)
            answers[size] = harness.alternate(subjects, rounds=2 if options.small else options.rounds)
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            loops[size] = _loop(Path(folder), size, 2 if options.small else options.rounds)
    share = others.share()
    print(f"meanwhile other processes took {share:.0%} of the cores\n")
    rows = [row for size, seconds in answers.items() for row in _rows(size, seconds)]
    columns = ("bytes", "what", "time", "spread", "GB/s", "of the disk's rate")
    goals = [goal for size, seconds in answers.items() for goal in _goals(size, seconds)]
    goals += [goal for size, found in loops.items() for goal in _loop_goals(size, found)]
    print(report.format_table(columns, rows), "\n\n", sep="")
    rows = [row for size, found in loops.items() for row in _loop_rows(size, found)]
    print(report.format_table(("bytes", "what", "call", "loop"), rows), "\n\n" + table(goals), sep="")
    if options.json:
        report.write_json(options.json, {
            "benchmark": "checkpoints", "machine": machine.as_dict(), "others": share, "seconds": answers,
            "loops": loops, "goals": [asdict(goal) for goal in goals],
        })  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
