"""exclusive_scan: each rank has the combination of the ranks before it."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.collectives import Group, Member, Op
from ringlet.errors import InvalidArgumentError
from ringlet.testing import identity_of, run_on_ranks, scan_in_rank_order
from tests.collectives.contract import (
    KIND_OF,
    OPERATIONS,
    Array,
    assert_same,
    bits,
    dtype_of,
    every_dtype,
    inputs_of,
    special_of,
)


@every_dtype
@pytest.mark.parametrize("num_ranks", range(1, 10))
def test_each_rank_has_the_bits_of_the_reference(num_ranks: int, dtype: str) -> None:
    wanted = []
    for number, op in enumerate(op for op in OPERATIONS[KIND_OF[dtype]] if op is not Op.MEAN):
        count = (0, 1, 64, 501, 4097)[(number + num_ranks) % 5]
        wanted.append((op, (special_of if number % 2 else inputs_of)(num_ranks, count, dtype)))
    found = run_on_ranks(num_ranks, lambda m: [m.exclusive_scan(inputs[m.rank], op) for op, inputs in wanted])
    for number, (op, inputs) in enumerate(wanted):
        for rank, expected in enumerate(scan_in_rank_order(inputs, op)):
            assert_same(found[rank][number], expected, (op, rank, inputs[0].shape))
            assert not found[rank][number].flags.writeable


@every_dtype
def test_rank_0_has_what_changes_nothing(dtype: str) -> None:
    inputs = inputs_of(2, 100, dtype)
    for op in OPERATIONS[KIND_OF[dtype]]:
        if op is Op.MEAN:
            continue
        identity = np.full(100, identity_of(op, dtype_of(dtype)), dtype_of(dtype))
        assert_same(run_on_ranks(2, lambda m: m.exclusive_scan(inputs[m.rank], op))[0], identity)  # noqa: B023
        # -0 + 0 is 0, which is another zero but the same number
        combined = scan_in_rank_order([identity, inputs[0], inputs[1]], op)[2]
        assert bits(combined) == bits(inputs[0]) or op is Op.SUM


@pytest.mark.parametrize("count", [7, 7000])
@pytest.mark.parametrize("place", ["out", "in_place", "strided", "overlap", "some"])
def test_an_output_is_the_callers_own(count: int, place: str) -> None:
    inputs = inputs_of(3, count, "float32")

    def step(member: Member) -> Array:
        memory = np.empty(2 * count + 1, np.float32)
        x = memory[:count]
        x[:] = inputs[member.rank]
        out = {
            "out": np.empty(count, x.dtype),
            "in_place": x,
            "strided": np.empty((count, 2), x.dtype)[:, 0],
            "overlap": memory[1 : count + 1],
            "some": np.empty(count, x.dtype) if member.rank else None,
        }[place]
        result = member.exclusive_scan(x, out=out)
        assert out is None or result is out
        return result

    for result, expected in zip(run_on_ranks(3, step), scan_in_rank_order(inputs), strict=True):
        assert_same(np.ascontiguousarray(result), expected)


def test_offsets_of_ragged_arrays_are_its_plain_use() -> None:
    counts = [3, 0, 5, 2]
    assert run_on_ranks(4, lambda m: m.exclusive_scan(counts[m.rank]).item()) == [0, 3, 3, 8]


def test_the_mean_is_refused() -> None:
    with pytest.raises(
        InvalidArgumentError,
        match="exclusive_scan does not support MEAN: use SUM and, on ranks above 0, divide by the rank",
    ):
        Group(1).member(0).exclusive_scan(np.ones(2), Op.MEAN)
