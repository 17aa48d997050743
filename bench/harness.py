"""Common code of all benchmarks: sizes, memory, alternating rounds, medians and spreads."""

from __future__ import annotations

import math
import re
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

__all__ = [
    "Statistics",
    "alternate",
    "available_memory_bytes",
    "bus_bandwidth",
    "calls_for",
    "format_bytes",
    "parse_bytes",
    "parse_counts",
    "parse_sizes",
    "ratios",
    "seconds_per_call",
]

T = TypeVar("T")

_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}

# One size per regime: inside a slot, below a page, inside the first, second and third cache, beyond them.
_LADDER = (8, 1 << 10, 32 << 10, 256 << 10, 1 << 20, 8 << 20, 64 << 20, 256 << 20, 1 << 30)


def parse_bytes(text: str) -> int:
    """Return the size in bytes of a number with a binary unit.

    Parameters
    ----------
    text : str
        Such as ``"8B"``, ``"1KiB"``, ``"256MiB"``; a bare number means bytes.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If `text` is anything else.

    Examples
    --------
    >>> parse_bytes("64KiB"), parse_bytes("8")
    (65536, 8)
    """
    match = re.fullmatch(r"(\d+)\s*(B|KiB|MiB|GiB)?", text.strip())
    if match is None or int(match[1]) == 0:
        raise ValueError(
            f"'{text}' is not a size; write a positive whole number and B, KiB, MiB or GiB, such as 8B or 64MiB."
        )
    return int(match[1]) * _UNITS[match[2] or "B"]


def parse_sizes(text: str) -> list[int]:
    """Return the sizes in bytes of a comma-separated list of sizes and ranges.

    Parameters
    ----------
    text : str
        Each entry is a size (``"1KiB"``), a range (``"8B:256MiB"``: its ends and the sizes 8 B, 1, 32, 256 KiB, 1, 8,
        64, 256 MiB, 1 GiB between them), or a range with a factor (``"1KiB:1MiB:4"``: 1 KiB, 4 KiB, ... 1 MiB).

    Returns
    -------
    list of int
        Ascending, each size once.

    Raises
    ------
    ValueError
        If an entry is none of these, a range ends before it starts, or a factor is below 2.

    Examples
    --------
    >>> [format_bytes(size) for size in parse_sizes("8B:1MiB")]
    ['8 B', '1 KiB', '32 KiB', '256 KiB', '1 MiB']
    >>> parse_sizes("1KiB:16KiB:4,100")
    [100, 1024, 4096, 16384]
    """
    sizes: set[int] = set()
    for entry in text.split(","):
        first, *rest = entry.split(":")
        begin = parse_bytes(first)
        end = parse_bytes(rest[0]) if rest else begin
        if len(rest) > 2 or end < begin:
            raise ValueError(f"'{entry}' is not a range of sizes; write smallest:largest or smallest:largest:factor.")
        sizes.update((begin, end))
        if len(rest) == 2:
            sizes.update(_powers(begin, end, rest[1]))
        else:
            sizes.update(size for size in _LADDER if begin < size < end)
    return sorted(sizes)


def _powers(begin: int, end: int, factor_text: str) -> list[int]:
    if not factor_text.isdigit() or int(factor_text) < 2:
        raise ValueError(f"'{factor_text}' is not a factor between sizes; write a whole number of at least 2.")
    factor = int(factor_text)
    return [begin * factor**i for i in range(int(math.log(end / begin, factor)) + 1) if begin * factor**i <= end]


def parse_counts(text: str) -> list[int]:
    """Return the whole numbers of a comma-separated list, such as the ranks of ``--ranks 2,4,8``.

    Examples
    --------
    >>> parse_counts("2,4,8")
    [2, 4, 8]
    """
    entries = [entry.strip() for entry in text.split(",")]
    if not all(entry.isdigit() and int(entry) > 0 for entry in entries):
        raise ValueError(f"'{text}' is not a list of counts; write positive whole numbers such as 2,4,8.")
    return [int(entry) for entry in entries]


def format_bytes(size_bytes: int) -> str:
    """Write a size in the largest unit that divides it.

    Examples
    --------
    >>> format_bytes(65536), format_bytes(1500)
    ('64 KiB', '1500 B')
    """
    unit = max((unit for unit, scale in _UNITS.items() if size_bytes % scale == 0), key=_UNITS.__getitem__)
    return f"{size_bytes // _UNITS[unit]} {unit}"


def available_memory_bytes() -> int:
    """Return the memory available without swapping, on the system or in the control group.

    Returns
    -------
    int
        Bytes.
    """
    meminfo = Path("/proc/meminfo").read_text(encoding="ascii")
    match = re.search(r"MemAvailable:\s+(\d+) kB", meminfo)
    available = int(match[1]) << 10 if match else 1 << 30
    limit, used = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")
    if limit.exists() and used.exists() and limit.read_text(encoding="ascii").strip() != "max":
        available = min(available, int(limit.read_text(encoding="ascii")) - int(used.read_text(encoding="ascii")))
    return max(available, 0)


@dataclass(frozen=True)
class Statistics:
    """Statistics of repeated measurements of one quantity.

    Attributes
    ----------
    values : tuple of float
        In the order in which they were measured.

    Examples
    --------
    >>> s = Statistics((3.0, 1.0, 2.0))
    >>> s.median, s.minimum, s.maximum, s.spread
    (2.0, 1.0, 3.0, 0.5)
    """

    values: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.values:
            raise ValueError("there is no median of no measurements; measure at least one round.")

    @property
    def median(self) -> float:
        """The median."""
        return statistics.median(self.values)

    @property
    def minimum(self) -> float:
        """The smallest value."""
        return min(self.values)

    @property
    def maximum(self) -> float:
        """The largest value."""
        return max(self.values)

    @property
    def spread(self) -> float:
        """The interquartile range as a fraction of the median; 0.0 for a single value or a median of 0."""
        if len(self.values) < 2 or self.median == 0:
            return 0.0
        low, _, high = statistics.quantiles(self.values, n=4, method="inclusive")
        return (high - low) / self.median


def ratios(numerators: Sequence[float], denominators: Sequence[float]) -> Statistics:
    """Return the ratios of two measurements within each round.

    A machine's speed drifts by more than the differences of interest, so medians over different times do not compare.

    Parameters
    ----------
    numerators, denominators : sequence of float, one entry per round

    Returns
    -------
    Statistics
        One value per round.

    Raises
    ------
    ValueError
        If the numbers of rounds differ.

    Examples
    --------
    >>> ratios([2.0, 40.0, 3.0], [1.0, 20.0, 1.0]).median
    2.0
    """
    if len(numerators) != len(denominators):
        raise ValueError(
            f"{len(numerators)} rounds cannot be divided by {len(denominators)}; measure both in every round."
        )
    return Statistics(tuple(a / b for a, b in zip(numerators, denominators, strict=True)))


def alternate(subjects: Mapping[str, Callable[[], T]], *, rounds: int, warm_up: int = 1) -> dict[str, list[T]]:
    """Measure several subjects in alternation, so that a slow phase of the machine affects all of them.

    Parameters
    ----------
    subjects : mapping of str to callable
        Each call is one measurement. Every other round is in reverse order, so that no subject always follows the same
        one.
    rounds : int
        Number of recorded measurements of each subject.
    warm_up : int
        Number of earlier rounds, whose answers are dropped.

    Returns
    -------
    dict of str to list
        The answers of each subject, one per round.

    Examples
    --------
    >>> calls = []
    >>> alternate({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, rounds=2, warm_up=0)
    {'a': [None, None], 'b': [None, None]}
    >>> calls
    ['a', 'b', 'b', 'a']
    """
    answers: dict[str, list[T]] = {name: [] for name in subjects}
    for number in range(warm_up + rounds):
        names = list(subjects)[:: 1 if number % 2 == 0 else -1]
        for name in names:
            answer = subjects[name]()
            if number >= warm_up:
                answers[name].append(answer)
    return answers


def calls_for(seconds_per_call: float, region_seconds: float, *, fewest: int = 3, most: int = 100_000) -> int:
    """Return the number of back-to-back calls that fill a timed region, at least `fewest`.

    Examples
    --------
    >>> calls_for(1e-3, 0.02), calls_for(5.0, 0.02)
    (20, 3)
    """
    return max(fewest, min(most, round(region_seconds / max(seconds_per_call, 1e-9))))


def seconds_per_call(call: Callable[[], object], region_seconds: float) -> float:
    """Return the seconds of one of the back-to-back calls that fill a region; a first call determines their number.

    Examples
    --------
    >>> 0 < seconds_per_call(lambda: None, 1e-4) < 1e-3
    True
    """
    start = time.perf_counter()
    call()
    repeats = calls_for(time.perf_counter() - start, region_seconds)
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


def bus_bandwidth(size_bytes: int, seconds: float, num_ranks: int) -> float:
    """Return the bytes per second per rank of an all-reduce, for any algorithm: ``size / seconds * 2 (n - 1) / n``.

    Examples
    --------
    >>> bus_bandwidth(1_000_000, 0.001, 4) / 1e9
    1.5
    """
    return size_bytes / seconds * 2 * (num_ranks - 1) / num_ranks
