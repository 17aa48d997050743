"""all_reduce_many: many arrays in one pass, or in passes of a size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.collectives import Algorithm, Group, Member, Op
from ringlet.collectives.argument_parsing import pass_ends
from ringlet.errors import CollectiveMismatchError, InvalidArgumentError
from ringlet.testing import reduce_in_tree_order, run_on_ranks
from tests.collectives.contract import assert_same, inputs_of, outcomes_of

MIXED = ("float32", "int64", "float64", "uint8", "float16", "complex64")


@given(
    shapes=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 90)), max_size=8),
    num_ranks=st.integers(1, 4),
    op=st.sampled_from([Op.SUM, Op.MEAN, Op.PROD]),
    into_outs=st.booleans(),
    bytes_per_pack=st.sampled_from([0, 1, 2000, 20_000]),
)
def test_many_arrays_are_reduced_as_one_by_one(
    shapes: list[tuple[int, int]], num_ranks: int, op: Op, into_outs: bool, bytes_per_pack: int
) -> None:
    inputs = [
        [array.reshape(shape) for array in inputs_of(num_ranks, shape[0] * shape[1], MIXED[i % 6])]
        for i, shape in enumerate(shapes)
    ]
    expected = [reduce_in_tree_order(ranks, op) for ranks in inputs]

    def step(member: Member) -> list[Any]:
        outs = [np.empty(e.shape, e.dtype) for e in expected] if into_outs else None
        mine = [ranks[member.rank] for ranks in inputs]
        return member.all_reduce_many(mine, op, outs=outs, bytes_per_pack=bytes_per_pack)

    for results in run_on_ranks(num_ranks, step):
        assert len(results) == len(expected)
        for result, wanted in zip(results, expected, strict=True):
            assert_same(result, wanted)
            assert result.flags.writeable == into_outs


@pytest.mark.parametrize("algorithm", [Algorithm.DIRECT, Algorithm.RING])
def test_passes_change_no_bits(algorithm: Algorithm) -> None:
    inputs = [[*inputs_of(1, 30_000, "float32", rank), *inputs_of(1, 500, "float16", rank)] * 3 for rank in range(3)]

    def step(member: Member) -> list[bytes]:
        return [
            b"".join(
                result.tobytes()
                for result in member.all_reduce_many(inputs[member.rank], algorithm=algorithm, bytes_per_pack=size)
            )
            for size in (0, 1, 121_000, 10**9)
        ]

    assert len({bits for results in run_on_ranks(3, step) for bits in results}) == 1


def test_any_sequence_of_arrays_is_taken() -> None:
    member = Group(1).member(0)
    assert [x.tolist() for x in member.all_reduce_many(np.eye(2))] == [[1, 0], [0, 1]]
    assert [x.tolist() for x in member.all_reduce_many(iter([1, [2, 3]]))] == [1, [2, 3]]  # type: ignore[arg-type]
    assert member.all_reduce_many([]) == []
    assert member.all_reduce_many([], bytes_per_pack=5) == []


# sizes of arrays, bytes per pack, where passes end
PASSES = [
    ([], 0, [0]),
    ([], 10, [0]),
    ([40, 40, 40], 0, [3]),
    ([40, 40, 40], 100, [2, 3]),
    ([40, 40, 40], 80, [2, 3]),
    ([40, 40, 40], 1, [1, 2, 3]),
    ([500, 10, 10, 500], 100, [1, 3, 4]),
    ([0, 0, 100, 0], 100, [4]),
]


@pytest.mark.parametrize(("sizes", "bytes_per_pack", "ends"), PASSES)
def test_consecutive_arrays_share_a_pass_up_to_the_size(sizes: list[int], bytes_per_pack: int, ends: list[int]) -> None:
    assert pass_ends(sizes, bytes_per_pack) == ends


@pytest.mark.parametrize("size", [-1, 1.5, "1"])
def test_a_size_that_is_none_is_refused(size: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"bytes_per_pack is .*expected a number of bytes, or 0"):
        Group(1).member(0).all_reduce_many([1.0], bytes_per_pack=size)


def test_an_array_at_fault_is_named_before_any_pass_begins() -> None:
    member = Group(2, timeout_seconds=10).member(0)
    arrays = [np.ones(2), np.ones(2), np.array([True])]
    for size in (0, 8):
        with pytest.raises(InvalidArgumentError, match="no SUM of bool"):
            member.all_reduce_many(arrays, bytes_per_pack=size)
        with pytest.raises(InvalidArgumentError, match="array 1 of 2, which is dtype object"):
            member.all_reduce_many([1, np.array([None])], bytes_per_pack=size)
    assert member._core.calls == 0


def test_another_number_of_arrays_or_outs_is_refused() -> None:
    def step(member: Member) -> Any:
        return member.all_reduce_many([np.ones(3)] * (2 + member.rank), bytes_per_pack=30)

    assert all(isinstance(outcome, CollectiveMismatchError) for outcome in outcomes_of(2, step))
    with pytest.raises(InvalidArgumentError, match="out has 1 arrays for 2 inputs"):
        Group(1).member(0).all_reduce_many([1.0, 2.0], outs=[np.zeros(())])
