"""Groups whose ranks disagree, fail, leave or never come, and processes that end."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ringlet.collectives import Algorithm, Group, Member, Op
from ringlet.errors import (
    CollectiveAborted,
    CollectiveMismatchError,
    DeadlineExceededError,
    InvalidArgumentError,
)
from ringlet.testing import run_on_ranks
from tests.collectives.contract import outcomes_of

# --- disagreement -----------------------------------------------------------------------------------------------------

MISMATCHES: dict[str, Callable[[Member], Any]] = {
    "shape": lambda m: m.all_reduce(np.ones((3, 2) if m.rank else (2, 3))),
    "count": lambda m: m.all_reduce(np.ones(5000 + m.rank)),
    "dtype": lambda m: m.all_reduce(np.ones(3, "float32" if m.rank else "int32")),
    "operation": lambda m: m.all_reduce(np.ones(3), Op.SUM if m.rank else Op.MEAN),
    "algorithm": lambda m: m.all_reduce(np.ones(3), algorithm=Algorithm.RING if m.rank else Algorithm.AUTO),
    "number of arrays": lambda m: m.all_reduce_many([np.ones(3)] * (m.rank + 1)),
    "collective": lambda m: m.all_reduce(np.ones(9000)) if m.rank else m.broadcast(np.ones(9000)),
    "large and barrier": lambda m: m.all_reduce(np.ones(9000)) if m.rank else m.barrier(),
    "root": lambda m: m.broadcast(np.ones(3), m.rank),
    "name of a barrier": lambda m: m.barrier(f"epoch {m.rank}"),
}


@pytest.mark.parametrize("kind", MISMATCHES)
def test_ranks_that_disagree_all_raise_and_name_who_called_what(kind: str) -> None:
    outcomes = outcomes_of(2, MISMATCHES[kind])
    for outcome in outcomes:
        assert isinstance(outcome, CollectiveMismatchError)
        assert "rank 0: " in str(outcome)
        assert "rank 1: " in str(outcome)
    assert str(outcomes[0]) == str(outcomes[1])


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


# --- failure ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [3, 5000])
def test_abort_ends_every_wait_with_its_reason(count: int) -> None:
    group = Group(3, timeout_seconds=0)
    raised: list[BaseException] = []

    def wait(rank: int) -> None:
        try:
            group.member(rank).all_reduce(np.ones(count))
        except CollectiveAborted as error:
            raised.append(error)

    threads = [threading.Thread(target=wait, args=(rank,)) for rank in (0, 1)]
    for thread in threads:
        thread.start()
    time.sleep(0.05)
    group.abort("rank 2 raised KeyError: 'weights'")
    for thread in threads:
        thread.join()
    assert [str(error) for error in raised] == ["rank 2 raised KeyError: 'weights'"] * 2


def test_a_failed_group_raises_its_first_cause_for_ever() -> None:
    group = Group(2)
    assert group.failure is None
    group.abort("first")
    group.abort("second")
    for _ in range(2):
        with pytest.raises(CollectiveAborted, match="first"):
            group.member(0).barrier()
    assert group.failure == "first"
    assert "failed: first" in repr(group)


@pytest.mark.parametrize("count", [3, 5000])
def test_a_deadline_names_who_is_missing_and_how_to_wait_longer(count: int) -> None:
    outcomes = outcomes_of(
        3, lambda member: None if member.rank == 1 else member.all_reduce(np.ones(count)), timeout_seconds=0.2
    )
    assert outcomes[1] is None
    for rank in (0, 2):
        assert isinstance(outcomes[rank], DeadlineExceededError)
        assert isinstance(outcomes[rank], TimeoutError)
        assert "waited 0.2 s for rank 1 (after 0 calls)" in str(outcomes[rank])
        assert "RINGLET_TIMEOUT_SECONDS" in str(outcomes[rank])


def test_one_rank_is_driven_by_one_thread_at_a_time() -> None:
    group = Group(2)

    def wait() -> None:
        with pytest.raises(CollectiveAborted):
            group.member(0).barrier()

    thread = threading.Thread(target=wait)
    thread.start()
    deadline = time.monotonic() + 30
    while group.member(0)._core.calls == 0 and time.monotonic() < deadline:
        time.sleep(0.001)
    with pytest.raises(InvalidArgumentError, match="rank 0 is inside a call on another thread"):
        group.member(0).barrier()
    group.abort("end of the test")
    thread.join()


def _use_after_fork(group: Group, queue: Any) -> None:
    try:
        group.member(0).all_reduce(np.ones(5000))
    except CollectiveAborted as error:
        queue.put(str(error))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_group_of_the_parent_says_so_in_a_forked_child() -> None:
    context = multiprocessing.get_context("fork")
    group = Group(2)
    queue = context.Queue()
    child = context.Process(target=_use_after_fork, args=(group, queue))
    child.start()
    message = queue.get(timeout=30)
    child.join(30)
    assert "before the process was forked" in message
    assert child.exitcode == 0


def test_a_refused_call_does_not_count() -> None:
    def step(member: Member) -> float:
        first = member.all_reduce(1.0).item()
        with pytest.raises(InvalidArgumentError, match="SMALL"):
            member.all_reduce(np.ones(1000), algorithm=Algorithm.SMALL)
        member.all_reduce(1000.0)
        return float(first)

    for _ in range(30):
        assert run_on_ranks(2, step) == [2.0, 2.0]


@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")
def test_a_shape_assigned_during_a_call_changes_nothing() -> None:
    group = Group(2, timeout_seconds=30)
    x = np.ones((2, 12))
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(group.member(0).all_reduce(x)))
    thread.start()
    while group.member(0)._core.calls == 0:
        time.sleep(0.001)
    x.shape = (24,)
    group.member(1).all_reduce(np.ones((2, 12)))
    thread.join()
    assert results[0].shape == (2, 12)


_EXITS = {
    "while a thread waits": "threading.Thread(target=lambda: g.member(0).barrier(), daemon=True).start()",
    "while threads reduce": "[threading.Thread(target=reduce, args=(rank,), daemon=True).start() for rank in (0, 1)]",
    "while a thread unwinds": (
        "threading.Thread(target=lambda: g.member(0).barrier(), daemon=True).start(); time.sleep(0.1); g.abort('end')"
    ),
}


@pytest.mark.parametrize("moment", _EXITS)
def test_the_interpreter_may_end(moment: str) -> None:
    program = f"""
import threading, time
from ringlet.collectives import Group
g = Group(2)
def reduce(rank):
    while True:
        g.member(rank).all_reduce(1.0)
{_EXITS[moment]}
time.sleep(0.1)
"""
    for _ in range(3):
        ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
        assert ended.returncode == 0, ended.stderr
