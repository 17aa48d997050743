"""Results of a benchmark of one all-reduce with the loops for different CPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from bench import harness, report
from bench.harness import Statistics, format_bytes
from bench.results import Cell

__all__ = ["TargetResult", "table"]


@dataclass(frozen=True)
class TargetResult:
    """All measurements of one variant in one cell.

    Attributes
    ----------
    cell : Cell
    variant : str
    seconds : mapping of str to sequence of float
        Seconds of one call, one entry per round, by CPU target, best first.
    others : float
        Fraction of the cores' time that other processes used.
    """

    cell: Cell
    variant: str
    seconds: Mapping[str, Sequence[float]]
    others: float

    @property
    def what(self) -> str:
        """Return the name of the case for display."""
        return f"{self.cell.dtype} {self.cell.op}, {self.variant}, {format_bytes(self.cell.size_bytes)}"

    def times(self, target: str, other: str) -> Statistics:
        """Return the time of one target divided by that of another, in each round."""
        return harness.ratios(self.seconds[target], self.seconds[other])

    def as_dict(self) -> dict[str, object]:
        """Return the rounds and the medians as JSON values."""
        best = next(iter(self.seconds))
        return {
            **asdict(self.cell), "variant": self.variant, "others": self.others,
            "rounds": {target: list(seconds) for target, seconds in self.seconds.items()},
            "median": {
                target: {"seconds": Statistics(tuple(seconds)).median, f"over_{best}": self.times(target, best).median}
                for target, seconds in self.seconds.items()
            },
        }  # fmt: skip


def table(results: Sequence[TargetResult]) -> str:
    """Return the results as a table; ``bench/README.md`` defines the columns."""
    targets = list(results[0].seconds) if results else []
    ratios = [f"{target} / {targets[0]}" for target in targets[1:]]
    columns = ("dtype", "op", "variant", "ranks", "size", *targets, *ratios, "others")
    return report.format_table(columns, [_row(result) for result in results])


def _row(result: TargetResult) -> list[str]:
    best, *rest = result.seconds
    return [
        result.cell.dtype, result.cell.op, result.variant, str(result.cell.num_ranks),
        format_bytes(result.cell.size_bytes),
        *(report.format_seconds(Statistics(tuple(seconds)).median) for seconds in result.seconds.values()),
        *(f"{result.times(target, best).median:.2f}" for target in rest), f"{result.others:.0%}",
    ]  # fmt: skip
