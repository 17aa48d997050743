"""Finds the largest payload for which an all-reduce should use the slots, for the table of AUTO.

Run as ``python -m bench.tune``; ``--write`` stores the result in ``cpp/ringlet/collectives/algorithms/tuning.hpp``.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench import command, harness, native, report
from bench.harness import Statistics, format_bytes
from bench.machine import ROOT, Machine, Others, describe_machine

__all__ = ["HEADER", "Comparison", "main", "present_limits", "rewritten", "winning_limit"]

HEADER = ROOT / "cpp" / "ringlet" / "collectives" / "algorithms" / "tuning.hpp"

# What a slot carries at most, and sizes below it; all are whole numbers of float32.
_MOST_BYTES = 2000
_SIZES = "8,64,256,512,1024,1536,2000"
# Here nothing travels in slots: DIRECT against RING.
_LARGE_SIZES = "4KiB,32KiB,1MiB,8MiB"
_VARIANTS = ("in_place", "out", "shared")

# The last row of the table is for as many ranks as a group may have.
_MOST_RANKS = 4096

# SMALL may be slower than DIRECT by this part of its time without being thought so: less than two runs differ by.
_NOISE = 0.05

# No table is written if others took a larger part of the cores' time.
_MOST_DISTURBED = 0.05


@dataclass(frozen=True)
class Comparison:
    """Times of all algorithms for one number of ranks and one size; sequences have one entry per round.

    Attributes
    ----------
    num_ranks, size_bytes : int
    seconds : mapping of str to sequence of float
        Seconds by algorithm, summed over one call of every variant.
    others : float
        Fraction of the cores' time that other processes used.
    """

    num_ranks: int
    size_bytes: int
    seconds: Mapping[str, Sequence[float]]
    others: float

    def times(self, algorithm: str, other: str) -> Statistics:
        """Return the time of one algorithm divided by that of another, in each round."""
        return harness.ratios(self.seconds[algorithm], self.seconds[other])


def winning_limit(comparisons: Sequence[Comparison]) -> int:
    """Return the largest payload up to which SMALL is not slower than DIRECT at any size.

    Parameters
    ----------
    comparisons : sequence of Comparison
        Comparisons for one number of ranks.

    Returns
    -------
    int
        Bytes; 0 if SMALL is slower even at the smallest size.

    Examples
    --------
    >>> fast, slow = {"small": [1.0], "direct": [2.0]}, {"small": [3.0], "direct": [2.0]}
    >>> winning_limit([Comparison(2, 8, fast, 0.0), Comparison(2, 64, fast, 0.0), Comparison(2, 256, slow, 0.0)])
    64
    """
    limit = 0
    for comparison in sorted(comparisons, key=lambda comparison: comparison.size_bytes):
        if comparison.times("small", "direct").median > 1 + _NOISE:
            break
        limit = comparison.size_bytes
    return limit


def present_limits(header: str) -> dict[int, int]:
    r"""Parse the table of a header: bytes by the largest number of ranks of each row.

    Examples
    --------
    >>> present_limits("kAutoTable[] = {\n    {2, 2000},\n    {4096, 512},\n};")
    {2: 2000, 4096: 512}
    """
    return {int(ranks): int(size) for ranks, size in re.findall(r"^    \{(\d+), (\d+)\},$", header, re.MULTILINE)}


def limit_for(num_ranks: int, limits: Mapping[int, int]) -> int:
    """Look up a number of ranks as the library does: in the first row that covers it.

    Examples
    --------
    >>> limit_for(3, {2: 2000, 4: 1024, 4096: 512})
    1024
    """
    return limits[min(most for most in limits if most >= num_ranks)]


def rewritten(header: str, limits: Mapping[int, int], where: str) -> str:
    r"""Return a header with its rows replaced by these.

    Parameters
    ----------
    header : str
    limits : mapping of int to int
        Bytes by number of ranks; the largest number also covers all larger ones.
    where : str
        The machine of the measurement, for the first comment.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        If the header has no such table.

    Examples
    --------
    >>> print(rewritten("// What.\n#pragma once\nkAutoTable[] = {\n    {4096, 1},\n};", {1: 8, 2: 64}, "a machine"))
    // What AUTO does, as `python -m bench.tune` measured it on a machine.
    #pragma once
    kAutoTable[] = {
        {1, 8},
        {4096, 64},
    };
    """
    *fewer, most = sorted(limits)
    rows = [*((num_ranks, limits[num_ranks]) for num_ranks in fewer), (_MOST_RANKS, limits[most])]
    table = "".join(f"    {{{num_ranks}, {size}}},\n" for num_ranks, size in rows)
    text, replaced = re.subn(r"(kAutoTable\[\] = \{\n)(?: *\{\d+, \d+\},\n)*(\};)", rf"\g<1>{table}\g<2>", header)
    if not replaced:
        raise ValueError("the header has no table kAutoTable; bench.tune writes rows into the one that it finds there.")
    comment = f"// What AUTO does, as `python -m bench.tune` measured it on {where}."
    return re.sub(r"\A(?://.*\n)*", lambda _: comment + "\n", text)


def _seconds(program: Path, num_ranks: int, size: int, algorithms: Sequence[str], options: Any) -> dict[str, float]:
    rows = native.run(program, [
        "--ranks", str(num_ranks), "--bytes", str(size), "--algorithms", ",".join(algorithms),
        "--variants", ",".join(options.variants), "--milliseconds", str(options.milliseconds),
    ])  # fmt: skip
    return {
        algorithm: sum(float(row["seconds"]) for row in rows if row["algorithm"] == algorithm)
        for algorithm in algorithms
    }


def _measure(program: Path, options: Any) -> list[Comparison]:
    comparisons = []
    for num_ranks in options.ranks:
        print(f"{num_ranks} ranks ...", file=sys.stderr, flush=True)
        sizes = [*options.bytes, *options.large_bytes]
        algorithms = {
            size: ("small", "direct", "ring") if size <= _MOST_BYTES else ("direct", "ring") for size in sizes
        }
        others = Others()
        rounds = harness.alternate(
            {str(size): partial(_seconds, program, num_ranks, size, algorithms[size], options) for size in sizes},
            rounds=options.rounds,
        )
        share = others.share()
        for size in sizes:
            taken = rounds[str(size)]
            seconds = {algorithm: [one[algorithm] for one in taken] for algorithm in algorithms[size]}
            comparisons.append(Comparison(num_ranks, size, seconds, share))
    return comparisons


def _table(comparisons: Sequence[Comparison]) -> str:
    columns = ("ranks", "size", "SMALL", "DIRECT", "RING", "SMALL / DIRECT", "spread", "RING / DIRECT", "others")
    return report.format_table(columns, [_row(comparison) for comparison in comparisons])


def _row(comparison: Comparison) -> list[str]:
    times = {
        algorithm: report.format_seconds(Statistics(tuple(seconds)).median)
        for algorithm, seconds in comparison.seconds.items()
    }
    small = comparison.times("small", "direct") if "small" in times else None
    return [
        str(comparison.num_ranks), format_bytes(comparison.size_bytes),
        *(times.get(algorithm, "-") for algorithm in ("small", "direct", "ring")),
        f"{small.median:.2f}" if small else "-", f"{small.spread:.0%}" if small else "-",
        f"{comparison.times('ring', 'direct').median:.2f}", f"{comparison.others:.0%}",
    ]  # fmt: skip


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    counts, sizes = harness.parse_counts, harness.parse_sizes
    parser = argparse.ArgumentParser(prog="python -m bench.tune", description=__doc__)
    parser.add_argument("--ranks", type=counts, default=counts("1,2,4,8,16"), help="rows of the table")
    parser.add_argument("--bytes", type=sizes, default=sizes(_SIZES), help="payloads that may travel in slots")
    parser.add_argument("--large-bytes", type=sizes, default=sizes(_LARGE_SIZES), help="payloads that may not")
    parser.add_argument("--variants", type=command.words(_VARIANTS), default=["in_place", "shared"])
    parser.add_argument("--rounds", type=int, default=7, help="of everything in alternation")
    parser.add_argument("--milliseconds", type=float, default=5.0, help="length of one timed region")
    parser.add_argument("--json", type=Path, help="file for every figure of every round")
    parser.add_argument("--write", action="store_true", help=f"put the table into {HEADER.relative_to(ROOT)}")
    options = parser.parse_args(arguments)
    if max(options.bytes) > _MOST_BYTES or any(size % 4 for size in (*options.bytes, *options.large_bytes)):
        parser.error(f"slots carry {_MOST_BYTES} bytes at most, and sizes must be multiples of 4 bytes.")
    return options


def _describe_limits(limits: Mapping[int, int], present: Mapping[int, int]) -> str:
    rows = [(str(ranks), f"{size} B", f"{limit_for(ranks, present)} B") for ranks, size in limits.items()]
    return report.format_table(("ranks", "SMALL up to", "now up to"), rows)


def _where(machine: Machine) -> str:
    return f"{machine.cpu.partition(' (')[0]}, {machine.cores} cores"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the results beside the current table, and write the requested files.

    Returns
    -------
    int
        0, or 1 if a table was not written because other processes disturbed the measurement.
    """
    options = _parse(arguments)
    machine = describe_machine()
    program = native.build().all_reduce
    print(*machine.lines(), "", sep="\n")
    comparisons = _measure(program, options)
    limits = {
        num_ranks: winning_limit([
            comparison
            for comparison in comparisons
            if comparison.num_ranks == num_ranks and comparison.size_bytes in options.bytes
        ])
        for num_ranks in options.ranks
    }  # fmt: skip
    header = HEADER.read_text(encoding="utf-8")
    print(_table(comparisons), "\n" + _describe_limits(limits, present_limits(header)), sep="\n")
    if options.json:
        report.write_json(options.json, {
            "benchmark": "tune", "machine": machine.as_dict(), "limits": {str(n): size for n, size in limits.items()},
            "results": [asdict(comparison) for comparison in comparisons],
        })  # fmt: skip
    if not options.write:
        return 0
    disturbed = max(comparison.others for comparison in comparisons)
    if disturbed > _MOST_DISTURBED:
        print(f"\nnot written: other processes took {disturbed:.0%} of the cores.", file=sys.stderr)
        return 1
    HEADER.write_text(rewritten(header, limits, _where(machine)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
