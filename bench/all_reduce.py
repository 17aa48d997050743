"""Measures the time of an all-reduce between replica threads, compared with the limit of the machine.

Run as ``python -m bench.all_reduce --ranks 2,4,8 --bytes 8B:256MiB``; ``bench/README.md`` defines the columns.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bench import command, goals, harness, limits, native, ranks, report
from bench.machine import Others, describe_machine, usable_cores
from bench.python_ranks import TAIL_BYTES, TAIL_CALLS, PythonRanks
from bench.reference import dtype_named, result_dtype
from bench.results import Cell, Result, Sample

__all__ = ["main", "memory_needed_bytes"]

_ALGORITHMS = ("auto", "direct", "ring", "small")
_VARIANTS = ("in_place", "out", "shared")

# SMALL carries its payload inside a slot of two kilobytes.
_SMALL_BYTES = 1 << 10


def memory_needed_bytes(num_ranks: int, size_bytes: int) -> int:
    """Return the peak memory of a cell: this process and the C++ benchmark, each with 2 P N and two results.

    Examples
    --------
    >>> memory_needed_bytes(2, 100)
    1200
    """
    return 2 * (2 * num_ranks + 2) * size_bytes


def _native_samples(program: Path, cell: Cell, pairs: Sequence[tuple[str, str]], region: float) -> dict[str, Sample]:
    tail_calls = TAIL_CALLS if cell.size_bytes <= TAIL_BYTES else 0
    rows = native.run(program, [
        "--ranks", str(cell.num_ranks), "--bytes", str(cell.size_bytes), "--dtype", cell.dtype, "--op", cell.op,
        "--algorithms", ",".join(dict.fromkeys(algorithm for algorithm, _ in pairs)),
        "--variants", ",".join(dict.fromkeys(variant for _, variant in pairs)),
        "--milliseconds", str(region * 1e3), "--tail-calls", str(tail_calls),
    ])  # fmt: skip
    return {
        f"{row['algorithm']} {row['variant']}": Sample(row["seconds"], row["faults_per_call"], row["slowest_call"])
        for row in rows
    }


def _measure_cell(
    cell: Cell, options: argparse.Namespace, programs: native.Programs, probe: limits.Probe, floor: float
) -> list[Result]:
    pairs = _pairs(cell, options)
    region = options.milliseconds / 1e3
    python_ranks = PythonRanks(cell, region_seconds=region, pin=options.pin)
    for pair in pairs:
        python_ranks.verify(*pair)
    python_ranks.clear()

    def limit_of(variant: str) -> float:
        measured = probe.bandwidths(variant, cell.num_ranks, cell.size_bytes)
        return max(floor, limits.limit_seconds(variant, cell.num_ranks, cell.size_bytes, measured))

    others = Others()
    rounds: dict[str, list[Any]] = harness.alternate(
        {
            "gil": lambda: ranks.gil_round_seconds(cell.num_ranks, rounds=100, pin=options.pin),
            "native": lambda: _native_samples(programs.all_reduce, cell, pairs, region),
            **{f"limit {variant}": partial(limit_of, variant) for variant in {variant for _, variant in pairs}},
            **{" ".join(pair): partial(python_ranks.measure, *pair) for pair in pairs},
        },
        rounds=options.rounds,
    )
    share = others.share()
    for pair in pairs:
        python_ranks.verify(*pair)
    return [
        Result(
            cell, algorithm, variant,
            python=rounds[f"{algorithm} {variant}"],
            native=[samples[f"{algorithm} {variant}"] for samples in rounds["native"]],
            limit=rounds[f"limit {variant}"],
            gil_round=rounds["gil"],
            others=share,
        )
        for algorithm, variant in pairs
    ]  # fmt: skip


def _pairs(cell: Cell, options: argparse.Namespace) -> list[tuple[str, str]]:
    """Return the algorithms and variants that the cell's dtype, operation and size allow."""
    dtype = dtype_named(cell.dtype)
    changes_dtype = result_dtype(dtype, cell.op) != dtype
    return [
        (algorithm, variant)
        for algorithm in options.algorithms
        for variant in options.variants
        if not (variant == "in_place" and changes_dtype)
        and not (algorithm == "small" and cell.size_bytes > _SMALL_BYTES)
    ]


def _table(results: Sequence[Result]) -> str:
    columns = (
        "ranks", "size", "algorithm", "variant", "time", "spread", "algbw", "busbw", "limit", "x limit", "faults",
        "slowest", "GIL round", "C++ time", "C++ x limit", "C++ slowest", "others",
    )  # fmt: skip
    return report.format_table(columns, [_row(result) for result in results])


def _row(result: Result) -> list[str]:
    python, plain = result.time("python"), result.time("native")
    tail = {runner: result.slowest_call(runner).maximum for runner in ("python", "native")}
    return [
        str(result.cell.num_ranks), harness.format_bytes(result.cell.size_bytes), result.algorithm, result.variant,
        report.format_seconds(python.median), f"{python.spread:.0%}",
        f"{result.algbw('python') / 1e9:.3g}", f"{result.busbw('python') / 1e9:.3g}",
        report.format_seconds(harness.Statistics(tuple(result.limit)).median),
        f"{result.times_limit('python').median:.2f}", f"{result.faults_per_call('python'):.2g}",
        report.format_seconds(tail["python"]) if tail["python"] else "-",
        report.format_seconds(harness.Statistics(tuple(result.gil_round)).median),
        report.format_seconds(plain.median), f"{result.times_limit('native').median:.2f}",
        report.format_seconds(tail["native"]) if tail["native"] else "-", f"{result.others:.0%}",
    ]  # fmt: skip


def _panels(results: Sequence[Result]) -> dict[str, report.Curves]:
    """Return a panel for each variant and number of ranks: seconds over bytes."""
    panels: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for result in results:
        panel = panels.setdefault(f"{result.variant}, {result.cell.num_ranks} ranks", {})
        size = float(result.cell.size_bytes)
        if result.algorithm == results[0].algorithm:
            panel.setdefault("limit", []).append((size, harness.Statistics(tuple(result.limit)).median))
        panel.setdefault(f"{result.algorithm}, C++", []).append((size, result.time("native").median))
        panel.setdefault(f"{result.algorithm}, Python", []).append((size, result.time("python").median))
    return dict(panels)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = command.sweep_parser("all_reduce", __doc__, ranks="2,4,8", sizes="8B:256MiB")
    parser.add_argument("--algorithms", type=command.words(_ALGORITHMS), default=["auto", "direct", "ring"])
    parser.add_argument("--variants", type=command.words(_VARIANTS), default=list(_VARIANTS))
    parser.add_argument("--no-pin", dest="pin", action="store_false", help="let Python ranks move between cores")
    parser.add_argument("--plot", type=Path, help="file for a figure of time over size")
    return command.parse(parser, arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table and the goals, and write the requested files.

    Returns
    -------
    int
        0, even if a goal was missed. A wrong result raises an error.
    """
    options = _parse(arguments)
    machine = describe_machine()
    programs = native.build()
    probe = limits.Probe(programs.limits)
    latencies = probe.latencies()
    print(*machine.lines(), f"   latency: {latencies}", "", sep="\n")
    results: list[Result] = []
    for cell in command.cells(options, memory_needed_bytes):
        floor = limits.latency_floor(cell.num_ranks, len(usable_cores()), latencies)
        results += _measure_cell(cell, options, programs, probe, floor)
    reached = goals.all_reduce_goals(results)
    print(_table(results), "\n" + goals.table(reached), sep="\n")
    if options.json:
        report.write_json(options.json, {
            "benchmark": "all_reduce", "machine": machine.as_dict(), "latencies": vars(latencies),
            "loops": {f"{kind} {size} B, {n} threads": loop for (kind, size, n), loop in probe.best_loops.items()},
            "results": [result.as_dict() for result in results], "goals": [goal.as_dict() for goal in reached],
        })  # fmt: skip
    if options.plot:
        title = f"all_reduce {options.dtype} {options.op}, {machine.cpu}, {machine.cores} cores, {machine.commit}"
        columns = len({result.cell.num_ranks for result in results})
        report.write_figure(options.plot, _panels(results), columns=columns, y_label="seconds per call", title=title)
    return 0


if __name__ == "__main__":
    sys.exit(main())
