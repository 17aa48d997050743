"""Measures an all-reduce by one thread that has the buffers of all ranks, compared with the fastest NumPy code.

Run as ``python -m bench.controller --ranks 2,4,8 --bytes 8B:64MiB``; ``bench/README.md`` defines the columns.
"""

from __future__ import annotations

import argparse
import sys
import timeit
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench import command, goals, harness, report
from bench.controller_results import ControllerResult, table
from bench.machine import Others, describe_machine
from bench.reference import Inputs, dtype_named
from bench.results import Cell
from ringlet.collectives import Group, Op, all_reduce_buffers

__all__ = ["JOBS", "Controller", "main", "numpy_ways", "ringlet_calls"]

Array = NDArray[Any]

JOBS = ("shared", "out", "in_place")

# How many threads may share the work: what a call says of it.
_WORKERS = {"default": "", "1": ", workers=1", "2": ", workers=2"}

_UFUNCS = {"SUM": np.add, "PROD": np.multiply, "MIN": np.minimum, "MAX": np.maximum}

# NumPy combines narrow floats in another way, so that there would be nothing to compare.
_DTYPES = ("float32", "float64", "int32", "int64")

# Bytes of each buffer that NumPy works on at a time, so that they stay in a cache.
_BLOCKS = (32 << 10, 128 << 10, 512 << 10)


def ringlet_calls(job: str, workers: str) -> list[str]:
    """Return the expressions that do a job on a list of buffers ``x``, into ``r``, a list ``y``, or ``x`` itself.

    Examples
    --------
    >>> ringlet_calls("in_place", "2")
    ['group.all_reduce_all(x, op, outs=x, workers=2)']
    """
    limit = _WORKERS[workers]
    if job != "shared":
        return [f"group.all_reduce_all(x, op, outs={'x' if job == 'in_place' else 'y'}{limit})"]
    calls = ("all_reduce_buffers(x, op{})", "all_reduce_buffers(x, op, out=r{})", "group.all_reduce_all(x, op{})")
    return [call.format(limit) for call in calls]


def numpy_ways(job: str, num_ranks: int, block_bytes: Sequence[int]) -> dict[str, str]:
    """Return NumPy statements for the same job, by name.

    Parameters
    ----------
    job : str
    num_ranks : int
    block_bytes : sequence of int
        The statement for each of them works on the blocks ``blocks[block_bytes]``: pairs of lists of arrays, of inputs
        and of outputs.

    Returns
    -------
    dict of str to str

    Examples
    --------
    >>> numpy_ways("in_place", 3, [])
    {'add in turn': 'add(x0, x1, x0); add(x0, x2, x0); copyto(x1, x0); copyto(x2, x0)'}
    """
    into = {"shared": "r", "out": "y0", "in_place": "x0"}[job]
    steps = [f"add(x0, x1, {into})", *(f"add({into}, x{rank}, {into})" for rank in range(2, num_ranks))]
    if job != "shared":
        steps += [f"copyto({into[0]}{rank}, {into})" for rank in range(1, num_ranks)]
    ways = {"add in turn": "; ".join(steps)}
    if job == "shared":
        ways["add.reduce"] = "add.reduce(stack, axis=0, out=r)"
    for size in block_bytes:
        ways[f"in blocks of {harness.format_bytes(size)}"] = (
            f"for parts, results in blocks[{size}]:\n"
            "    total = results[0]\n"
            "    add(parts[0], parts[1], total)\n"
            "    for part in parts[2:]: add(total, part, total)\n"
            "    for result in results[1:]: copyto(result, total)"
        )
    return ways


class Controller:
    """The buffers of all ranks of one cell, in one thread.

    Parameters
    ----------
    cell : Cell
    region_seconds : float
        Length of a timed region.
    """

    def __init__(self, cell: Cell, *, region_seconds: float) -> None:
        dtype = dtype_named(cell.dtype)
        count = cell.size_bytes // dtype.itemsize
        self._cell = cell
        self._region_seconds = region_seconds
        self._count = count
        self._x: list[Array] = [np.zeros(count, dtype) for _ in range(cell.num_ranks)]
        self._y: list[Array] = [np.zeros(count, dtype) for _ in range(cell.num_ranks)]
        self._r: Array = np.zeros(count, dtype)
        self._stack: Array = np.zeros((cell.num_ranks, count), dtype)
        self._names: dict[str, Any] = {
            "group": Group(cell.num_ranks), "all_reduce_buffers": all_reduce_buffers, "op": Op[cell.op],
            "add": _UFUNCS[cell.op], "copyto": np.copyto,
            "x": self._x, "y": self._y, "r": self._r, "stack": self._stack,
            **{f"x{rank}": array for rank, array in enumerate(self._x)},
            **{f"y{rank}": array for rank, array in enumerate(self._y)},
        }  # fmt: skip

    def numpy_ways(self, job: str) -> dict[str, str]:
        """Return the NumPy statements for buffers of this size."""
        sizes = [size for size in _BLOCKS if size < self._cell.size_bytes]
        return numpy_ways(job, self._cell.num_ranks, sizes)

    def verify(self, job: str) -> None:
        """Compare the result of every call and statement with the reference; afterwards the buffers hold zeros.

        Raises
        ------
        WrongAnswerError
        """
        for workers in _WORKERS:
            for call in ringlet_calls(job, workers):
                values = self._fill(is_exact=False)
                result = eval(call, self._names_for(job))
                results = [result] if isinstance(result, np.ndarray) else result
                _check(values, results, f"{call} {self._cell}")
        for way, statement in self.numpy_ways(job).items():
            values = self._fill(is_exact=True)  # NumPy promises no order
            exec(statement, self._names_for(job))
            _check(values, self._results(job), f"NumPy, {way} {self._cell}")
        for array in (*self._x, *self._y, self._r, self._stack):
            array.fill(0)  # sums in place would grow without bound; zeros cost the same and stay

    def measure(self, job: str, statement: str) -> float:
        """Return the seconds of one run of a statement."""
        timer = timeit.Timer(statement, globals=self._names_for(job))
        timer.timeit(2)
        first = timer.timeit(3) / 3
        repeats = harness.calls_for(first, self._region_seconds)
        return timer.timeit(repeats) / repeats

    def _results(self, job: str) -> list[Array]:
        return {"shared": [self._r], "out": self._y, "in_place": self._x}[job]

    def _names_for(self, job: str) -> dict[str, Any]:
        return {**self._names, "blocks": {size: self._blocks(job, size) for size in _BLOCKS}}

    def _blocks(self, job: str, block_bytes: int) -> list[tuple[list[Array], list[Array]]]:
        step = block_bytes // self._r.itemsize
        runs = [slice(begin, begin + step) for begin in range(0, self._count, step)]
        return [([x[run] for x in self._x], [result[run] for result in self._results(job)]) for run in runs]

    def _fill(self, *, is_exact: bool) -> Inputs:
        values = Inputs(self._cell.num_ranks, self._count, self._r.dtype, is_exact, self._cell.op)
        for rank, array in enumerate(self._x):
            values.fill(rank, array)
            self._stack[rank] = array
        for array in (*self._y, self._r):
            array.fill(0)
        return values


def _check(values: Inputs, results: Sequence[Array], who: str) -> None:
    """Compare the first result with the reference, which is slow to compute, and the others with the first."""
    first = results[0]
    values.check(first, who)
    for rank, array in enumerate(results):
        if array.dtype != first.dtype or not np.array_equal(array.view(np.uint8), first.view(np.uint8)):
            values.check(array, f"{who}, rank {rank}")


def _measure_job(cell: Cell, job: str, controller: Controller, rounds: int) -> ControllerResult:
    calls = {workers: ringlet_calls(job, workers) for workers in _WORKERS}
    ways = controller.numpy_ways(job)
    controller.verify(job)
    others = Others()
    statements = {**{call: call for some in calls.values() for call in some}, **ways}
    taken: Mapping[str, list[float]] = harness.alternate(
        {name: partial(controller.measure, job, statement) for name, statement in statements.items()}, rounds=rounds
    )
    share = others.share()
    controller.verify(job)
    return ControllerResult(
        cell, job,
        ringlet={workers: {call: taken[call] for call in some} for workers, some in calls.items()},
        numpy={way: taken[way] for way in ways},
        others=share,
    )  # fmt: skip


def memory_needed_bytes(num_ranks: int, size_bytes: int) -> int:
    """Return the peak memory of a cell: inputs, outputs, a stack of the inputs, and two results.

    Examples
    --------
    >>> memory_needed_bytes(2, 100)
    800
    """
    return (3 * num_ranks + 2) * size_bytes


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = command.sweep_parser("controller", __doc__, ranks="2,4,8", sizes="8B:64MiB", dtypes=_DTYPES)
    parser.add_argument("--jobs", type=command.words(JOBS), default=list(JOBS))
    parser.set_defaults(milliseconds=10.0)
    options = command.parse(parser, arguments)
    if options.op not in _UFUNCS:
        parser.error(f"NumPy has no single function for {options.op}: give one of {', '.join(_UFUNCS)}.")
    if min(options.ranks) < 2:
        parser.error("there is nothing to combine on one rank: give --ranks of at least 2.")
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
    print(*machine.lines(), "", sep="\n")
    results: list[ControllerResult] = []
    for cell in command.cells(options, memory_needed_bytes):
        controller = Controller(cell, region_seconds=options.milliseconds / 1e3)
        results += [_measure_job(cell, job, controller, options.rounds) for job in options.jobs]
    reached = goals.controller_goals(results)
    print(table(results), "\n" + goals.table(reached), sep="\n")
    if options.json:
        report.write_json(options.json, {
            "benchmark": "controller", "machine": machine.as_dict(),
            "results": [result.as_dict() for result in results], "goals": [goal.as_dict() for goal in reached],
        })  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
