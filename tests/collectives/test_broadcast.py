"""broadcast: every rank receives the arrays of one of them."""

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


@every_dtype
@pytest.mark.parametrize("num_ranks", range(1, 10))
def test_every_rank_receives_the_array_of_the_root(num_ranks: int, dtype: str) -> None:
    root = num_ranks // 2
    wanted = [inputs_of(1, count, dtype)[0] for count in (0, 3, 5000)]
    found = run_on_ranks(num_ranks, lambda m: [m.broadcast(x if m.rank == root else None, root) for x in wanted])
    for results in found:
        for result, expected in zip(results, wanted, strict=True):
            assert_same(result, expected)
            assert not result.flags.writeable


def test_a_large_array_is_shared() -> None:
    x = np.arange(600_000)
    results = run_on_ranks(3, lambda m: m.broadcast(x if m.rank == 2 else None, 2))
    assert_same(results[0], x)
    assert np.shares_memory(results[0], results[1])
    assert not np.shares_memory(results[0], x)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (2, 3, 4)])
def test_any_shape_is_kept(shape: tuple[int, ...]) -> None:
    result = run_on_ranks(3, lambda m: m.broadcast(np.full(shape, 7) if m.rank == 0 else None))[2]
    assert_same(result, np.full(shape, 7))


def test_outputs_are_filled_and_nothing_changes_at_the_root() -> None:
    buffers = [np.full((50, 60), rank) for rank in range(3)]
    results = run_on_ranks(3, lambda m: m.broadcast(root=1, out=buffers[m.rank]))
    assert all(result is buffer for result, buffer in zip(results, buffers, strict=True))
    assert all((buffer == 1).all() for buffer in buffers)


@pytest.mark.parametrize("count", [4, 5000])
def test_out_of_any_layout_is_filled(count: int) -> None:
    def step(member: Member) -> Array:
        out = np.zeros((count, 2), ">f8")[:, member.rank]
        x = np.arange(float(count)) if member.rank == 1 else None
        assert member.broadcast(x, 1, out=out) is out
        return out

    for out in run_on_ranks(2, step):
        np.testing.assert_array_equal(out, np.arange(float(count)))


def test_a_receiver_that_expects_another_shape_is_a_mismatch() -> None:
    outcomes = outcomes_of(2, lambda m: m.broadcast(np.ones(3 + m.rank), 0))
    assert all(isinstance(outcome, CollectiveMismatchError) for outcome in outcomes)


def test_a_root_that_does_not_exist_or_sends_nothing_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="rank 2 is not in this group: its ranks are 0 to 1"):
        Group(2, timeout_seconds=10).member(0).broadcast(np.ones(2), 2)
    for call in ("broadcast", "broadcast_many"):
        with pytest.raises(InvalidArgumentError, match="the root of a broadcast must pass"):
            getattr(Group(2, timeout_seconds=10).member(0), call)(None, 0)
    with pytest.raises(InvalidArgumentError, match="the root of a broadcast must pass"):
        Group(2, timeout_seconds=10).member(0).broadcast_many(None, 0, bytes_per_pack=9)


# --- many arrays ------------------------------------------------------------------------------------------------------


@given(
    sizes=st.lists(st.integers(0, 60), max_size=7),
    bytes_per_pack=st.sampled_from([0, 1, 100, 400, 10_000]),
    receiver=st.sampled_from(["nothing", "arrays", "outs"]),
)
def test_many_arrays_come_as_one_by_one(sizes: list[int], bytes_per_pack: int, receiver: str) -> None:
    dtypes = ("float32", "bool", "complex64", "int16")
    sent = [np.arange(size).astype(dtypes[i % 4]) for i, size in enumerate(sizes)]

    def step(member: Member) -> list[Any]:
        arrays: Any = sent if member.rank == 1 else [np.zeros_like(x) for x in sent] if receiver == "arrays" else None
        outs = [np.empty_like(x) for x in sent] if receiver == "outs" else None
        return member.broadcast_many(arrays, 1, outs=outs, bytes_per_pack=bytes_per_pack)

    for results in run_on_ranks(3, step):
        assert len(results) == len(sent)
        for result, expected in zip(results, sent, strict=True):
            assert_same(result, expected)
            assert result.flags.writeable == (receiver == "outs")


@pytest.mark.parametrize("surplus", [-1, 1])
@pytest.mark.parametrize("bytes_per_pack", [0, 8])
def test_another_number_of_arrays_is_a_mismatch(bytes_per_pack: int, surplus: int) -> None:
    def step(member: Member) -> Any:
        return member.broadcast_many([np.ones(3)] * (3 + surplus * member.rank), bytes_per_pack=bytes_per_pack)

    assert all(isinstance(outcome, CollectiveMismatchError) for outcome in outcomes_of(2, step))


def test_another_size_of_passes_is_a_mismatch() -> None:
    def step(member: Member) -> Any:
        return member.broadcast_many(None if member.rank else [1, 2], bytes_per_pack=8 * (1 - member.rank))

    assert all(isinstance(outcome, CollectiveMismatchError) for outcome in outcomes_of(2, step))
