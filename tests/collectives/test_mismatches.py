"""Ranks that do not make the same call all raise, and are told who called what."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ringlet.collectives import Algorithm, Group, Member, Op
from ringlet.errors import CollectiveMismatchError, InvalidArgumentError
from ringlet.testing import run_on_ranks
from tests.collectives.contract import CALLS, LARGE, outcomes_of

COUNT = 24

MISMATCHES: dict[str, Callable[[Member], Any]] = {
    "shape": lambda m: m.all_reduce(np.ones((3, 2) if m.rank else (2, 3))),
    "count": lambda m: m.all_reduce(np.ones(5000 + m.rank)),
    "dtype": lambda m: m.all_reduce(np.ones(3, "float32" if m.rank else "int32")),
    "dtypes of one size": lambda m: m.all_reduce(np.ones(3, "float16" if m.rank else "int16")),
    "operation": lambda m: m.all_reduce(np.ones(3), Op.MIN if m.rank else Op.MAX),
    "algorithm": lambda m: m.all_reduce(np.ones(3), algorithm=Algorithm.RING if m.rank else Algorithm.AUTO),
    "number of arrays": lambda m: m.all_reduce_many([np.ones(3)] * (m.rank + 1)),
    "outputs on some ranks only": lambda m: m.all_reduce(np.ones(3), out=np.ones(3) if m.rank else None),
    "root": lambda m: m.broadcast(np.ones(3), m.rank),
    "root of a reduce": lambda m: m.reduce(np.ones(LARGE), root=m.rank),
    "operation of a reduce": lambda m: m.reduce(np.ones(3), Op.SUM if m.rank else Op.PROD),
    "shape of a reduce_scatter": lambda m: m.reduce_scatter(np.ones((2, 3 + m.rank))),
    "operation of a scan": lambda m: m.exclusive_scan(np.ones(3), Op.SUM if m.rank else Op.PROD),
    "shape of a scan": lambda m: m.exclusive_scan(np.ones(LARGE + m.rank)),
}


def assert_all_know(outcomes: list[Any]) -> None:
    """All ranks raised one error, which tells what each of them called."""
    for outcome in outcomes:
        assert isinstance(outcome, CollectiveMismatchError), outcome
        assert all(f"rank {rank}: " in str(outcome) for rank in range(len(outcomes)))
    assert len({str(outcome) for outcome in outcomes}) == 1


@pytest.mark.parametrize("kind", MISMATCHES)
def test_ranks_that_disagree_all_raise_and_name_who_called_what(kind: str) -> None:
    assert_all_know(outcomes_of(2, MISMATCHES[kind]))


# Calls that look alike: a barrier comes first where arguments could not be compared otherwise.
FIRST_CALLS = {
    "all_reduce RING": "all_reduce",
    "plan": "all_reduce",
    "all_gather ragged": "all_gather",
    "gather ragged": "gather",
}
KINDS = [name for name in CALLS if name not in FIRST_CALLS]


@pytest.mark.parametrize("one", KINDS)
def test_every_pair_of_collectives_is_a_mismatch(one: str) -> None:
    for other, count in itertools.product(KINDS, (COUNT, LARGE)):
        if one != other:
            assert_all_know(outcomes_of(2, lambda m: CALLS[other if m.rank else one](m, count)))  # noqa: B023


def test_one_rank_of_many_is_enough() -> None:
    outcomes = outcomes_of(7, lambda m: m.all_reduce(np.ones(3 + (m.rank == 5))))
    assert_all_know(outcomes)
    assert "rank 5: all_reduce(SUM, float64[4])" in str(outcomes[0])


def test_calls_in_another_order_are_a_mismatch() -> None:
    def step(member: Member) -> None:
        calls = [lambda: member.barrier("a"), lambda: member.all_reduce(np.ones(3))]
        for call in calls if member.rank else reversed(calls):
            call()

    for outcome in outcomes_of(3, step):
        assert isinstance(outcome, CollectiveMismatchError)


@pytest.mark.parametrize("count", [3, 5000])
def test_a_rank_that_departed_is_named_at_once(count: int) -> None:
    def step(member: Member) -> Any:
        member.barrier()
        return member.depart("returned") if member.rank == 1 else member.all_reduce(np.ones(count))

    outcomes = outcomes_of(3, step, timeout_seconds=0)
    for rank in (0, 2):
        assert isinstance(outcomes[rank], CollectiveMismatchError)
        assert "rank 1 (returned after 1 call)" in str(outcomes[rank])


def test_a_rank_that_rejoins_is_waited_for_again() -> None:
    group = Group(1)
    member = group.member(0)
    member.depart("returned")
    member.rejoin()
    assert member.all_reduce(2.0) == 2.0


# --- memory that ranks share ------------------------------------------------------------------------------------------

OUT = np.zeros(LARGE)
OVERLAPS: dict[str, Callable[[Member], Any]] = {
    "all_reduce": lambda m: m.all_reduce(np.ones(LARGE), out=OUT),
    "all_reduce RING": lambda m: m.all_reduce(np.ones(LARGE), algorithm=Algorithm.RING, out=OUT),
    "small": lambda m: m.all_reduce(np.ones(9), out=OUT[m.rank :][:9]),
    "input of another rank": lambda m: m.all_reduce(
        OUT if m.rank else np.ones(LARGE), out=(OUT + 0 if m.rank else OUT)
    ),
    "reduce": lambda m: m.reduce(OUT[:LARGE] if m.rank else np.ones(LARGE), out=None if m.rank else OUT),
    "reduce_scatter": lambda m: m.reduce_scatter(np.ones(LARGE), out=OUT[: LARGE // 2]),
    "exclusive_scan": lambda m: m.exclusive_scan(np.ones(LARGE), out=OUT),
    "small scan": lambda m: m.exclusive_scan(np.ones(9), out=OUT[:9]),
    "all_gather": lambda m: m.all_gather(np.ones(LARGE // 2), out=OUT),
    "scatter": lambda m: m.scatter(None if m.rank else np.ones(LARGE), out=OUT[: LARGE // 2]),
    "broadcast": lambda m: m.broadcast(None if m.rank else np.ones(LARGE), out=OUT),
    "all_to_all": lambda m: m.all_to_all(np.ones(LARGE), out=OUT),
    "collective_permute": lambda m: m.collective_permute(np.ones(LARGE), [(0, 1), (1, 0)], out=OUT),
}


@pytest.mark.parametrize("name", OVERLAPS)
def test_outputs_that_other_ranks_use_are_refused_on_all_ranks(name: str) -> None:
    for outcome in outcomes_of(2, OVERLAPS[name]):
        assert isinstance(outcome, InvalidArgumentError)
        assert "share memory" in str(outcome)
        assert "a different out on each rank" in str(outcome)


def test_ranks_may_share_what_they_only_read() -> None:
    x = np.ones(LARGE)
    for call in CALLS.values():
        run_on_ranks(2, lambda m: call(m, COUNT))  # noqa: B023
    assert run_on_ranks(3, lambda m: m.all_reduce(x, out=np.empty(LARGE))[0]) == [3, 3, 3]
