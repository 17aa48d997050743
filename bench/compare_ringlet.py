"""Measurements of ringlet in this process for one cell of a comparison, and the limits of the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from bench import limits, native, ranks
from bench.collective_ranks import CollectiveRanks
from bench.collective_results import CollectiveResult
from bench.compare_controller import ControllerThread
from bench.compare_results import CONTROLLER, CPP, LIMIT, PYTHON, Measured, Task
from bench.peers.peer import Question, Server
from bench.python_ranks import TAIL_BYTES, TAIL_CALLS, PythonRanks
from bench.reference import WrongAnswerError
from bench.results import Cell, Result, Sample

__all__ = ["VARIANTS", "Pair", "RingletSubjects", "can_be_cut"]

# What is measured of each collective: what peers have, and one result for all ranks, which is ringlet's own.
VARIANTS: Mapping[str, Sequence[str]] = {
    "all_reduce": ("in_place", "out", "shared"),
    "reduce_scatter": ("out",),
    "all_gather": ("out", "shared"),
    "broadcast": ("in_place", "shared"),
    "all_to_all": ("out",),
}

Pair = tuple[str, str]  # collective, variant
Rounds = Mapping[str, Sequence[Any]]


def can_be_cut(cell: Cell) -> bool:
    """Whether every rank can have a block of the same number of elements.

    Examples
    --------
    >>> can_be_cut(Cell(4, 8, "float32", "SUM")), can_be_cut(Cell(4, 16, "float32", "SUM"))
    (False, True)
    """
    return cell.size_bytes % (cell.num_ranks * np.dtype(cell.dtype).itemsize) == 0


class RingletSubjects:
    """The measurements of ringlet in one cell; the constructor and `verify` check the results.

    Parameters
    ----------
    cell : Cell
    collectives : sequence of str
    region_seconds : float
        Length of one timed region.
    programs : Programs
    probe : Probe
    floor : float
        Minimum seconds of any call.

    Raises
    ------
    WrongAnswerError
    """

    def __init__(
        self,
        cell: Cell,
        collectives: Sequence[str],
        *,
        region_seconds: float,
        programs: native.Programs,
        probe: limits.Probe,
        floor: float,
        pin: bool = True,
    ) -> None:
        self._cell, self._region_seconds = cell, region_seconds
        self._programs, self._probe, self._floor = programs, probe, floor
        self._pairs: list[Pair] = [
            (collective, variant)
            for collective in collectives
            for variant in VARIANTS[collective]
            if collective == "all_reduce" or can_be_cut(cell)
        ]
        self._all_reduce = PythonRanks(cell, region_seconds=region_seconds, pin=pin)
        self._others = CollectiveRanks(cell, region_seconds=region_seconds, pin=pin)
        self._controller = Server(ControllerThread(cell.num_ranks))
        self.verify()
        self._all_reduce.clear()

    def verify(self) -> None:
        """Check the results of Python threads; C++ programs and the thread with all buffers check their own results.

        Raises
        ------
        WrongAnswerError
        """
        for collective, variant in self._pairs:
            if collective == "all_reduce":
                self._all_reduce.verify("auto", variant)
            else:
                self._others.verify(collective, variant)

    def subjects(self, collective: str) -> dict[str, Callable[[], Any]]:
        """Return the measurements of one collective, by names that no peer has."""
        variants = [variant for name, variant in self._pairs if name == collective]
        if not variants:
            return {}
        subjects: dict[str, Callable[[], Any]] = {
            "gil": lambda: ranks.gil_round_seconds(self._cell.num_ranks, rounds=100),
            _key(CPP, collective): partial(self._native_samples, collective, variants),
        }
        for variant in variants:
            subjects[_key(LIMIT, collective, variant)] = partial(self._limit, collective, variant)
            subjects[_key(PYTHON, collective, variant)] = partial(self._python_sample, collective, variant)
        for variant in ControllerThread.variants.get(collective, ()):
            subjects[_key(CONTROLLER, collective, variant)] = partial(self._controller_seconds, variant)
        return subjects

    def measured(self, rounds: Rounds, others: float) -> Iterator[Measured]:
        """Yield the measured times, limits first."""
        for collective, variant in self._pairs:
            task = Task(self._cell.num_ranks, collective, variant, self._cell.size_bytes)
            times = {
                LIMIT: rounds[_key(LIMIT, collective, variant)],
                PYTHON: [sample.seconds for sample in rounds[_key(PYTHON, collective, variant)]],
                CPP: [samples[variant].seconds for samples in rounds[_key(CPP, collective)]],
                CONTROLLER: rounds.get(_key(CONTROLLER, collective, variant), ()),
            }
            for who, seconds in times.items():
                if seconds:
                    family = "limit" if who == LIMIT else "ringlet"
                    yield Measured(task, who, family, tuple(seconds), others=others)

    def results(
        self, rounds: Rounds, others: float, processes: Mapping[Pair, Sequence[Sample]] = MappingProxyType({})
    ) -> list[Result]:
        """Return the results of threads and of `processes` for ``bench.goals``.

        An all-reduce is a `Result`; other collectives have their own class.
        """
        results = []
        for collective, variant in self._pairs:
            kind = Result if collective == "all_reduce" else partial(CollectiveResult, collective=collective)
            results.append(
                kind(
                    self._cell, "auto", variant,
                    python=rounds[_key(PYTHON, collective, variant)],
                    native=[samples[variant] for samples in rounds[_key(CPP, collective)]],
                    limit=rounds[_key(LIMIT, collective, variant)],
                    gil_round=rounds["gil"],
                    others=others,
                    processes=processes.get((collective, variant), ()),
                )
            )  # fmt: skip
        return results

    def _python_sample(self, collective: str, variant: str) -> Sample:
        if collective == "all_reduce":
            return self._all_reduce.measure("auto", variant)
        return self._others.measure(collective, variant)

    def _native_samples(self, collective: str, variants: Sequence[str]) -> dict[str, Sample]:
        cell = self._cell
        what = ["--what", ",".join(f"{collective}:{variant}" for variant in variants)]
        program = self._programs.collectives
        if collective == "all_reduce":
            what = ["--algorithms", "auto", "--variants", ",".join(variants)]
            program = self._programs.all_reduce
        rows = native.run(program, [
            "--ranks", str(cell.num_ranks), "--bytes", str(cell.size_bytes), "--dtype", cell.dtype, "--op", cell.op,
            *what, "--milliseconds", str(self._region_seconds * 1e3),
            "--tail-calls", str(TAIL_CALLS if cell.size_bytes <= TAIL_BYTES else 0),
        ])  # fmt: skip
        return {row["variant"]: Sample(row["seconds"], row["faults_per_call"], row["slowest_call"]) for row in rows}

    def _limit(self, collective: str, variant: str) -> float:
        num_ranks, size = self._cell.num_ranks, self._cell.size_bytes
        measured = self._probe.bandwidths(variant, num_ranks, size, collective=collective)
        return max(self._floor, limits.limit_seconds(variant, num_ranks, size, measured, collective=collective))

    def _controller_seconds(self, variant: str) -> float:
        question = Question("all_reduce", variant, self._cell.size_bytes, self._cell.dtype, self._region_seconds)
        answer = self._controller.answer(question)
        if "wrong" in answer:
            raise WrongAnswerError(f"{CONTROLLER}: {answer['wrong']}. No time is reported for a wrong answer.")
        return float(answer["seconds_per_call"])


def _key(who: str, *what: str) -> str:
    return f"{who}: {' '.join(what)}"
