"""Measures the time of collectives other than all-reduce between threads, compared with the limit of the machine.

Run as ``python -m bench.collectives --ranks 2,4 --bytes 1KiB:64MiB``; ``bench/README.md`` defines the columns.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bench import command, goals, harness, limits, native, ranks, report, traffic
from bench.all_reduce import memory_needed_bytes
from bench.collective_ranks import CollectiveRanks
from bench.collective_results import CollectiveResult, table
from bench.machine import Others, describe_machine, usable_cores
from bench.python_ranks import TAIL_BYTES, TAIL_CALLS
from bench.reference import dtype_named, result_dtype
from bench.results import Cell, Sample

__all__ = ["main", "measure_cell", "pairs_of"]

_COLLECTIVES = tuple(name for name in traffic.COLLECTIVES if name != "all_reduce")
_USUAL = ["reduce_scatter", "all_gather", "broadcast", "all_to_all"]
_VARIANTS = ("in_place", "out", "shared")

Pair = tuple[str, str]  # collective, variant


def pairs_of(cell: Cell, collectives: Sequence[str], variants: Sequence[str]) -> list[Pair]:
    """Return the collectives and variants that the cell's size, dtype and operation allow.

    Examples
    --------
    >>> pairs_of(Cell(2, 1024, "float32", "SUM"), ["all_to_all", "reduce"], ["in_place", "out"])
    [('all_to_all', 'out'), ('reduce', 'in_place'), ('reduce', 'out')]
    """
    dtype = dtype_named(cell.dtype)
    if cell.size_bytes % (dtype.itemsize * cell.num_ranks):
        return []
    no_such_call = {
        "reduce": result_dtype(dtype, cell.op) != dtype,
        "reduce_scatter": result_dtype(dtype, cell.op) != dtype,
        "exclusive_scan": cell.op == "MEAN",
    }
    return [
        (collective, variant)
        for collective in collectives
        for variant in variants
        if variant in traffic.variants_of(collective) and not no_such_call.get(collective, False)
    ]


def _native_samples(program: Path, cell: Cell, pairs: Sequence[Pair], region: float) -> dict[Pair, Sample]:
    rows = native.run(program, [
        "--ranks", str(cell.num_ranks), "--bytes", str(cell.size_bytes), "--dtype", cell.dtype, "--op", cell.op,
        "--what", ",".join(":".join(pair) for pair in pairs), "--milliseconds", str(region * 1e3),
        "--tail-calls", str(TAIL_CALLS if cell.size_bytes <= TAIL_BYTES else 0),
    ])  # fmt: skip
    return {
        (row["collective"], row["variant"]): Sample(row["seconds"], row["faults_per_call"], row["slowest_call"])
        for row in rows
    }


def _limits(probe: limits.Probe, cell: Cell, pairs: Sequence[Pair], floor: float) -> dict[Pair, float]:
    """Return the minimum seconds of each pair, from bandwidths that are measured once for all."""
    steps = [
        step
        for collective, variant in pairs
        for way in traffic.ways(collective, variant, cell.num_ranks, cell.size_bytes)
        for step in way
    ]
    questions = [(step.kind, step.working_set) for step in steps if step.moved > 0]
    measured = probe.measure(questions, cell.num_ranks)
    return {
        (collective, variant): max(
            floor,
            limits.limit_seconds(variant, cell.num_ranks, cell.size_bytes, measured, collective=collective),
        )
        for collective, variant in pairs
    }


def measure_cell(
    cell: Cell, pairs: Sequence[Pair], options: Any, *, programs: native.Programs, probe: limits.Probe, floor: float
) -> list[CollectiveResult]:
    """Check and measure collectives of one cell, from Python and from C++, beside their limits.

    Parameters
    ----------
    cell : Cell
    pairs : sequence of (str, str)
        Collectives and variants.
    options : object
        With ``milliseconds``, ``rounds`` and ``pin``.
    programs : Programs
    probe : Probe
    floor : float
        Minimum seconds of any call.

    Returns
    -------
    list of CollectiveResult

    Raises
    ------
    WrongAnswerError
    """
    region = options.milliseconds / 1e3
    python_ranks = CollectiveRanks(cell, region_seconds=region, pin=options.pin)
    for pair in pairs:
        python_ranks.verify(*pair)
    others = Others()
    rounds: dict[Any, list[Any]] = harness.alternate(
        {
            "gil": lambda: ranks.gil_round_seconds(cell.num_ranks, rounds=100, pin=options.pin),
            "limits": partial(_limits, probe, cell, pairs, floor),
            "native": partial(_native_samples, programs.collectives, cell, pairs, region),
            **{" ".join(pair): partial(python_ranks.measure, *pair) for pair in pairs},
        },
        rounds=options.rounds,
    )
    share = others.share()
    for pair in pairs:
        python_ranks.verify(*pair)
    return [
        CollectiveResult(
            cell, "auto", pair[1],
            python=rounds[" ".join(pair)],
            native=[samples[pair] for samples in rounds["native"]],
            limit=[seconds[pair] for seconds in rounds["limits"]],
            gil_round=rounds["gil"],
            others=share,
            collective=pair[0],
        )
        for pair in pairs
    ]  # fmt: skip


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = command.sweep_parser("collectives", __doc__, ranks="2,4", sizes="1KiB,32KiB,256KiB,8MiB,64MiB")
    parser.add_argument("--collectives", type=command.words(_COLLECTIVES), default=_USUAL)
    parser.add_argument("--variants", type=command.words(_VARIANTS), default=list(_VARIANTS))
    parser.add_argument("--no-pin", dest="pin", action="store_false", help="let Python ranks move between cores")
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
    results: list[CollectiveResult] = []
    for cell in command.cells(options, memory_needed_bytes):
        pairs = pairs_of(cell, options.collectives, options.variants)
        if not pairs:
            print("   left out: nothing asked for can be done with it", file=sys.stderr)
            continue
        floor = limits.latency_floor(cell.num_ranks, len(usable_cores()), latencies)
        results += measure_cell(cell, pairs, options, programs=programs, probe=probe, floor=floor)
    reached = goals.collective_goals(results)
    print(table(results), "\n" + goals.table(reached), sep="\n")
    if options.json:
        report.write_json(options.json, {
            "benchmark": "collectives", "machine": machine.as_dict(), "latencies": vars(latencies),
            "loops": {f"{kind} {size} B, {n} threads": loop for (kind, size, n), loop in probe.best_loops.items()},
            "results": [result.as_dict() for result in results], "goals": [goal.as_dict() for goal in reached],
        })  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
