"""Common code of commands that sweep ranks and sizes: options, and the cells that fit into memory."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bench import harness
from bench.reference import DTYPES, OPS, dtype_named, is_supported
from bench.results import Cell

__all__ = ["cells", "parse", "sweep_parser", "words"]


def words(allowed: Sequence[str]) -> Callable[[str], list[str]]:
    """Return a parser of a list of words, each of which must be allowed.

    Examples
    --------
    >>> words(["out", "shared"])("shared,out")
    ['shared', 'out']
    """

    def read(text: str) -> list[str]:
        given = text.split(",")
        if not set(given) <= set(allowed):
            raise argparse.ArgumentTypeError(f"'{text}' is not a list of {', '.join(allowed)}.")
        return given

    return read


def sweep_parser(
    name: str, description: str | None, *, ranks: str, sizes: str, dtypes: Sequence[str] = DTYPES
) -> argparse.ArgumentParser:
    """Return a parser of the options of every sweep: ranks, sizes, dtype, operation and duration.

    Parameters
    ----------
    name : str
        Name of the module in ``bench``.
    description : str
    ranks, sizes : str
        The defaults.
    dtypes : sequence of str
        The allowed values of ``--dtype``.
    """
    parser = argparse.ArgumentParser(prog=f"python -m bench.{name}", description=description)
    counts, lengths = harness.parse_counts, harness.parse_sizes
    parser.add_argument("--ranks", type=counts, default=counts(ranks), help="threads, such as 2,4,8")
    parser.add_argument("--bytes", type=lengths, default=lengths(sizes), help="of a rank's buffer")
    parser.add_argument("--dtype", default="float32", choices=dtypes)
    parser.add_argument("--op", default="SUM", choices=OPS)
    parser.add_argument("--rounds", type=int, default=5, help="of everything in alternation")
    parser.add_argument("--milliseconds", type=float, default=20.0, help="length of one timed region")
    parser.add_argument("--json", type=Path, help="file for every figure of every round")
    return parser


def parse(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line of a sweep, and reject impossible cells.

    Raises
    ------
    SystemExit
        If the dtype does not support the operation, or a size is not a whole number of elements.
    """
    options = parser.parse_args(arguments)
    dtype = dtype_named(options.dtype)
    if not is_supported(dtype, options.op):
        parser.error(f"{options.op} does not support {options.dtype}.")
    for size in options.bytes:
        if size % dtype.itemsize:
            what = f"{options.dtype} elements: give multiples of {dtype.itemsize}."
            parser.error(f"{size} bytes are no whole number of {what}")
    return options


def cells(options: Any, memory_needed_bytes: Callable[[int, int], int]) -> Iterator[Cell]:
    """Yield the cells of a sweep; print which cell is next, or skipped for lack of memory.

    Parameters
    ----------
    options : Namespace
        The result of :func:`parse`.
    memory_needed_bytes : callable
        Returns the bytes for a number of ranks and a size.

    Yields
    ------
    Cell
    """
    budget = harness.available_memory_bytes() // 2
    for num_ranks in options.ranks:
        for size in options.bytes:
            name = f"{num_ranks} ranks, {harness.format_bytes(size)}"
            if memory_needed_bytes(num_ranks, size) > budget:
                print(f"{name}: left out, it needs more than half of the free memory", file=sys.stderr)
                continue
            print(f"{name} ...", file=sys.stderr, flush=True)
            yield Cell(num_ranks, size, options.dtype, options.op)
