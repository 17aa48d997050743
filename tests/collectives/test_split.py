"""split: groups of parts of a group's ranks."""

from __future__ import annotations

import gc
import itertools
import threading
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.collectives import Group, Member
from ringlet.errors import (
    CollectiveAborted,
    CollectiveMismatchError,
    DeadlineExceededError,
    InvalidArgumentError,
)
from ringlet.testing import run_on_ranks
from tests.collectives.contract import CALLS, LARGE, outcomes_of


def place_of(part: Member | None) -> tuple[int, int] | None:
    return None if part is None else (part.rank, part.num_ranks)


# --- who is where -----------------------------------------------------------------------------------------------------


@given(choices=st.lists(st.tuples(st.sampled_from([None, 0, 1, -7]), st.integers(-2, 2)), min_size=1, max_size=7))
def test_ranks_of_one_color_are_ordered_by_key_and_rank(choices: list[tuple[int | None, int]]) -> None:
    found = run_on_ranks(len(choices), lambda m: place_of(m.split(*choices[m.rank])))
    for rank, (color, key) in enumerate(choices):
        if color is None:
            assert found[rank] is None
            continue
        mates = sorted((other, mate) for mate, (own, other) in enumerate(choices) if own == color)
        assert found[rank] == (mates.index((key, rank)), len(mates))


def test_keys_may_be_large_and_of_any_integer_type() -> None:
    found = run_on_ranks(2, lambda m: place_of(m.split(np.int32(2**31 - 1), -(2**63) + (1 - m.rank))))
    assert found == [(1, 2), (0, 2)]


@pytest.mark.parametrize(("color", "key"), [(0.5, 0), ("a", 0), (0, None), (2**40, 0), (0, 2**70)])
def test_what_is_no_color_or_key_is_refused(color: Any, key: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"(color|key) is .*: expected an integer"):
        Group(1).member(0).split(color, key)


def test_ranks_without_a_color_have_no_part_and_go_on_in_the_whole() -> None:
    def step(member: Member) -> float:
        part = member.split(None if member.rank == 1 else 0)
        assert (part is None) == (member.rank == 1)
        if part is not None:
            assert part.all_reduce(1.0) == 2
        return float(member.all_reduce(1.0))

    assert run_on_ranks(3, step) == [3] * 3


# --- what parts do ----------------------------------------------------------------------------------------------------


def test_parts_do_different_things_at_the_same_time() -> None:
    def step(member: Member) -> list[Any]:
        part = member.split(member.rank % 2)
        assert part is not None
        found: list[Any] = []
        for turn in range(20):
            if member.rank % 2:
                found.append(part.all_gather([member.rank]).tolist())
            else:
                found += [part.all_reduce(np.full(LARGE, turn))[0].item(), part.exclusive_scan(1).item()]
                part.barrier("even")
        return [found, member.all_reduce(1).item()]

    for rank, (found, total) in enumerate(run_on_ranks(5, step)):
        assert total == 5
        if rank % 2:
            assert found == [[1, 3]] * 20
        else:
            assert found == list(itertools.chain(*([3 * turn, rank // 2] for turn in range(20))))


@pytest.mark.parametrize("name", CALLS)
def test_every_collective_works_in_a_part(name: str) -> None:
    def step(member: Member) -> Any:
        part = member.split(0 if member.rank in (1, 2) else None)
        return None if part is None else CALLS[name](part, 8)

    found = run_on_ranks(4, step)
    whole = run_on_ranks(2, lambda m: CALLS[name](m, 8))
    if name != "split":
        for one, other in zip(found[1:3], whole, strict=True):
            np.testing.assert_equal(one, other)


def test_parts_have_parts() -> None:
    def step(member: Member) -> list[int]:
        row = member.split(member.rank // 4)
        column = member.split(member.rank % 4)
        assert row is not None
        assert column is not None
        pair = row.split(row.rank // 2)
        assert pair is not None
        return [part.all_reduce(member.rank).item() for part in (pair, row, column, member)]

    for rank, sums in enumerate(run_on_ranks(8, step)):
        first = rank // 2 * 2
        row, column = rank // 4, rank % 4
        assert sums == [2 * first + 1, sum(range(4 * row, 4 * row + 4)), 2 * column + 4, 28]


def test_a_group_may_be_split_many_times_and_nothing_is_left() -> None:
    def step(member: Member) -> int:
        total = 0
        for turn in range(200):
            part = member.split(turn % 2 if member.rank else 0)
            assert part is not None
            total += part.all_reduce(1).item()
        return total

    assert run_on_ranks(2, step) == [100 + 200] * 2


def test_a_part_outlives_the_whole() -> None:
    parts = run_on_ranks(2, lambda m: m.split(0))
    gc.collect()
    results: list[Any] = [None, None]

    def drive(rank: int) -> None:
        part = parts[rank]
        assert part is not None
        results[rank] = part.all_reduce(np.full(LARGE, part.rank + 1.0))[0]

    threads = [threading.Thread(target=drive, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [3, 3]


# --- failure ----------------------------------------------------------------------------------------------------------


def test_a_failure_of_the_whole_ends_waits_in_parts_and_parts_of_parts() -> None:
    group = Group(4, timeout_seconds=0)
    outcomes: list[Any] = [None] * 4

    def drive(rank: int) -> None:
        try:
            part = group.member(rank).split(rank // 2)
            assert part is not None
            pair = part.split(0)
            assert pair is not None
            waits = part if rank < 2 else pair
            if waits.rank == 0:
                waits.all_reduce(np.ones(LARGE if rank else 3))
        except CollectiveAborted as error:
            outcomes[rank] = str(error)

    threads = [threading.Thread(target=drive, args=(rank,)) for rank in range(4)]
    for thread in threads:
        thread.start()
    threads[1].join()
    threads[3].join()
    time.sleep(0.05)
    group.abort("rank 3 raised KeyError: 'weights'")
    for thread in threads:
        thread.join(10)
    assert not any(thread.is_alive() for thread in threads)
    assert outcomes[0] == outcomes[2]
    assert "rank 3 raised KeyError: 'weights'" in outcomes[0]
    assert (outcomes[1], outcomes[3]) == (None, None)


def test_a_part_that_is_made_of_a_failed_group_is_refused() -> None:
    group = Group(1)
    group.abort("the end")
    with pytest.raises(CollectiveAborted, match="the end"):
        group.member(0).split(0)


def test_a_failure_of_a_part_leaves_the_whole_and_other_parts_alone() -> None:
    def step(member: Member) -> float:
        part = member.split(member.rank // 2)
        assert part is not None
        if member.rank < 2:
            with pytest.raises(CollectiveMismatchError):
                part.all_reduce(np.ones(2 + part.rank))
        else:
            assert part.all_reduce(1.0) == 2
        return float(member.all_reduce(1.0))

    assert run_on_ranks(4, step) == [4] * 4


def test_a_rank_that_departs_from_the_whole_departs_from_its_parts() -> None:
    def step(member: Member) -> None:
        part = member.split(0)
        assert part is not None
        if member.rank == 1:
            member.depart("returned")
        else:
            part.all_reduce(1.0)

    outcomes = outcomes_of(3, step, timeout_seconds=0)
    assert outcomes[1] is None
    for rank in (0, 2):
        assert isinstance(outcomes[rank], CollectiveMismatchError)
        assert "rank 1 (returned after 0 calls)" in str(outcomes[rank])


def test_a_part_has_the_time_out_of_the_whole() -> None:
    def step(member: Member) -> None:
        part = member.split(0)
        assert part is not None
        if member.rank == 0:
            part.barrier()

    outcomes = outcomes_of(2, step, timeout_seconds=0.2)
    assert isinstance(outcomes[0], DeadlineExceededError)
    assert "waited 0.2 s for rank 1" in str(outcomes[0])


def test_a_split_that_not_all_make_is_a_mismatch() -> None:
    for outcome in outcomes_of(2, lambda m: m.split(0) if m.rank else m.barrier()):
        assert isinstance(outcome, CollectiveMismatchError)
        assert "rank 1: split()" in str(outcome)
