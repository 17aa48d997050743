"""Threads of this interpreter as ranks of an all-reduce: verified, then timed."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench import harness, ranks
from bench.reference import Inputs, dtype_named, result_dtype
from bench.results import Cell, Sample
from ringlet.collectives import Algorithm, Group, Member, Op

__all__ = ["TAIL_BYTES", "TAIL_CALLS", "PythonRanks"]

Array = NDArray[Any]

# Up to this size calls are also timed one by one: beyond it a millisecond is no tail.
TAIL_BYTES = 32 << 10
TAIL_CALLS = 2000


class PythonRanks:
    """Threads of this interpreter as ranks, with the buffers of one cell.

    Parameters
    ----------
    cell : Cell
    region_seconds : float
        Length of a timed region.
    pin : bool
        Keep each rank on one core.
    """

    def __init__(self, cell: Cell, *, region_seconds: float, pin: bool) -> None:
        dtype = dtype_named(cell.dtype)
        count = cell.size_bytes // dtype.itemsize
        group = Group(cell.num_ranks)
        self._cell = cell
        self._region_seconds = region_seconds
        self._threads = ranks.RankThreads(
            cell.num_ranks, pin, on_failure=lambda: group.abort("another rank of the benchmark failed")
        )
        self._members: list[Member] = [group.member(rank) for rank in range(cell.num_ranks)]
        self._inputs: list[Array] = [np.empty(count, dtype) for _ in self._members]
        self._outputs: list[Array] = [np.empty(count, result_dtype(dtype, cell.op)) for _ in self._members]

    def verify(self, algorithm: str, variant: str) -> None:
        """Compare the result on every rank with the reference.

        Raises
        ------
        WrongAnswerError
        """
        first = self._inputs[0]
        values = Inputs(self._cell.num_ranks, len(first), first.dtype, algorithm == "ring", self._cell.op)
        calls = self._calls(algorithm, variant)

        def body(rank: int) -> None:
            values.fill(rank, self._inputs[rank])
            self._members[rank].barrier()
            result = calls[rank]()
            values.check(result, f"{algorithm} {variant} {self._cell}, rank {rank}")
            self._members[rank].barrier()

        self._threads.run(body)

    def clear(self) -> None:
        """Set every input to zero: repeated in-place sums would grow without bound, and zeros cost the same."""
        for array in self._inputs:
            array.fill(0)

    def measure(self, algorithm: str, variant: str) -> Sample:
        """Time one round."""
        calls = self._calls(algorithm, variant)
        first = ranks.time_region(self._threads, self._members, calls, 2)
        repeats = harness.calls_for(first.seconds_per_call, self._region_seconds)
        region = ranks.time_region(self._threads, self._members, calls, repeats)
        slowest = 0.0
        if self._cell.size_bytes <= TAIL_BYTES:
            tail_calls = min(TAIL_CALLS, harness.calls_for(region.seconds_per_call, 2 * self._region_seconds))
            slowest = ranks.slowest_call_seconds(self._threads, self._members, calls, tail_calls)
        return Sample(region.seconds_per_call, region.faults_per_call, slowest)

    def _calls(self, algorithm: str, variant: str) -> list[partial[Array]]:
        outs: list[Array | None] = [None] * len(self._members)
        if variant == "in_place":
            outs = list(self._inputs)
        elif variant == "out":
            outs = list(self._outputs)
        op, chosen = Op[self._cell.op], Algorithm[algorithm.upper()]
        return [
            partial(member.all_reduce, array, op, algorithm=chosen, out=out)
            for member, array, out in zip(self._members, self._inputs, outs, strict=True)
        ]
