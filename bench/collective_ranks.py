"""Threads of this interpreter as ranks of the collectives beside all-reduce: verified, then timed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench import harness, ranks
from bench.python_ranks import TAIL_BYTES, TAIL_CALLS
from bench.reference import Inputs, WrongAnswerError, dtype_named
from bench.results import Cell, Sample
from ringlet.collectives import Group, Member, Op

__all__ = ["CollectiveRanks"]

Array = NDArray[Any]

ROOT = 0

_GATHERS = ("all_gather", "gather")
_FROM_ROOT = ("broadcast", "scatter")
_TO_ROOT = ("gather", "reduce")
_REDUCTIONS = ("reduce", "reduce_scatter", "exclusive_scan")


class CollectiveRanks:
    """Threads of this interpreter as ranks, with the buffers of one cell.

    The larger of the two buffers of a rank has the cell's size: a rank passes one block of it to a gather, and gets one
    of a reduce-scatter or a scatter. All roots are rank 0; a permutation sends from every rank to the next one.

    Parameters
    ----------
    cell : Cell
        A cell whose operation preserves the dtype.
    region_seconds : float
        Length of a timed region.
    pin : bool
        Keep each rank on one core.
    """

    def __init__(self, cell: Cell, *, region_seconds: float, pin: bool) -> None:
        dtype = dtype_named(cell.dtype)
        self._count = cell.size_bytes // dtype.itemsize
        self._block = self._count // cell.num_ranks
        group = Group(cell.num_ranks)
        self._cell = cell
        self._region_seconds = region_seconds
        self._threads = ranks.RankThreads(
            cell.num_ranks, pin, on_failure=lambda: group.abort("another rank of the benchmark failed")
        )
        self._members: list[Member] = [group.member(rank) for rank in range(cell.num_ranks)]
        self._x: list[Array] = [np.zeros(self._count, dtype) for _ in self._members]
        self._y: list[Array] = [np.zeros(self._count, dtype) for _ in self._members]

    def verify(self, collective: str, variant: str) -> None:
        """Compare the result on every rank with the reference, then zero the buffers.

        Raises
        ------
        WrongAnswerError
        """
        count = self._block if collective in _GATHERS else self._count
        values = Inputs(self._cell.num_ranks, count, self._x[0].dtype, False, self._cell.op)

        def body(rank: int) -> None:
            member = self._members[rank]
            self._clear(rank)
            given = self._given(rank, collective, variant)
            if given is not None:
                values.fill(rank, given)
            member.barrier()
            result = self._call(rank, collective, variant)()
            self._check(result, values, collective, rank, f"{collective} {variant} {self._cell}, rank {rank}")
            member.barrier()
            self._clear(rank)

        self._threads.run(body)

    def measure(self, collective: str, variant: str) -> Sample:
        """Time one round."""
        calls = [self._call(rank, collective, variant) for rank in range(self._cell.num_ranks)]
        first = ranks.time_region(self._threads, self._members, calls, 2)
        repeats = harness.calls_for(first.seconds_per_call, self._region_seconds)
        region = ranks.time_region(self._threads, self._members, calls, repeats)
        slowest = 0.0
        if self._cell.size_bytes <= TAIL_BYTES:
            tail_calls = min(TAIL_CALLS, harness.calls_for(region.seconds_per_call, 2 * self._region_seconds))
            slowest = ranks.slowest_call_seconds(self._threads, self._members, calls, tail_calls)
        return Sample(region.seconds_per_call, region.faults_per_call, slowest)

    def _clear(self, rank: int) -> None:
        """Zero both buffers: repeated in-place sums would grow without bound, and zeros cost the same."""
        self._x[rank].fill(0)
        self._y[rank].fill(0)

    def _blocks(self, array: Array, rank: int) -> Array:
        return array[rank * self._block : (rank + 1) * self._block]

    def _given(self, rank: int, collective: str, variant: str) -> Array | None:
        if collective in _FROM_ROOT and rank != ROOT:
            return None
        if collective in _GATHERS:
            return self._blocks(self._x[rank], rank if variant == "in_place" else 0)
        return self._x[rank]

    def _out(self, rank: int, collective: str, variant: str) -> Array | None:
        if variant == "shared" or (collective in _TO_ROOT and rank != ROOT):
            return None
        buffer = self._x[rank] if variant == "in_place" else self._y[rank]
        if collective in ("reduce_scatter", "scatter"):
            return self._blocks(buffer, rank if variant == "in_place" else 0)
        return buffer

    def _call(self, rank: int, collective: str, variant: str) -> Callable[[], Any]:
        given, out = self._given(rank, collective, variant), self._out(rank, collective, variant)
        arguments: list[Any] = [given]
        if collective in _REDUCTIONS:
            arguments.append(Op[self._cell.op])
        if collective in (*_FROM_ROOT, *_TO_ROOT):
            arguments.append(ROOT)
        if collective == "collective_permute":
            num_ranks = self._cell.num_ranks
            arguments.append([(source, (source + 1) % num_ranks) for source in range(num_ranks)])
        method = getattr(self._members[rank], collective)
        return partial(method, *arguments) if out is None else partial(method, *arguments, out=out)

    def _check(self, result: Array | None, values: Inputs, collective: str, rank: int, who: str) -> None:
        if collective in _TO_ROOT and rank != ROOT:
            if result is not None:
                raise WrongAnswerError(f"{who}: gave a result, which only the root gets.")
            return
        assert result is not None
        mine = {"first": rank * self._block, "count": self._block}
        if collective == "reduce":
            values.check(result, who)
        elif collective == "reduce_scatter":
            values.check(result, who, **mine)
        elif collective == "exclusive_scan":
            values.check_scan(result, rank, who)
        elif collective in (*_GATHERS, "all_to_all"):
            part = mine if collective == "all_to_all" else {}
            for other in range(self._cell.num_ranks):
                values.check_from(self._blocks(result, other), other, who, **part)
            if len(result) != self._count:
                raise WrongAnswerError(f"{who}: gave {len(result)} elements, expected {self._count}.")
        else:
            source = (rank - 1) % self._cell.num_ranks if collective == "collective_permute" else ROOT
            values.check_from(result, source, who, **(mine if collective == "scatter" else {}))
