"""Limits of the machine: bandwidths and latencies from the C++ probe, and minimum times derived from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import native, report, traffic

__all__ = ["Latencies", "Probe", "latency_floor", "limit_seconds"]

Question = tuple[str, int]  # what kind of access, to how many bytes

# Loops of each question that are tried again after the first time; the others were too slow to matter.
_KEPT = 3


@dataclass(frozen=True)
class Latencies:
    """Seconds of one hand-over between threads.

    Attributes
    ----------
    line_transfer : float
        Of a cache line, from one core to another; infinity with one core.
    futex_wake : float
        Until a parked thread on another core runs; infinity with one core.
    switch : float
        To another thread of the same core, by ``sched_yield``.
    """

    line_transfer: float
    futex_wake: float
    switch: float

    def __str__(self) -> str:
        """Return all values as text."""
        values = vars(self).items()
        return ", ".join(f"{name.replace('_', ' ')} {report.format_seconds(value)}" for name, value in values)


def latency_floor(num_ranks: int, num_cores: int, latencies: Latencies) -> float:
    """Return the minimum seconds of any call of a collective.

    Ranks on separate cores must receive one cache line from the others; ranks that share a core require a switch to
    each but the first.

    Examples
    --------
    >>> some = Latencies(line_transfer=1e-7, futex_wake=5e-6, switch=1e-6)
    >>> latency_floor(2, 2, some), latency_floor(8, 2, some)
    (1e-07, 3e-06)
    """
    if num_ranks == 1:
        return 0.0
    if num_ranks <= num_cores:
        return latencies.line_transfer
    return (-(-num_ranks // num_cores) - 1) * latencies.switch


def limit_seconds(
    variant: str,
    num_ranks: int,
    size_bytes: int,
    bandwidths: Mapping[Question, float],
    *,
    collective: str = "all_reduce",
) -> float:
    """Return the minimum seconds in which the bytes of a collective can be moved.

    Parameters
    ----------
    variant : {"in_place", "out", "shared"}
    num_ranks, size_bytes : int
        P, and the bytes of the larger of the two buffers of a rank.
    bandwidths : mapping of (kind, working set) to float
        Bytes per second, from :meth:`Probe.bandwidths` for the same collective and variant.
    collective : str

    Returns
    -------
    float
        Seconds of the fastest way from :func:`bench.traffic.ways`.

    Examples
    --------
    >>> limit_seconds("in_place", 2, 1000, {("update", 2000): 4e9})
    1e-06
    """
    return min(
        sum(access.moved / bandwidths[access.kind, access.working_set] for access in way if access.moved > 0)
        for way in traffic.ways(collective, variant, num_ranks, size_bytes)
    )


class Probe:
    """Runs the C++ probe; repeated measurements use the loops that were fastest in the first one.

    Parameters
    ----------
    program : Path
        From ``bench.native.build()``.
    milliseconds : float
        Length of one timed region.

    Attributes
    ----------
    best_loops : dict of (kind, working set, threads) to str
        The fastest loop of the last answer.
    """

    def __init__(self, program: Path, *, milliseconds: float = 5.0) -> None:
        self._program = program
        self._milliseconds = milliseconds
        self._kept: dict[tuple[str, int, int], list[str]] = {}
        self.best_loops: dict[tuple[str, int, int], str] = {}

    def latencies(self, *, rounds: int = 9) -> Latencies:
        """Measure hand-overs: the median of each over `rounds`."""
        answer = native.run(self._program, ["--latency", "1", "--rounds", str(rounds)])["latency"]
        return Latencies(**{name: float("inf") if ns is None else ns * 1e-9 for name, ns in answer.items()})

    def bandwidths(
        self, variant: str, num_ranks: int, size_bytes: int, *, collective: str = "all_reduce"
    ) -> dict[Question, float]:
        """Measure the bandwidths that limit a collective, with as many threads as it can use.

        Parameters
        ----------
        variant : {"in_place", "out", "shared"}
        num_ranks, size_bytes : int
            As for :func:`limit_seconds`.
        collective : str

        Returns
        -------
        dict of (kind, working set) to float
            Bytes per second, of the fastest loop.
        """
        steps = [step for way in traffic.ways(collective, variant, num_ranks, size_bytes) for step in way]
        return self.measure([(step.kind, step.working_set) for step in steps if step.moved > 0], num_ranks)

    def measure(self, questions: Iterable[Question], threads: int) -> dict[Question, float]:
        """Measure each of these bandwidths once, on `threads` cores or all cores."""
        return {question: self._ask(*question, threads) for question in dict.fromkeys(questions)}

    def _ask(self, kind: str, working_set: int, threads: int) -> float:
        question = (kind, working_set, threads)
        kept = self._kept.get(question, [])
        arguments = ["--measure", f"{kind}:{working_set}", "--threads", str(threads), "--loops", ",".join(kept)]
        arguments += ["--milliseconds", str(self._milliseconds), "--rounds", "1" if kept else "2"]
        loops: list[dict[str, Any]] = native.run(self._program, arguments)["bandwidth"][0]["loops"]
        self._kept.setdefault(question, [loop["loop"] for loop in loops[:_KEPT]])
        self.best_loops[question] = loops[0]["loop"]
        return float(loops[0]["bytes_per_second"])
