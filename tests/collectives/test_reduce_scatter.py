"""reduce_scatter: each rank has its block of the result of all_reduce."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ringlet.collectives import Group, Member, Op
from ringlet.errors import CollectiveMismatchError, InvalidArgumentError
from ringlet.testing import reduce_in_tree_order, run_on_ranks
from tests.collectives.contract import (
    KIND_OF,
    OPERATIONS,
    Array,
    assert_same,
    every_dtype,
    inputs_of,
    outcomes_of,
    special_of,
)


def block_of(array: Array, rank: int, num_ranks: int, axis: int = 0) -> Array:
    return np.ascontiguousarray(np.split(array, num_ranks, axis)[rank])


@every_dtype
@pytest.mark.parametrize("num_ranks", range(1, 10))
def test_each_rank_has_the_bits_of_its_block(num_ranks: int, dtype: str) -> None:
    wanted = []
    for number, op in enumerate(OPERATIONS[KIND_OF[dtype]]):
        count = num_ranks * (0, 1, 3, 65, 700)[(number + num_ranks) % 5]
        wanted.append((op, (special_of if number % 2 else inputs_of)(num_ranks, count, dtype)))
    found = run_on_ranks(num_ranks, lambda m: [m.reduce_scatter(inputs[m.rank], op) for op, inputs in wanted])
    for number, (op, inputs) in enumerate(wanted):
        expected = reduce_in_tree_order(inputs, op)
        for rank, results in enumerate(found):
            assert_same(results[number], block_of(expected, rank, num_ranks), (op, rank))
            assert not results[number].flags.writeable


@pytest.mark.parametrize("count", [12, 12_000])
@pytest.mark.parametrize("place", ["out", "in_place", "strided", "other block", "some"])
def test_an_output_is_the_callers_own(count: int, place: str) -> None:
    inputs = inputs_of(3, count, "float32")
    expected = reduce_in_tree_order(inputs)
    size = count // 3

    def step(member: Member) -> Array:
        x = inputs[member.rank].copy()
        blocks = x.reshape(3, size)
        out: Any = {
            "out": np.empty(size, x.dtype),
            "in_place": blocks[member.rank],
            "strided": np.empty((size, 2), x.dtype)[:, 0],
            "other block": blocks[(member.rank + 1) % 3],
            "some": np.empty(size, x.dtype) if member.rank == 1 else None,
        }[place]
        result = member.reduce_scatter(x, out=out)
        assert out is None or result is out
        return result

    for rank, result in enumerate(run_on_ranks(3, step)):
        assert_same(np.ascontiguousarray(result), block_of(expected, rank, 3))


@pytest.mark.parametrize("num_ranks", [1, 2, 4])
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
@pytest.mark.parametrize("has_out", [False, True])
def test_any_axis_may_be_cut(num_ranks: int, axis: int, has_out: bool) -> None:
    shape = (8, 4, 12)
    inputs = [array.reshape(shape) for array in inputs_of(num_ranks, 384, "int16")]
    expected = reduce_in_tree_order(inputs)

    def step(member: Member) -> Array:
        block = block_of(expected, member.rank, num_ranks, axis)
        out = np.empty(block.shape, np.int16) if has_out else None
        return member.reduce_scatter(inputs[member.rank], axis=axis, out=out)

    for rank, result in enumerate(run_on_ranks(num_ranks, step)):
        np.testing.assert_array_equal(result, block_of(expected, rank, num_ranks, axis))


def test_the_mean_of_integers_is_a_float_along_any_axis() -> None:
    inputs = [array.reshape(2, 2) for array in inputs_of(2, 4, "int32")]
    expected = reduce_in_tree_order(inputs, Op.MEAN)
    for axis in (0, 1):
        results = run_on_ranks(2, lambda m: m.reduce_scatter(inputs[m.rank], Op.MEAN, axis=axis))  # noqa: B023
        for rank, result in enumerate(results):
            assert_same(np.ascontiguousarray(result), block_of(expected, rank, 2, axis))


# shape, axis, words of the message
BAD = [
    ((4, 3), 1, r"cannot split axis 1 of shape \(4, 3\) into 2 equal blocks: 3 is not a multiple of 2. Pad it to 4"),
    ((3, 2), 0, r"cannot split axis 0 of shape \(3, 2\) into 2 equal blocks"),
    ((4,), 1, r"axis is 1, but the array has ndim 1: expected -1 to 0"),
    ((4,), -2, r"axis is -2, but the array has ndim 1"),
    ((), 0, r"axis is 0, but the array has no axes \(ndim 0\)"),
    ((4,), 1.0, r"axis is 1.0: expected the number of an axis"),
]


@pytest.mark.parametrize(("shape", "axis", "words"), BAD)
def test_what_cannot_be_cut_is_refused(shape: tuple[int, ...], axis: Any, words: str) -> None:
    with pytest.raises(InvalidArgumentError, match=words):
        Group(2, timeout_seconds=10).member(0).reduce_scatter(np.ones(shape), axis=axis)


def test_another_axis_on_another_rank_is_a_mismatch_even_where_shapes_agree() -> None:
    for outcome in outcomes_of(2, lambda m: m.reduce_scatter(np.ones((4, 4)), axis=m.rank)):
        assert isinstance(outcome, CollectiveMismatchError)
        assert "reduce_scatter(axis=1)" in str(outcome)
