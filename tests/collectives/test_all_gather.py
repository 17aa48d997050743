"""all_gather and gather: the arrays of all ranks, joined along an axis, for all of them or for one."""

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


def pieces_of(num_ranks: int, dtype: str, sizes: list[int], row: int) -> list[Array]:
    return [inputs_of(1, size * row, dtype, rank)[0].reshape(size, row) for rank, size in enumerate(sizes[:num_ranks])]


SIZES = {"equal": [5] * 9, "ragged": [0, 3, 1, 7, 0, 2, 900, 1, 4], "empty": [0] * 9, "large": [700] * 9}


@every_dtype
@pytest.mark.parametrize("num_ranks", range(1, 10))
def test_every_rank_has_the_arrays_of_all_in_rank_order(num_ranks: int, dtype: str) -> None:
    wanted = [pieces_of(num_ranks, dtype, sizes, 3) for sizes in SIZES.values()]
    root = num_ranks // 2
    found = run_on_ranks(
        num_ranks,
        lambda m: [(m.all_gather(pieces[m.rank]), m.gather(pieces[m.rank], root)) for pieces in wanted],
    )
    for number, pieces in enumerate(wanted):
        expected = np.concatenate(pieces)
        for rank, results in enumerate(found):
            everywhere, at_root = results[number]
            assert_same(everywhere, expected)
            assert not everywhere.flags.writeable
            if rank == root:
                assert_same(at_root, expected)
                assert not at_root.flags.writeable
            else:
                assert at_root is None


@given(
    rest=st.lists(st.integers(0, 4), min_size=0, max_size=3),
    lengths=st.lists(st.integers(0, 5), min_size=1, max_size=5),
    place=st.integers(0, 3),
    flags=st.tuples(st.booleans(), st.booleans(), st.booleans()),
)
def test_any_shapes_are_joined_along_any_axis(
    rest: list[int], lengths: list[int], place: int, flags: tuple[bool, bool, bool]
) -> None:
    is_negative, is_ragged, has_out = flags
    axis = min(place, len(rest))
    lengths = lengths if is_ragged else lengths[:1] * len(lengths)
    random = np.random.default_rng(0)
    pieces = [random.integers(0, 99, (*rest[:axis], length, *rest[axis:])) for length in lengths]
    expected = np.concatenate(pieces, axis)

    def step(member: Member) -> Array:
        out = np.empty(expected.shape, expected.dtype) if has_out else None
        given_axis = axis - expected.ndim if is_negative else axis
        return member.all_gather(pieces[member.rank], axis=given_axis, out=out)

    for result in run_on_ranks(len(pieces), step):
        assert_same(result, expected)


def test_ranks_share_one_result() -> None:
    first, second = run_on_ranks(2, lambda m: m.all_gather(np.ones(5000)))
    assert first is not second
    assert np.shares_memory(first, second)


def test_arrays_without_axes_become_one_of_all_ranks() -> None:
    for result in run_on_ranks(3, lambda m: m.all_gather(np.float32(m.rank))):
        assert_same(result, np.array([0, 1, 2], np.float32))
    assert run_on_ranks(3, lambda m: m.gather(m.rank, 2))[2].tolist() == [0, 1, 2]
    # also together with arrays of one element
    assert run_on_ranks(2, lambda m: m.all_gather([7] if m.rank else 7))[0].tolist() == [7, 7]


@pytest.mark.parametrize("size", [4, 4000])
@pytest.mark.parametrize("place", ["out", "in_place", "strided", "elsewhere in out", "swapped"])
def test_an_output_is_the_callers_own(size: int, place: str) -> None:
    pieces = inputs_of(3, size, "int64")
    expected = np.concatenate(pieces)

    def step(member: Member) -> Array:
        x = pieces[member.rank]
        out = {
            "strided": np.empty((3 * size, 2), np.int64)[:, 1],
            "swapped": np.empty(3 * size, np.dtype(np.int64).newbyteorder()),
        }.get(place, np.empty(3 * size, np.int64))
        if place in ("in_place", "elsewhere in out"):
            where = member.rank if place == "in_place" else (member.rank + 1) % 3
            out[where * size : (where + 1) * size] = x
            x = out[where * size : (where + 1) * size]
        assert member.all_gather(x, out=out) is out
        return out

    for result in run_on_ranks(3, step):
        np.testing.assert_array_equal(result, expected)


def test_ragged_pieces_may_lie_in_their_places() -> None:
    sizes = [2, 0, 3000]

    def step(member: Member) -> Array:
        out = np.zeros(sum(sizes))
        begin = sum(sizes[: member.rank])
        x = out[begin : begin + sizes[member.rank]]
        x[:] = member.rank + 1
        return member.all_gather(x, out=out)

    for result in run_on_ranks(3, step):
        np.testing.assert_array_equal(result, np.repeat([1.0, 2.0, 3.0], sizes))


@pytest.mark.parametrize("axis", [0, 1])
def test_the_root_of_a_gather_alone_gives_an_output(axis: int) -> None:
    pieces = [array.reshape(20, 30) for array in inputs_of(3, 600, "float32")]
    expected = np.concatenate(pieces, axis)
    out = np.empty_like(expected)
    results = run_on_ranks(3, lambda m: m.gather(pieces[m.rank], 1, axis=axis, out=out if m.rank == 1 else None))
    assert results[1] is out
    assert_same(out, expected)
    with pytest.raises(InvalidArgumentError, match="rank 0 passed out, which only the root, rank 1, may pass"):
        Group(2, timeout_seconds=10).member(0).gather(np.ones(2), 1, out=np.ones(4))


# shape, axis, out, words of the message
BAD: list[tuple[tuple[int, ...], Any, Any, str]] = [
    ((3,), 1, None, "axis is 1, but the array has ndim 1: expected -1 to 0"),
    ((3,), -2, None, "axis is -2, but the array has ndim 1"),
    ((), 1, None, "axis is 1, but the array has ndim 1"),
    ((3,), "0", None, "axis is '0': expected the number of an axis"),
    ((3, 2), True, None, "axis is True: expected the number of an axis"),
    ((3, 2), 0, np.ones((3, 3)), r"out is float64\[3, 3\], expected float64\[\?, 2\]"),
    ((3, 2), 0, np.ones((3, 2), "f4"), r"out is float32\[3, 2\], expected float64\[\?, 2\]"),
    ((3, 2), 0, [1.0], "out is a list"),
    ((3,), 0, np.broadcast_to(1.0, (3,)), "read-only"),
]


@pytest.mark.parametrize(("shape", "axis", "out", "words"), BAD)
def test_arguments_that_do_not_fit_are_refused(shape: tuple[int, ...], axis: Any, out: Any, words: str) -> None:
    with pytest.raises(InvalidArgumentError, match=words):
        Group(1).member(0).all_gather(np.ones(shape), axis=axis, out=out)
    with pytest.raises(InvalidArgumentError, match=words):
        Group(1).member(0).gather(np.ones(shape), axis=axis, out=out)


@pytest.mark.parametrize("is_ragged", [False, True])
def test_an_output_without_room_for_all_is_refused_on_all_ranks(is_ragged: bool) -> None:
    def step(member: Member) -> Any:
        x = np.ones(3 + is_ragged * member.rank)
        return member.all_gather(x, out=np.empty(6 + is_ragged + member.rank))

    for outcome in outcomes_of(2, step):
        assert isinstance(outcome, InvalidArgumentError)
        assert "out of rank 1 has length" in str(outcome)


@pytest.mark.parametrize(
    "step",
    [
        lambda m: m.all_gather(np.ones((2, 2 + m.rank))),
        lambda m: m.all_gather(np.ones(2), axis=0, out=np.ones(4) if m.rank else None),
        lambda m: m.all_gather(np.ones((2, 2)), axis=m.rank),
        lambda m: m.all_gather(np.ones(2, "f4" if m.rank else "f8")),
        lambda m: m.all_gather(np.ones((2,) * (1 + m.rank))),
        lambda m: m.gather(np.ones((2, 2)), axis=m.rank),
        lambda m: m.gather(np.ones(2), m.rank),
    ],
)
def test_calls_that_do_not_fit_together_are_a_mismatch(step: Any) -> None:
    for outcome in outcomes_of(2, step):
        assert isinstance(outcome, CollectiveMismatchError)
