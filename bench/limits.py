"""What the machine allows at best: bandwidths and latencies from the C++ probe, and the times that follow from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import native

__all__ = ["Latencies", "Probe", "latency_floor", "limit_seconds"]

# Loops of each question that are tried again after the first time; the others were too slow to matter.
_KEPT = 3


@dataclass(frozen=True)
class Latencies:
    """Seconds of one hand-over from one thread to another.

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


def latency_floor(num_ranks: int, num_cores: int, latencies: Latencies) -> float:
    """Least seconds of any collective call, however small.

    Ranks that each have a core must see one line of the others; of ranks that share a core, all but one must be
    switched to.

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


def limit_seconds(variant: str, num_ranks: int, size_bytes: int, bandwidths: Mapping[str, float]) -> float:
    """Least seconds in which the bytes of an all-reduce of P ranks and N bytes can be moved.

    Parameters
    ----------
    variant : {"in_place", "out", "shared"}
    num_ranks, size_bytes : int
        P and N.
    bandwidths : mapping of str to float
        Bytes per second of the kinds that :meth:`Probe.bandwidths` gives for this variant.

    Returns
    -------
    float
        ``in_place``: 2PN / update. ``out``: 2PN / copy. ``shared``: PN / read + N / write, or (P+1)N / reduce if a
        plain loop that reads P buffers and writes one was measured to be faster than that sum.

    Examples
    --------
    >>> limit_seconds("in_place", 2, 1000, {"update": 4e9})
    1e-06
    >>> limit_seconds("shared", 4, 1000, {"read": 4e9, "write": 1e9})
    2e-06
    """
    moved = 2.0 * num_ranks * size_bytes
    if variant == "in_place":
        return moved / bandwidths["update"]
    if variant == "out":
        return moved / bandwidths["copy"]
    apart = num_ranks * size_bytes / bandwidths["read"] + size_bytes / bandwidths["write"]
    together = (num_ranks + 1.0) * size_bytes / bandwidths["reduce"] if "reduce" in bandwidths else apart
    return min(apart, together)


def _questions(variant: str, num_ranks: int, size_bytes: int) -> dict[str, tuple[str, int]]:
    """What to ask the probe for `variant`: name of the bandwidth to kind and working set in bytes."""
    together = num_ranks * size_bytes
    if variant == "in_place":
        return {"update": ("update", together)}
    if variant == "out":
        return {"copy": ("copy", 2 * together)}
    questions = {"read": ("read", together), "write": ("write", size_bytes)}
    if num_ranks <= 8:
        questions["reduce"] = (f"reduce{num_ranks}", together + size_bytes)
    return questions


class Probe:
    """Asks the C++ probe, each question with the loops that did best when it was asked first.

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

    def bandwidths(self, variant: str, num_ranks: int, size_bytes: int) -> dict[str, float]:
        """Measure what `variant` of an all-reduce is limited by, with as many threads as it can use.

        Returns
        -------
        dict of str to float
            Bytes per second by kind, of the fastest loop.
        """
        return {
            name: self._ask(kind, working_set, num_ranks)
            for name, (kind, working_set) in _questions(variant, num_ranks, size_bytes).items()
        }

    def _ask(self, kind: str, working_set: int, threads: int) -> float:
        question = (kind, working_set, threads)
        kept = self._kept.get(question, [])
        arguments = ["--measure", f"{kind}:{working_set}", "--threads", str(threads), "--loops", ",".join(kept)]
        arguments += ["--milliseconds", str(self._milliseconds), "--rounds", "1" if kept else "2"]
        loops: list[dict[str, Any]] = native.run(self._program, arguments)["bandwidth"][0]["loops"]
        self._kept.setdefault(question, [loop["loop"] for loop in loops[:_KEPT]])
        self.best_loops[question] = loops[0]["loop"]
        return float(loops[0]["bytes_per_second"])
