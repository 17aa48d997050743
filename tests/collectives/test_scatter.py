"""scatter: blocks of the array of one rank."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ringlet.collectives import Group, Member
from ringlet.errors import CollectiveMismatchError, InvalidArgumentError
from ringlet.testing import run_on_ranks
from tests.collectives.contract import Array, assert_same, every_dtype, inputs_of, outcomes_of

COUNTS = [0, 3, 1, 700, 0, 2, 9, 1, 4]


@every_dtype
@pytest.mark.parametrize("num_ranks", range(1, 10))
def test_each_rank_has_its_block(num_ranks: int, dtype: str) -> None:
    root = num_ranks - 1
    counts = COUNTS[:num_ranks]
    # size of a block or counts, array
    wanted: list[tuple[Any, Array]] = [
        (None, inputs_of(1, num_ranks * size * 2, dtype)[0].reshape(-1, 2)) for size in (0, 1, 600)
    ]
    wanted.append((counts, inputs_of(1, sum(counts) * 2, dtype)[0].reshape(-1, 2)))

    def step(member: Member) -> list[Array]:
        if member.rank != root:
            return [member.scatter(root=root) for _ in wanted]
        return [member.scatter(x, root, counts=given) for given, x in wanted]

    found = run_on_ranks(num_ranks, step)
    for number, (given, x) in enumerate(wanted):
        ends = np.cumsum(given if given is not None else [len(x) // num_ranks] * num_ranks)
        for rank, expected in enumerate(np.split(x, ends[:-1])):
            assert_same(found[rank][number], expected)
            assert not found[rank][number].flags.writeable


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2])
@pytest.mark.parametrize("has_out", [False, True])
@pytest.mark.parametrize("is_ragged", [False, True])
def test_any_axis_may_be_cut(axis: int, has_out: bool, is_ragged: bool) -> None:
    x = np.arange(4 * 6 * 10).reshape(4, 6, 10)
    size = x.shape[axis]
    counts = [size - 3, 3] if is_ragged else [size // 2] * 2
    blocks = np.split(x, [counts[0]], axis)

    def step(member: Member) -> Array:
        out = np.empty(blocks[member.rank].shape, x.dtype) if has_out else None
        if member.rank:
            return member.scatter(axis=axis, out=out)
        return member.scatter(x, axis=axis, counts=iter(counts) if is_ragged else None, out=out)

    for result, expected in zip(run_on_ranks(2, step), blocks, strict=True):
        np.testing.assert_array_equal(result, expected)
        assert result.flags.writeable == has_out


@pytest.mark.parametrize("place", ["own block", "other block", "strided"])
def test_an_output_of_any_layout_is_filled(place: str) -> None:
    x = np.arange(12_000.0)
    expected = x.copy()

    def step(member: Member) -> Array:
        out = np.empty((6000, 2))[:, 0] if place == "strided" or member.rank else x[6000:] if place[:1] == "o" else x
        if member.rank == 0 and place == "own block":
            out = x[:6000]
        assert member.scatter(None if member.rank else x, out=out) is out
        return out

    for rank, result in enumerate(run_on_ranks(2, step)):
        np.testing.assert_array_equal(result, expected[6000 * rank :][:6000])


# keywords of the root's call, words of the message
BAD: list[tuple[dict[str, Any], str]] = [
    ({"x": None}, "the root of a scatter, here rank 0, must pass x, the array to split."),
    ({"x": np.ones(5)}, r"cannot split axis 0 of shape \(5,\) into 2 equal blocks: 5 is not a multiple of 2.*counts="),
    ({"x": np.ones(())}, r"no axes \(ndim 0\)"),
    ({"x": np.ones(4), "axis": 1}, "axis is 1, but the array has ndim 1"),
    ({"x": np.ones(4), "counts": [1, 2]}, r"counts is \[1, 2\], whose sum is 3: expected the size 4 of axis 0"),
    ({"x": np.ones(4), "counts": [4]}, "expected 2 non-negative numbers, one for each rank"),
    ({"x": np.ones(4), "counts": [5, -1]}, "expected 2 non-negative numbers"),
    ({"x": np.ones(4), "counts": [1.5, 2.5]}, "expected one integer for each rank"),
    ({"x": np.ones(4), "counts": 4}, "expected one integer for each rank"),
    ({"x": np.ones(4), "out": np.ones(3)}, r"out is float64\[3\], expected float64\[2\]"),
    ({"x": np.ones(4), "root": 2}, "root is 2, but rank 2 is not in this group"),
]


@pytest.mark.parametrize(("keywords", "words"), BAD)
def test_arguments_that_do_not_fit_are_refused(keywords: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidArgumentError, match=words):
        Group(2, timeout_seconds=10).member(0).scatter(**keywords)


@pytest.mark.parametrize("name", ["x", "counts"])
def test_what_the_root_alone_gives_is_refused_elsewhere(name: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"rank 1 passed {name}, which only the root, rank 0, may pass"):
        Group(2, timeout_seconds=10).member(1).scatter(**{name: [1, 1]})


@pytest.mark.parametrize(
    "out", [np.ones(3), np.ones(2, "f4"), np.ones((2, 1)), np.ones(0)], ids=["size", "dtype", "ndim", "empty"]
)
def test_an_output_that_does_not_fit_the_roots_block_is_refused_on_all_ranks(out: Array) -> None:
    for outcome in outcomes_of(2, lambda m: m.scatter(out=out) if m.rank else m.scatter(np.ones(4), out=np.ones(2))):
        assert isinstance(outcome, InvalidArgumentError)
        assert "out of rank 1" in str(outcome)


@pytest.mark.parametrize(
    "step",
    [
        lambda m: m.scatter(np.ones((4, 4)) if m.rank == 0 else None, axis=m.rank),
        lambda m: m.scatter(np.ones(4), m.rank),
        lambda m: m.scatter(axis=0, out=np.ones(2)) if m.rank else m.scatter(np.ones(4)),
    ],
)
def test_calls_that_do_not_fit_together_are_a_mismatch(step: Any) -> None:
    for outcome in outcomes_of(2, step):
        assert isinstance(outcome, CollectiveMismatchError)
