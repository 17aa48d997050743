"""barrier: nobody goes on before all have come."""

from __future__ import annotations

import time

import pytest

from ringlet.collectives import Group, Member
from ringlet.errors import CollectiveMismatchError, DeadlineExceededError
from ringlet.testing import run_on_ranks
from tests.collectives.contract import outcomes_of


@pytest.mark.parametrize("num_ranks", [1, 2, 5, 17])
def test_nobody_passes_before_all_have_come(num_ranks: int) -> None:
    arrived: list[int] = []

    def step(member: Member) -> list[int]:
        seen = []
        for turn in range(5):
            arrived.append(member.rank)
            member.barrier(f"turn {turn}")
            seen.append(len(arrived))
            member.barrier()
        return seen

    assert run_on_ranks(num_ranks, step) == [[num_ranks * (turn + 1) for turn in range(5)]] * num_ranks


def test_a_time_out_names_who_is_missing() -> None:
    def step(member: Member) -> None:
        if member.rank not in (1, 3):
            member.barrier("epoch 3")

    start = time.monotonic()
    outcomes = outcomes_of(5, step, timeout_seconds=0.2)
    assert time.monotonic() - start < 5
    assert (outcomes[1], outcomes[3]) == (None, None)
    for rank in (0, 2, 4):
        assert isinstance(outcomes[rank], DeadlineExceededError)
        assert "barrier('epoch 3')" in str(outcomes[rank])
        assert "waited 0.2 s for rank 1 (after 0 calls), rank 3 (after 0 calls)" in str(outcomes[rank])


def test_another_name_is_a_mismatch_that_shows_both() -> None:
    for outcome in outcomes_of(2, lambda m: m.barrier(f"epoch {m.rank}")):
        assert isinstance(outcome, CollectiveMismatchError)
        assert "rank 0: barrier('epoch 0')" in str(outcome)
        assert "rank 1: barrier('epoch 1')" in str(outcome)


def test_any_object_may_be_a_name() -> None:
    Group(1).member(0).barrier(3)  # type: ignore[arg-type]
    for outcome in outcomes_of(2, lambda m: m.barrier("Größe" if m.rank else "\udcff")):
        assert "barrier('Größe')" in str(outcome)
        assert "barrier('\\udcff')" in str(outcome)
