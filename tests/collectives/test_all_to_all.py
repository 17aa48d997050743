"""all_to_all: block d of every rank's array goes to rank d."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.collectives import Group, Member
from ringlet.errors import CollectiveMismatchError, InvalidArgumentError
from ringlet.testing import run_on_ranks
from tests.collectives.contract import Array, assert_same, every_dtype, inputs_of, outcomes_of


def exchanged(inputs: list[Array], counts: list[list[int]] | None, split: int = 0, concat: int = 0) -> list[Array]:
    """What each rank gets, in plain NumPy."""
    num_ranks = len(inputs)
    blocks = [
        np.split(x, np.cumsum(counts[rank])[:-1] if counts else num_ranks, split) for rank, x in enumerate(inputs)
    ]
    return [
        np.concatenate([blocks[source][target] for source in range(num_ranks)], concat) for target in range(num_ranks)
    ]


@every_dtype
@pytest.mark.parametrize("num_ranks", range(1, 10))
def test_each_rank_has_its_blocks_in_rank_order(num_ranks: int, dtype: str) -> None:
    random = np.random.default_rng(num_ranks)
    ragged = [random.integers(0, 4, num_ranks).tolist() for _ in range(num_ranks)]
    one_way = [[500] + [0] * (num_ranks - 1)] * num_ranks
    wanted: list[tuple[Any, list[Array]]] = [
        (None, [array.reshape(-1, 2) for array in inputs_of(num_ranks, num_ranks * size * 2, dtype)])
        for size in (0, 1, 300)
    ]
    for counts in (ragged, one_way):
        arrays = [inputs_of(1, 2 * sum(row), dtype, rank)[0].reshape(-1, 2) for rank, row in enumerate(counts)]
        wanted.append((counts, arrays))
    found = run_on_ranks(
        num_ranks,
        lambda m: [
            m.all_to_all(inputs[m.rank], counts=None if counts is None else counts[m.rank]) for counts, inputs in wanted
        ],
    )
    for number, (counts, inputs) in enumerate(wanted):
        for rank, expected in enumerate(exchanged(inputs, counts)):
            assert_same(found[rank][number], expected, (rank, number))
            assert not found[rank][number].flags.writeable


@pytest.mark.parametrize("split", [0, 1, 2, -1])
@pytest.mark.parametrize("concat", [0, 1, 2, -2])
@pytest.mark.parametrize("mode", ["equal", "counts"])
@pytest.mark.parametrize("has_out", [False, True])
def test_any_axes_may_be_cut_and_joined(split: int, concat: int, mode: str, has_out: bool) -> None:
    inputs = [array.reshape(4, 6, 8) for array in inputs_of(2, 192, "int32")]
    counts = [[inputs[0].shape[split] - 1, 1]] * 2 if mode == "counts" else None
    wanted = exchanged(inputs, counts, split, concat)

    def step(member: Member) -> Array:
        out = np.empty(wanted[member.rank].shape, np.int32) if has_out else None
        keywords: Any = {} if counts is None else {"counts": counts[member.rank]}
        x = inputs[member.rank]
        result = member.all_to_all(x, split_axis=split, concat_axis=concat, out=out, **keywords)
        assert out is None or result is out
        return result

    for result, expected in zip(run_on_ranks(2, step), wanted, strict=True):
        np.testing.assert_array_equal(result, expected)
        assert result.flags.writeable == has_out


@given(
    counts=st.lists(st.integers(0, 3), min_size=1, max_size=4),
    rows=st.lists(st.integers(0, 3), min_size=4, max_size=4),
    other=st.integers(0, 2),
)
def test_pieces_of_any_length_are_joined_along_another_axis(counts: list[int], rows: list[int], other: int) -> None:
    # Cut along axis 1, joined along axis 0, whose size differs from rank to rank.
    num_ranks = len(counts)
    inputs = [
        np.arange(rows[rank] * sum(counts) * other).reshape(
            rows[rank], -1 if other and rows[rank] and sum(counts) else sum(counts), other
        )
        for rank in range(num_ranks)
    ]
    results = run_on_ranks(
        num_ranks, lambda m: m.all_to_all(inputs[m.rank], split_axis=1, concat_axis=0, counts=counts)
    )
    for result, expected in zip(results, exchanged(inputs, [counts] * num_ranks, 1, 0), strict=True):
        assert_same(np.ascontiguousarray(result), expected)


@pytest.mark.parametrize("size", [2, 2000])
@pytest.mark.parametrize("place", ["out", "in_place", "strided", "overlap", "some"])
def test_an_output_is_the_callers_own(size: int, place: str) -> None:
    inputs = inputs_of(3, 3 * size, "float64")

    def step(member: Member) -> Array:
        memory = np.empty(6 * size + 1)
        x = memory[: 3 * size]
        x[:] = inputs[member.rank]
        out = {
            "out": np.empty(3 * size),
            "in_place": x,
            "strided": np.empty((3 * size, 2))[:, 1],
            "overlap": memory[1 : 3 * size + 1],
            "some": np.empty(3 * size) if member.rank else None,
        }[place]
        result = member.all_to_all(x, out=out)
        assert out is None or result is out
        return result

    for result, expected in zip(run_on_ranks(3, step), exchanged(inputs, None), strict=True):
        np.testing.assert_array_equal(result, expected)


# shape, keywords, words of the message
BAD: list[tuple[tuple[int, ...], dict[str, Any], str]] = [
    ((3,), {}, r"cannot split split_axis 0 of shape \(3,\) into 2 equal blocks: 3 is not a multiple of 2.*counts="),
    ((2, 3), {"split_axis": 1}, r"cannot split split_axis 1 of shape \(2, 3\)"),
    ((2,), {"split_axis": 1}, "split_axis is 1, but the array has ndim 1"),
    ((2,), {"concat_axis": -2}, "concat_axis is -2, but the array has ndim 1"),
    ((), {}, r"split_axis is 0, but the array has no axes \(ndim 0\)"),
    ((4,), {"counts": [1, 2]}, r"counts is \[1, 2\], whose sum is 3: expected the size 4"),
    ((4,), {"counts": [1, 2, 1]}, "expected 2 non-negative numbers, one for each rank"),
    ((4,), {"counts": [6, -2]}, "expected 2 non-negative numbers"),
    ((4,), {"out": np.ones(5)}, r"out is float64\[5\], expected float64"),
    ((4,), {"out": np.ones(4, int)}, r"out is int64\[4\], expected float64"),
]


@pytest.mark.parametrize(("shape", "keywords", "words"), BAD)
def test_arguments_that_do_not_fit_are_refused(shape: tuple[int, ...], keywords: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidArgumentError, match=words):
        Group(2, timeout_seconds=10).member(0).all_to_all(np.ones(shape), **keywords)


def test_pieces_that_cannot_be_joined_are_refused_on_all_ranks_and_the_group_goes_on() -> None:
    def unequal(member: Member) -> None:
        counts = [1, 3] if member.rank else [3, 1]
        with pytest.raises(
            InvalidArgumentError, match=r"blocks of unequal size.*\[3, 1\] at rank 0 and \[1, 3\] at rank 1"
        ):
            member.all_to_all(np.ones((4, 2)), counts=counts, concat_axis=1)
        x = np.ones((4, 2, 2 + member.rank))
        with pytest.raises(
            InvalidArgumentError,
            match=r"the sizes of the other axes of x are \[4, 2\] at rank 0 and \[4, 3\] at rank 1",
        ):
            member.all_to_all(x, counts=[2, 2], concat_axis=1)
        member.barrier()

    run_on_ranks(2, unequal)


def test_an_output_without_room_is_refused_on_all_ranks() -> None:
    def step(member: Member) -> Any:
        return member.all_to_all(np.ones(3), counts=[1, 2], out=np.empty(2 if member.rank else 3))

    for outcome in outcomes_of(2, step):
        assert isinstance(outcome, InvalidArgumentError)
        assert "out of rank 0 has length 3" in str(outcome)


@pytest.mark.parametrize(
    "step",
    [
        lambda m: m.all_to_all(np.ones(4), counts=[2, 2] if m.rank else None),
        lambda m: m.all_to_all(np.ones((4, 4)), split_axis=m.rank, concat_axis=m.rank),
        lambda m: m.all_to_all(np.ones((4, 4)), concat_axis=m.rank),
        lambda m: m.all_to_all(np.ones(4 + 2 * m.rank)),
        lambda m: m.all_to_all(np.ones((4, 2 + m.rank)), counts=[2, 2]),
        lambda m: m.all_to_all(np.ones(4, "f4" if m.rank else "f8")),
    ],
)
def test_calls_that_do_not_fit_together_are_a_mismatch(step: Any) -> None:
    for outcome in outcomes_of(2, step):
        assert isinstance(outcome, CollectiveMismatchError)
