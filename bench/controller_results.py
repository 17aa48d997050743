"""Results of a benchmark of one thread that has the buffers of all ranks, compared with NumPy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from bench import harness, report
from bench.harness import Statistics
from bench.results import Cell

__all__ = ["ControllerResult", "table"]

Rounds = Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class ControllerResult:
    """All measurements of one job in one cell; sequences have one entry per round.

    Attributes
    ----------
    cell : Cell
    job : {"shared", "out", "in_place"}
        One result; a result in a buffer of every rank; or in place of every rank's own.
    ringlet : mapping of str to mapping of str to sequence of float
        Seconds of one call, by workers (``"default"``, ``"1"``, ``"2"``) and by call.
    numpy : mapping of str to sequence of float
        Seconds of one job, by statement.
    others : float
        Fraction of the cores' time that other processes used.
    """

    cell: Cell
    job: str
    ringlet: Mapping[str, Rounds]
    numpy: Rounds
    others: float

    def fastest(self, workers: str) -> str:
        """Return the call with the smallest median time."""
        return _fastest(self.ringlet[workers])

    def fastest_numpy(self) -> str:
        """Return the NumPy statement with the smallest median time."""
        return _fastest(self.numpy)

    def time(self, workers: str) -> Statistics:
        """Seconds of the fastest call."""
        return Statistics(tuple(self.ringlet[workers][self.fastest(workers)]))

    def gain(self, workers: str) -> Statistics:
        """Time of NumPy's fastest way divided by that of the fastest call, in each round."""
        ours = self.ringlet[workers][self.fastest(workers)]
        return harness.ratios(self.numpy[self.fastest_numpy()], ours)

    def as_dict(self) -> dict[str, object]:
        """Return the rounds and the medians as JSON values."""
        return {
            **asdict(self.cell), "job": self.job, "others": self.others,
            "rounds": {
                "ringlet": {workers: {call: list(seconds) for call, seconds in calls.items()}
                            for workers, calls in self.ringlet.items()},
                "numpy": {way: list(seconds) for way, seconds in self.numpy.items()},
            },
            "median": {
                workers: {"call": self.fastest(workers), "seconds": self.time(workers).median,
                          "numpy_over_ringlet": self.gain(workers).median}
                for workers in self.ringlet
            },
        }  # fmt: skip


def _fastest(rounds: Rounds) -> str:
    return min(rounds, key=lambda name: Statistics(tuple(rounds[name])).median)


def table(results: Sequence[ControllerResult]) -> str:
    """Return the results as a table; ``bench/README.md`` defines the columns."""
    columns = (
        "job", "ranks", "size", "workers", "time", "spread", "call", "NumPy", "by", "NumPy / ringlet", "others",
    )  # fmt: skip
    return report.format_table(
        columns, [_row(result, workers) for result in results for workers in result.ringlet]
    )  # fmt: skip


def _row(result: ControllerResult, workers: str) -> list[str]:
    ours, way = result.time(workers), result.fastest_numpy()
    return [
        result.job, str(result.cell.num_ranks), harness.format_bytes(result.cell.size_bytes), workers,
        report.format_seconds(ours.median), f"{ours.spread:.0%}", result.fastest(workers),
        report.format_seconds(Statistics(tuple(result.numpy[way])).median), way,
        f"{result.gain(workers).median:.2f}", f"{result.others:.0%}",
    ]  # fmt: skip
