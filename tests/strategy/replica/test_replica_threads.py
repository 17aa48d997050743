"""Helper threads of replicas: started on demand, stopped with their strategy."""

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
from ringlet.strategy.replica.replica_threads import ReplicaThreadPool, ReplicaThreads, _helpers

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
    """Work that records the thread of each replica, after all replicas have started."""

    def __init__(self, threads: ReplicaThreads, num_replicas: int) -> None:
        self.threads = threads
        self.barrier = threading.Barrier(num_replicas, timeout=SECONDS)
        self.names: dict[int, str] = {}

    def execute(self, replica: int) -> None:
        self.barrier.wait()
        self.names[replica] = threading.current_thread().name
        self.threads.claims.finish(replica)


def run(threads: ReplicaThreads, num_replicas: int) -> dict[int, str]:
    work = Recorder(threads, num_replicas)
    threads.prepare(work)
    threads.claims.open()
    for replica in iter(threads.claims.claim, -1):
        work.execute(replica)
    assert threads.claims.wait_finished(SECONDS)
    return work.names


def test_the_caller_runs_one_replica_and_helpers_the_others():
    threads = ReplicaThreads(3, timeout_seconds=SECONDS)
    names = run(threads, 3)
    assert names.pop(0) == threading.current_thread().name
    assert sorted(names.values()) == ["ringlet-helper-1", "ringlet-helper-2"]
    threads.close()


def test_helpers_start_with_the_first_run_and_are_daemons():
    threads = ReplicaThreads(3, timeout_seconds=SECONDS)
    assert threads.helpers == []
    run(threads, 3)
    helpers = list(threads.helpers)
    run(threads, 3)
    assert threads.helpers == helpers
    assert all(helper.daemon for helper in helpers)
    threads.close()
    for helper in helpers:
        helper.join(timeout=SECONDS)
        assert not helper.is_alive()


def test_a_failed_group_is_replaced_by_one_of_the_next_epoch():
    threads = ReplicaThreads(2, timeout_seconds=SECONDS)
    before = threads.group
    threads.prepare(Recorder(threads, 2))
    assert threads.group is before
    before.abort("a test")
    threads.prepare(Recorder(threads, 2))
    assert (threads.group.epoch, threads.group.failure) == (before.epoch + 1, None)
    threads.close()


def test_concurrent_runs_have_threads_of_their_own_which_are_reused():
    pool = ReplicaThreadPool(2)
    first, second = pool.acquire("a run"), pool.acquire("another run")
    assert first is not second
    pool.release("a run")
    pool.release("another run")
    assert {pool.acquire("a third run"), pool.acquire("a fourth run")} == {first, second}


def test_a_run_that_was_interrupted_while_it_acquired_threads_releases_them():
    pool = ReplicaThreadPool(2)
    pool.release("a run without threads")
    threads = pool.acquire("a run")
    for _ in range(2):
        pool.release("a run")
    assert pool.acquire("another run") is threads
    assert pool.acquire("a third run") is not threads


def test_threads_are_free_again_if_their_run_was_interrupted_before_replicas_began():
    pool = ReplicaThreadPool(2)
    threads = pool.acquire("a run")
    threads.prepare(Recorder(threads, 2))
    pool.release("a run")
    assert pool.acquire("another run") is threads
    assert len(run(threads, 2)) == 2
    pool.close("the test is over")
    pool.release("another run")


def test_exit_waits_for_the_threads_of_collected_strategies():
    gc.collect()
    strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
    strategy.run(lambda: ringlet.get_replica_context().all_reduce("SUM", 1.0))
    [helper] = strategy.extended._thread_pool.helpers()
    assert helper in _helpers
    del strategy
    helper.join(timeout=SECONDS)
    assert helper not in _helpers


def test_exit_aborts_the_collectives_of_replicas():
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


def test_a_closed_pool_reports_the_first_reason():
    pool = ReplicaThreadPool(2)
    pool.acquire("a run")
    pool.close("the first reason")
    pool.close("another reason")
    pool.release("a run")
    with pytest.raises(FailedPreconditionError, match=r"closed: the first reason\. Create a new strategy"):
        pool.acquire("another run")


def test_giving_up_a_run_does_not_stop_the_helpers_of_another():
    pool = ReplicaThreadPool(3)
    stuck, other, free = pool.acquire("stuck"), pool.acquire("other"), pool.acquire("free")
    pool.release("free")
    for threads in (stuck, other, free):
        threads.prepare(Recorder(threads, 3))
    pool.abandon(stuck)
    for helper in stuck.helpers:
        helper.join(timeout=SECONDS)
        assert not helper.is_alive()
    assert len(run(other, 3)) == 3
    pool.release("other")
    assert pool.acquire("a new run") in (other, free)
    assert all(helper.is_alive() for helper in [*other.helpers, *free.helpers])


def test_a_deep_copy_has_no_threads_yet():
    pool = ReplicaThreadPool(3)
    run(pool.acquire("a run"), 3)
    twin = copy.deepcopy(pool)
    assert (twin.num_replicas, twin.helpers()) == (3, [])


def test_the_helpers_of_a_collected_strategy_end():
    before = helpers()  # some may be ending
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
