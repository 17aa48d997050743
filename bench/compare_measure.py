"""Measures one cell of a comparison: ringlet, the machine's limits and every peer, in alternation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from bench import limits, native
from bench.beside import alternate_beside
from bench.compare_results import PROCESSES, Measured, Task
from bench.compare_ringlet import Pair, RingletSubjects, can_be_cut
from bench.peer_table import OWN_PROCESSES, PEERS
from bench.peer_team import PeerTeam
from bench.reference import WrongAnswerError
from bench.results import Cell, Result, Sample

__all__ = ["CellMeasurement", "memory_needed_bytes"]


def memory_needed_bytes(num_ranks: int, size_bytes: int, num_jobs: int) -> int:
    """Return the peak memory of a cell: three sets of threads, one of them in C++, and `num_jobs` jobs, 2 P N each.

    Examples
    --------
    >>> memory_needed_bytes(2, 100, 1)
    1600
    """
    return 2 * num_ranks * size_bytes * (3 + num_jobs)


@dataclass(frozen=True)
class CellMeasurement:
    """How a cell is measured.

    Attributes
    ----------
    team : PeerTeam
        Peers, and ringlet's processes if they are measured.
    programs : Programs
    probe : Probe
    floor : float
        Minimum seconds of any call at this number of ranks.
    collectives : sequence of str
    region_seconds : float
        Length of one timed region.
    rounds : int
    keep : bool
        Whether peers keep their buffers between questions.
    pin : bool
        Whether to bind the ranks of ringlet in Python to cores; peers decide when they are started.
    load_seconds : callable
        Returns the CPU time of processes that are part of the measurement and keep cores busy.
    """

    team: PeerTeam
    programs: native.Programs
    probe: limits.Probe
    floor: float
    collectives: Sequence[str]
    region_seconds: float
    rounds: int
    keep: bool
    pin: bool = True
    load_seconds: Callable[[], float] = float

    def measure(self, cell: Cell) -> tuple[list[Measured], list[Result]]:
        """Check all results, measure all subjects in every round, and check ringlet's results again.

        Returns
        -------
        tuple of list of Measured and list of Result
            All times; and the results of ringlet with its limits, for ``bench.goals``.

        Raises
        ------
        WrongAnswerError
            If ringlet's result is wrong. A wrong result of a peer counts as a missing time.
        """
        ours = RingletSubjects(
            cell, self.collectives, region_seconds=self.region_seconds,
            programs=self.programs, probe=self.probe, floor=self.floor, pin=self.pin,
        )  # fmt: skip
        asked = [(name, task) for name in self.team.variants for task in self._tasks(name, cell)]
        rounds, others = self._rounds(ours, cell, asked)
        ours.verify()
        measured = list(ours.measured(rounds, others))
        processes: dict[Pair, Sequence[Sample]] = {}
        for name, task in asked:
            failure = self.team.reason(name, self._question(task, cell))
            if failure == "wrong answer" and name in OWN_PROCESSES:
                wrong = next(one.message for one in self.team.failures if one.peer == name and one.reason == failure)
                raise WrongAnswerError(f"{name}: {wrong}. No time is reported for a wrong answer.")
            samples: Sequence[Sample] = () if failure else rounds[_key(name, task)]
            if name == PROCESSES:
                processes[task.collective, task.variant] = samples
            family = {**PEERS, **OWN_PROCESSES}[name].family
            seconds = tuple(sample.seconds for sample in samples)
            measured.append(Measured(task, name, family, seconds, failure, others))
        return measured, ours.results(rounds, others, processes)

    def _rounds(
        self, ours: RingletSubjects, cell: Cell, asked: Sequence[tuple[str, Task]]
    ) -> tuple[dict[str, list[Any]], float]:
        """Return all answers by subject, and the fraction of the cores' time used by others."""
        subjects: dict[str, Callable[[], Any]] = {}
        for collective in self.collectives:
            # One after the other what is compared: a machine drifts within a round, too.
            subjects.update(ours.subjects(collective))
            for name, task in asked:
                if task.collective == collective:
                    subjects[_key(name, task)] = partial(self.team.ask, name, self._question(task, cell))
        known = lambda: self.team.cpu_seconds() + self.load_seconds()  # noqa: E731
        return alternate_beside(subjects, known, rounds=self.rounds)

    def _tasks(self, name: str, cell: Cell) -> Iterator[Task]:
        for collective in self.collectives:
            if collective == "all_reduce" or can_be_cut(cell):
                for variant in self.team.variants[name].get(collective, ()):
                    yield Task(cell.num_ranks, collective, variant, cell.size_bytes)

    def _question(self, task: Task, cell: Cell) -> dict[str, Any]:
        return {
            "question": task.collective, "variant": task.variant, "size_bytes": task.size_bytes,
            "dtype": cell.dtype, "seconds": self.region_seconds, "keep": self.keep,
        }  # fmt: skip


def _key(name: str, task: Task) -> str:
    return f"{name}: {task.collective} {task.variant}"
