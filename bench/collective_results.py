"""The figures of a benchmark of the collectives beside all-reduce."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench import harness, report
from bench.results import Result

__all__ = ["CollectiveResult", "table"]


@dataclass(frozen=True)
class CollectiveResult(Result):
    """A result of a collective other than all-reduce.

    Attributes
    ----------
    collective : str
    """

    collective: str = ""

    def as_dict(self) -> dict[str, object]:
        """Return the rounds and the medians as JSON values."""
        rest = super().as_dict()
        del rest["algorithm"]
        return {"collective": self.collective, **rest}


def table(results: Sequence[CollectiveResult]) -> str:
    """Return the results as a table; ``bench/README.md`` defines the columns."""
    columns = (
        "collective", "variant", "ranks", "size", "time", "spread", "algbw", "limit", "x limit", "faults", "slowest",
        "GIL round", "C++ time", "C++ x limit", "C++ faults", "C++ slowest", "others",
    )  # fmt: skip
    return report.format_table(columns, [_row(result) for result in results])


def _row(result: CollectiveResult) -> list[str]:
    python, plain = result.time("python"), result.time("native")
    tail = {runner: result.slowest_call(runner).maximum for runner in ("python", "native")}
    return [
        result.collective, result.variant, str(result.cell.num_ranks), harness.format_bytes(result.cell.size_bytes),
        report.format_seconds(python.median), f"{python.spread:.0%}", f"{result.algbw('python') / 1e9:.3g}",
        report.format_seconds(harness.Statistics(tuple(result.limit)).median),
        f"{result.times_limit('python').median:.2f}", f"{result.faults_per_call('python'):.2g}",
        report.format_seconds(tail["python"]) if tail["python"] else "-",
        report.format_seconds(harness.Statistics(tuple(result.gil_round)).median),
        report.format_seconds(plain.median), f"{result.times_limit('native').median:.2f}",
        f"{result.faults_per_call('native'):.2g}", report.format_seconds(tail["native"]) if tail["native"] else "-",
        f"{result.others:.0%}",
    ]  # fmt: skip
