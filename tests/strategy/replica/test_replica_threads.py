"""Crews: helper threads that come when they are needed and go with their strategy."""

from __future__ import annotations

import copy
import gc
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

import ringlet
from ringlet.errors import FailedPreconditionError
from ringlet.strategy.replica.replica_threads import Crew, CrewPool, _helpers

SECONDS = 60


def helpers() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("ringlet-helper")}


def num_helpers() -> int:
    return len(helpers())


def wait_for_helpers(expected: int) -> None:
    deadline = time.monotonic() + SECONDS
    while num_helpers() > expected:
        assert time.monotonic() < deadline, f"{num_helpers()} helper threads are left"
        time.sleep(0.001)


class Recorder:
    """Work that notes which thread ran which replica, once all replicas run at the same time."""

    def __init__(self, crew: Crew, num_replicas: int) -> None:
        self.crew = crew
        self.barrier = threading.Barrier(num_replicas, timeout=SECONDS)
        self.threads: dict[int, str] = {}

    def execute(self, replica: int) -> None:
        self.barrier.wait()
        self.threads[replica] = threading.current_thread().name
        self.crew.claims.finish(replica)


def run(crew: Crew, num_replicas: int) -> dict[int, str]:
    work = Recorder(crew, num_replicas)
    crew.prepare(work)
    crew.claims.open()
    for replica in iter(crew.claims.claim, -1):
        work.execute(replica)
    assert crew.claims.wait_finished(SECONDS)
    return work.threads


def test_the_caller_runs_one_replica_and_helpers_the_others():
    crew = Crew(3, timeout_seconds=SECONDS)
    threads = run(crew, 3)
    assert threads.pop(0) == threading.current_thread().name
    assert sorted(threads.values()) == ["ringlet-helper-1", "ringlet-helper-2"]
    crew.close()


def test_helpers_start_with_the_first_run_and_are_daemons():
    crew = Crew(3, timeout_seconds=SECONDS)
    assert crew.helpers == []
    run(crew, 3)
    helpers = list(crew.helpers)
    run(crew, 3)
    assert crew.helpers == helpers
    assert all(helper.daemon for helper in helpers)
    crew.close()
    for helper in helpers:
        helper.join(timeout=SECONDS)
        assert not helper.is_alive()


def test_a_failed_group_is_replaced_by_one_of_the_next_epoch():
    crew = Crew(2, timeout_seconds=SECONDS)
    before = crew.group
    crew.prepare(Recorder(crew, 2))
    assert crew.group is before
    before.abort("a test")
    crew.prepare(Recorder(crew, 2))
    assert (crew.group.epoch, crew.group.failure) == (before.epoch + 1, None)
    crew.close()


def test_concurrent_runs_have_crews_of_their_own_which_are_used_again():
    pool = CrewPool(2)
    first, second = pool.acquire("a run"), pool.acquire("another run")
    assert first is not second
    pool.release("a run")
    pool.release("another run")
    assert {pool.acquire("a third run"), pool.acquire("a fourth run")} == {first, second}


def test_a_run_that_was_interrupted_while_it_took_a_crew_gives_it_back():
    pool = CrewPool(2)
    pool.release("a run that has none")
    crew = pool.acquire("a run")
    for _ in range(2):
        pool.release("a run")
    assert pool.acquire("another run") is crew
    assert pool.acquire("a third run") is not crew


def test_a_crew_is_free_again_if_its_run_was_interrupted_before_replicas_began():
    pool = CrewPool(2)
    crew = pool.acquire("a run")
    crew.prepare(Recorder(crew, 2))
    pool.release("a run")
    assert pool.acquire("another run") is crew
    assert len(run(crew, 2)) == 2
    pool.close("the test is over")
    pool.release("another run")


def test_threads_of_collected_strategies_are_waited_for_when_the_interpreter_ends():
    gc.collect()
    strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
    strategy.run(lambda: ringlet.get_replica_context().all_reduce("SUM", 1.0))
    [helper] = strategy.extended._crews.helpers()
    assert helper in _helpers
    del strategy
    helper.join(timeout=SECONDS)
    assert helper not in _helpers


def test_replicas_in_a_collective_are_released_when_the_interpreter_ends():
    code = """
import atexit, threading, time, numpy as np, ringlet
strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
reasons, begun = [], threading.Event()
def step():
    replica = ringlet.get_replica_context()
    try:
        if replica.replica_id_in_sync_group == 1:
            begun.set()
            while True:
                replica.all_reduce("SUM", np.ones(100_000))
        while True:
            replica.all_reduce("SUM", np.ones(100_000))
    except ringlet.errors.CollectiveAborted as error:
        reasons.append(str(error))
threading.Thread(target=strategy.run, args=(step,), daemon=True).start()
begun.wait()
before = ringlet.strategy.replica.replica_threads._close_all
atexit.unregister(before)
before()
print(*reasons, sep="; ")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == "; ".join(["the interpreter is ending"] * 2)


def test_a_closed_pool_says_why():
    pool = CrewPool(2)
    pool.acquire("a run")
    pool.close("the first reason")
    pool.close("another reason")
    pool.release("a run")
    with pytest.raises(FailedPreconditionError, match=r"closed: the first reason\. Make a new strategy"):
        pool.acquire("another run")


def test_giving_up_one_run_does_not_take_the_helpers_of_another():
    pool = CrewPool(3)
    stuck, other, free = pool.acquire("stuck"), pool.acquire("other"), pool.acquire("free")
    pool.release("free")
    for crew in (stuck, other, free):
        crew.prepare(Recorder(crew, 3))
    pool.give_up(stuck, "a test")
    for helper in [*stuck.helpers, *free.helpers]:
        helper.join(timeout=SECONDS)
        assert not helper.is_alive()
    assert len(run(other, 3)) == 3
    pool.release("other")
    for helper in other.helpers:
        helper.join(timeout=SECONDS)
        assert not helper.is_alive()


def test_a_deep_copy_has_no_crews_yet():
    pool = CrewPool(3)
    run(pool.acquire("a run"), 3)
    twin = copy.deepcopy(pool)
    assert (twin.num_replicas, twin.helpers()) == (3, [])


def test_the_helpers_of_a_dropped_strategy_end():
    before = helpers()  # some of which may be about to end
    strategy = ringlet.MirroredStrategy([f"CPU:{i}" for i in range(4)])
    strategy.run(lambda: ringlet.get_replica_context().all_reduce("SUM", 1.0))
    own = helpers() - before
    assert len(own) == 3
    del strategy
    for thread in own:
        thread.join(SECONDS)
        assert not thread.is_alive()


@pytest.mark.parametrize(("count", "runs"), [(10_000, False), (300, True)])
def test_many_strategies_leave_no_threads(count, runs):
    gc.collect()
    before = num_helpers()
    for _ in range(count):
        strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
        if runs:
            strategy.run(lambda: None)
    del strategy
    wait_for_helpers(before)


def test_a_run_in_progress_keeps_its_strategy():
    begun, may_end = threading.Event(), threading.Event()
    answers: list[Any] = []

    def step() -> Any:
        begun.set()
        may_end.wait(SECONDS)
        return ringlet.get_replica_context().all_reduce("SUM", 1.0)

    strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
    thread = threading.Thread(target=lambda run: answers.append(run(step)), args=(strategy.run,))
    thread.start()
    assert begun.wait(SECONDS)
    del strategy
    gc.collect()
    may_end.set()
    thread.join(timeout=SECONDS)
    assert [float(value) for value in answers[0].values] == [2, 2]
