"""Any sequence of calls gives what plain NumPy gives, call by call: nothing is left over from one call to the next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ringlet.collectives import Algorithm, Member, Op
from ringlet.testing import reduce_in_ring_order, reduce_in_tree_order, run_on_ranks, scan_in_rank_order
from tests.collectives.contract import DTYPES, KIND_OF, OPERATIONS, Array, assert_same, inputs_of

ROWS = 3  # elements in a row of what is moved


@dataclass(frozen=True)
class Step:
    """One call of all ranks."""

    call: Callable[[Member, bool], Any]
    """Takes the member and whether it gives an output."""
    expected: list[Array | None]
    """For each rank."""


def output(expected: Array | None, has_out: bool) -> Array | None:
    return np.empty(expected.shape, expected.dtype) if has_out and expected is not None else None


def reduction(random: np.random.Generator, num_ranks: int) -> Step:
    dtype = str(random.choice([name for name in DTYPES if KIND_OF[name] != "narrow"]))
    ops = OPERATIONS[KIND_OF[dtype]]
    op = ops[random.integers(len(ops))]
    count = int(random.choice([0, 1, 50, 600, 9000])) * num_ranks
    inputs = inputs_of(num_ranks, count, dtype, int(random.integers(100)))
    root = int(random.integers(num_ranks))
    total: Any = reduce_in_tree_order(inputs, op)
    kind = random.integers(5)
    if kind == 0:
        expected: list[Any] = [total] * num_ranks
        return Step(lambda m, has_out: m.all_reduce(inputs[m.rank], op, out=output(total, has_out)), expected)
    if kind == 1:
        ring = reduce_in_ring_order(inputs, op)
        call = lambda m, has_out: m.all_reduce(  # noqa: E731
            inputs[m.rank], op, algorithm=Algorithm.RING, out=output(ring, has_out)
        )
        return Step(call, [ring] * num_ranks)
    if kind == 2:
        expected = [total if rank == root else None for rank in range(num_ranks)]
        return Step(
            lambda m, has_out: m.reduce(inputs[m.rank], op, root, out=output(expected[m.rank], has_out)), expected
        )
    if kind == 3:
        blocks: list[Any] = np.split(total, num_ranks)
        return Step(
            lambda m, has_out: m.reduce_scatter(inputs[m.rank], op, out=output(blocks[m.rank], has_out)), blocks
        )
    if op is Op.MEAN:
        op = Op.SUM
    scanned: list[Any] = list(scan_in_rank_order(inputs, op))
    return Step(lambda m, has_out: m.exclusive_scan(inputs[m.rank], op, out=output(scanned[m.rank], has_out)), scanned)


def movement(random: np.random.Generator, num_ranks: int) -> Step:
    dtype = str(random.choice([name for name in DTYPES if KIND_OF[name] != "narrow"]))
    top = int(random.choice([1, 5, 300, 3000]))
    sizes = random.integers(0, top, (num_ranks, num_ranks)).tolist()
    if random.integers(2):
        sizes = [[top] * num_ranks] * num_ranks
    counts = [sum(row) for row in sizes]
    inputs = [inputs_of(1, count * ROWS, dtype, rank)[0].reshape(-1, ROWS) for rank, count in enumerate(counts)]
    blocks = [np.split(x, np.cumsum(row)[:-1]) for x, row in zip(inputs, sizes, strict=True)]
    joined = np.concatenate(inputs)
    root = int(random.integers(num_ranks))
    kind = random.integers(5)
    if kind == 0:
        return Step(lambda m, has_out: m.all_gather(inputs[m.rank], out=output(joined, has_out)), [joined] * num_ranks)
    if kind == 1:
        at_root = [joined if rank == root else None for rank in range(num_ranks)]
        return Step(lambda m, has_out: m.gather(inputs[m.rank], root, out=output(at_root[m.rank], has_out)), at_root)
    if kind == 2:
        pieces: list[Any] = blocks[root]

        def scatter(member: Member, has_out: bool) -> Array:
            out = output(pieces[member.rank], has_out)
            if member.rank != root:
                return member.scatter(root=root, out=out)
            return member.scatter(inputs[root], root, counts=sizes[root], out=out)

        return Step(scatter, pieces)
    if kind == 3:
        came: list[Any] = [np.concatenate([row[rank] for row in blocks]) for rank in range(num_ranks)]
        call = lambda m, has_out: m.all_to_all(  # noqa: E731
            inputs[m.rank], counts=sizes[m.rank], out=output(came[m.rank], has_out)
        )
        return Step(call, came)
    sent = inputs[root]
    call = lambda m, has_out: m.broadcast(sent if m.rank == root else None, root, out=output(sent, has_out))  # noqa: E731
    return Step(call, [sent] * num_ranks)


@given(num_ranks=st.integers(1, 6), seed=st.integers(0, 2**32 - 1), num_parts=st.integers(1, 3))
def test_any_sequence_of_calls_gives_what_numpy_gives(num_ranks: int, seed: int, num_parts: int) -> None:
    random = np.random.default_rng(seed)
    kinds = [(reduction, movement)[random.integers(2)] for _ in range(12)]
    parts = [[rank for rank in range(num_ranks) if rank % num_parts == color] for color in range(num_parts)]
    steps = {color: [kind(random, len(part)) for kind in kinds] for color, part in enumerate(parts) if part}
    gives_output = random.integers(0, 2, len(kinds)).astype(bool).tolist()

    def drive(member: Member) -> list[Any]:
        part = member.split(member.rank % num_parts)
        assert part is not None
        mine = steps[member.rank % num_parts]
        return [step.call(part, has_out) for step, has_out in zip(mine, gives_output, strict=True)]

    for rank, results in enumerate(run_on_ranks(num_ranks, drive)):
        for step, has_out, result in zip(steps[rank % num_parts], gives_output, results, strict=True):
            expected = step.expected[rank // num_parts]
            if expected is None:
                assert result is None
            else:
                assert_same(result, np.ascontiguousarray(expected))
                assert result.flags.writeable == has_out
