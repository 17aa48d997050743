"""Compares the loops for different CPUs: one process for each, in alternation.

Run as ``python -m bench.targets --bytes 32KiB,1MiB,64MiB``; ``bench/README.md`` defines the columns.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bench import command, goals, harness, native, report
from bench.machine import Others, describe_machine
from bench.reference import dtype_named, is_supported, result_dtype
from bench.results import Cell
from bench.target_results import TargetResult, table
from ringlet import _core

__all__ = ["main", "parse_case"]

_VARIANTS = ("in_place", "out", "shared")
_CASES = "float32:SUM,float64:SUM,bfloat16:SUM,int8:SUM,float32:MAX"

Case = tuple[str, str]  # dtype, operation


def parse_case(text: str) -> Case:
    """Parse a dtype and an operation.

    Raises
    ------
    ArgumentTypeError
        If the dtype does not support the operation.

    Examples
    --------
    >>> parse_case("float64:MAX")
    ('float64', 'MAX')
    """
    dtype, _, op = text.partition(":")
    try:
        is_known = is_supported(dtype_named(dtype), op)
    except (AttributeError, TypeError):
        is_known = False
    if not is_known:
        raise argparse.ArgumentTypeError(f"'{text}' is not dtype:operation, such as float32:SUM.")
    return dtype, op


def _seconds(program: Path, cell: Cell, variants: Sequence[str], milliseconds: float, target: str) -> dict[str, float]:
    rows = native.run(program, [
        "--ranks", str(cell.num_ranks), "--bytes", str(cell.size_bytes), "--dtype", cell.dtype, "--op", cell.op,
        "--algorithms", "direct", "--variants", ",".join(variants), "--milliseconds", str(milliseconds),
    ], environment={"RINGLET_CPU": target})  # fmt: skip
    return {row["variant"]: float(row["seconds"]) for row in rows}


def _measure_cell(cell: Cell, options: Any, program: Path, targets: Sequence[str]) -> list[TargetResult]:
    dtype = dtype_named(cell.dtype)
    changes_dtype = result_dtype(dtype, cell.op) != dtype
    variants = [variant for variant in options.variants if not (variant == "in_place" and changes_dtype)]
    others = Others()
    rounds = harness.alternate(
        {target: partial(_seconds, program, cell, variants, options.milliseconds, target) for target in targets},
        rounds=options.rounds,
        warm_up=0,  # each is a process of its own
    )
    share = others.share()
    return [
        TargetResult(
            cell, variant, {target: [seconds[variant] for seconds in rounds[target]] for target in targets}, share
        )
        for variant in variants
    ]


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    counts, sizes = harness.parse_counts, harness.parse_sizes
    parser = argparse.ArgumentParser(prog="python -m bench.targets", description=__doc__)
    parser.add_argument("--ranks", type=counts, default=counts("2"), help="threads, such as 2,4,8")
    parser.add_argument("--bytes", type=sizes, default=sizes("32KiB,1MiB,64MiB"), help="of a rank's buffer")
    parser.add_argument("--cases", default=_CASES, help=f"dtypes and operations, such as {_CASES}")
    parser.add_argument("--variants", type=command.words(_VARIANTS), default=["in_place", "shared"])
    parser.add_argument("--rounds", type=int, default=5, help="of everything in alternation")
    parser.add_argument("--milliseconds", type=float, default=10.0, help="length of one timed region")
    parser.add_argument("--json", type=Path, help="file for every figure of every round")
    options = parser.parse_args(arguments)
    try:
        options.cases = [parse_case(text) for text in options.cases.split(",")]
    except argparse.ArgumentTypeError as error:
        parser.error(f"--cases: {error}")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table and the goals, and write the requested files.

    Returns
    -------
    int
        0, even if a goal was missed. A wrong result raises an error.
    """
    options = _parse(arguments)
    machine = describe_machine()
    program, targets = native.build().all_reduce, _core.cpu_targets()
    print(*machine.lines(), "", sep="\n")
    results: list[TargetResult] = []
    for dtype, op in options.cases:
        for num_ranks in options.ranks:
            for size in options.bytes:
                cell = Cell(num_ranks, size, dtype, op)
                print(f"{dtype} {op}, {num_ranks} ranks, {harness.format_bytes(size)} ...", file=sys.stderr, flush=True)
                results += _measure_cell(cell, options, program, targets)
    reached = goals.target_goals(results)
    print(table(results), "\n" + goals.table(reached), sep="\n")
    if options.json:
        report.write_json(options.json, {
            "benchmark": "targets", "machine": machine.as_dict(),
            "results": [result.as_dict() for result in results], "goals": [goal.as_dict() for goal in reached],
        })  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
