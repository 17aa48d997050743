"""Groups whose ranks fail, leave or never come, and processes that end."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest

from ringlet.collectives import Algorithm, Group, Member
from ringlet.errors import (
    CollectiveAborted,
    CollectiveMismatchError,
    DeadlineExceededError,
    InvalidArgumentError,
)
from ringlet.testing import run_on_ranks
from tests.collectives.contract import CALLS, LARGE, outcomes_of

# --- failure inside each collective -----------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [24, LARGE])
@pytest.mark.parametrize("name", CALLS)
def test_a_rank_that_fails_releases_the_others_from_any_collective(name: str, count: int) -> None:
    group = Group(3, timeout_seconds=0)
    raised: list[str] = []

    def drive(rank: int) -> None:
        try:
            CALLS[name](group.member(rank), count)
        except CollectiveAborted as error:
            raised.append(str(error))

    threads = [threading.Thread(target=drive, args=(rank,)) for rank in (0, 1)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 30
    while not all(group.member(rank)._core.calls for rank in (0, 1)) and time.monotonic() < deadline:
        time.sleep(0.001)
    start = time.monotonic()
    group.abort("rank 2 raised KeyError: 'weights'")
    for thread in threads:
        thread.join(30)
    assert time.monotonic() - start < 1
    assert raised == ["rank 2 raised KeyError: 'weights'"] * 2


@pytest.mark.parametrize("count", [24, LARGE])
@pytest.mark.parametrize("name", CALLS)
def test_a_rank_that_departs_releases_the_others_from_any_collective(name: str, count: int) -> None:
    def step(member: Member) -> Any:
        return member.depart("returned") if member.rank == 2 else CALLS[name](member, count)

    outcomes = outcomes_of(3, step, timeout_seconds=0)
    for outcome in outcomes[:2]:
        assert isinstance(outcome, CollectiveMismatchError)
        assert "rank 2 (returned after 0 calls)" in str(outcome)


@pytest.mark.parametrize("name", CALLS)
def test_a_rank_that_never_comes_is_named_in_any_collective(name: str) -> None:
    outcomes = outcomes_of(3, lambda m: None if m.rank == 1 else CALLS[name](m, 24), timeout_seconds=0.1)
    for rank in (0, 2):
        assert isinstance(outcomes[rank], DeadlineExceededError)
        assert "waited 0.1 s for rank 1 (after 0 calls)" in str(outcomes[rank])


@pytest.mark.parametrize("name", CALLS)
def test_a_failed_group_refuses_every_call_with_its_first_cause(name: str) -> None:
    group = Group(1)
    group.abort("the end")
    with pytest.raises(CollectiveAborted, match="the end"):
        CALLS[name](group.member(0), 24) if "permute" not in name else group.member(0).collective_permute(1.0, [])


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


@pytest.mark.parametrize("name", CALLS)
def test_control_c_ends_the_wait_in_any_collective(name: str) -> None:
    group = Group(2, timeout_seconds=30)
    member = group.member(0)

    def interrupt() -> None:
        deadline = time.monotonic() + 30
        while member._core.calls == 0 and time.monotonic() < deadline:
            time.sleep(0.001)
        signal.raise_signal(signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        CALLS[name](member, 24)
    assert time.monotonic() - start < 5
    thread.join()
    with pytest.raises(CollectiveAborted, match="was interrupted"):
        group.member(1).barrier()


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
    with pytest.raises(InvalidArgumentError, match="rank 0 is in a call on another thread"):
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
