"""Measurements of one all-reduce benchmark run, and derived values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from bench.harness import Statistics, bus_bandwidth, ratios

__all__ = ["Cell", "Result", "Sample"]


@dataclass(frozen=True)
class Cell:
    """Common properties of all measurements of one round.

    Attributes
    ----------
    num_ranks, size_bytes : int
        Number of threads, and bytes of the input of each.
    dtype, op : str
    """

    num_ranks: int
    size_bytes: int
    dtype: str
    op: str


@dataclass(frozen=True)
class Sample:
    """One round of one algorithm and variant.

    Attributes
    ----------
    seconds : float
        Seconds of one call on the slowest rank, over back-to-back calls between two barriers.
    faults_per_call : float
        Page faults of the process.
    slowest_call : float
        Longest single call of any rank in a separate run; 0.0 if not measured.
    """

    seconds: float
    faults_per_call: float
    slowest_call: float


@dataclass(frozen=True)
class Result:
    """All measurements of one algorithm and variant in one cell; sequences have one entry per round.

    Attributes
    ----------
    cell : Cell
    algorithm, variant : str
    python, native : sequence of Sample
        From Python threads, and from C++ threads.
    limit : sequence of float
        Minimum seconds on this machine.
    gil_round : sequence of float
        Seconds in which as many threads pass on the interpreter lock once each.
    others : float
        Fraction of the cores' time that other processes used.
    processes : sequence of Sample
        From Python, with a process for each rank, on shared arrays; empty if not measured. Page faults are the maximum
        over the processes.
    """

    cell: Cell
    algorithm: str
    variant: str
    python: Sequence[Sample]
    native: Sequence[Sample]
    limit: Sequence[float]
    gil_round: Sequence[float]
    others: float
    processes: Sequence[Sample] = ()

    @property
    def runners(self) -> tuple[str, ...]:
        """The runners with samples: ``"python"``, ``"native"``, and ``"processes"`` if measured."""
        return ("python", "native", "processes") if self.processes else ("python", "native")

    def samples(self, runner: str) -> Sequence[Sample]:
        """Return the samples of one of :attr:`runners`."""
        return {"python": self.python, "native": self.native, "processes": self.processes}[runner]

    def time(self, runner: str) -> Statistics:
        """Return the seconds of one call."""
        return Statistics(tuple(sample.seconds for sample in self.samples(runner)))

    def times_limit(self, runner: str) -> Statistics:
        """Return the time divided by the limit of the same round."""
        return ratios([sample.seconds for sample in self.samples(runner)], self.limit)

    def faults_per_call(self, runner: str) -> float:
        """Return the page faults of one call in the median round."""
        return Statistics(tuple(sample.faults_per_call for sample in self.samples(runner))).median

    def slowest_call(self, runner: str) -> Statistics:
        """Return the longest single call of each round."""
        return Statistics(tuple(sample.slowest_call for sample in self.samples(runner)))

    def algbw(self, runner: str) -> float:
        """Return the bytes per second of one rank's buffer."""
        return self.cell.size_bytes / self.time(runner).median

    def busbw(self, runner: str) -> float:
        """Return the bytes per second that any algorithm must move for each rank."""
        return bus_bandwidth(self.cell.size_bytes, self.time(runner).median, self.cell.num_ranks)

    def as_dict(self) -> dict[str, object]:
        """Return the rounds and the medians as JSON values."""
        return {
            **asdict(self.cell), "algorithm": self.algorithm, "variant": self.variant,
            "others": self.others,
            "rounds": {
                **{runner: [asdict(sample) for sample in self.samples(runner)] for runner in self.runners},
                "limit_seconds": list(self.limit), "gil_round_seconds": list(self.gil_round),
            },
            "median": {
                runner: {
                    "seconds": self.time(runner).median, "spread": self.time(runner).spread,
                    "algbw": self.algbw(runner), "busbw": self.busbw(runner),
                    "times_limit": self.times_limit(runner).median, "faults_per_call": self.faults_per_call(runner),
                    "slowest_call": self.slowest_call(runner).median,
                }
                for runner in self.runners
            },
        }  # fmt: skip
