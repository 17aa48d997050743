"""Runs that do not end by themselves: deadlines and Ctrl-C."""

from __future__ import annotations

import importlib
import itertools
import os
import queue
import signal
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ringlet
from ringlet.devices.blas_threads import blas_limiter
from ringlet.errors import CollectiveAborted, DeadlineExceededError, FailedPreconditionError
from ringlet.strategy.replica.step_execution import _GRACE_SECONDS, ReplicaRun
from tests.strategy.replicas import SECONDS, all_reduce, assert_usable, mirrored, replica, replica_id
from tests.strategy.workers import PROGRAM, environment

pytestmark = pytest.mark.slow


def test_a_replica_that_does_not_return_in_time_is_named_with_its_line():
    strategy = mirrored(3)
    strategy.extended._thread_pool.timeout_seconds = 0.05
    may_end = threading.Event()

    def step() -> None:
        if replica_id() == 1:
            may_end.wait(SECONDS)
        elif replica_id() == 0:
            time.sleep(0.01)

    named = r"1 of 3 replicas .*replica 1 is in step .*RINGLET_TIMEOUT_SECONDS"
    with pytest.raises(DeadlineExceededError, match=named):
        strategy.run(step)
    with pytest.raises(FailedPreconditionError, match=r"replica 1 is in step .*once these replicas have returned"):
        strategy.run(lambda: None)
    may_end.set()
    assert_usable(strategy)


ON_READ = ringlet.VariableSynchronization.ON_READ
SUM = ringlet.VariableAggregation.SUM
CENTRAL = ringlet.experimental.CentralStorageStrategy
ONE_ROW = ringlet.IndexedSlices(np.ones(1), np.array([1]), (3,))
LATE_CHANGES: dict[str, tuple[Any, dict[str, Any], Callable[[Any], Any]]] = {
    "its own component": (ringlet.MirroredStrategy, {}, lambda v: v.assign(np.ones(3))),
    "rows of its own component": (ringlet.MirroredStrategy, {}, lambda v: v.scatter_add(ONE_ROW)),
    "together": (ringlet.MirroredStrategy, {"aggregation": SUM}, lambda v: v.assign_add(np.ones(3))),
    "on read": (
        ringlet.MirroredStrategy,
        {"synchronization": ON_READ, "aggregation": SUM},
        lambda v: v.assign_add(np.ones(3)),
    ),
    "one for all": (CENTRAL, {"aggregation": SUM}, lambda v: v.assign_add(np.ones(3))),
    "rows of one for all": (CENTRAL, {"aggregation": SUM}, lambda v: v.scatter_add(ONE_ROW)),
}


@pytest.mark.parametrize(("make", "options", "change"), LATE_CHANGES.values(), ids=LATE_CHANGES)
def test_a_replica_that_outlives_its_run_changes_no_variable(make, options, change):
    strategy = make(["CPU:0", "CPU:1"])
    strategy.extended._thread_pool.timeout_seconds = 0.05
    with strategy.scope():
        variable = ringlet.Variable(np.zeros(3), **options)
    caller, has_begun, may_go_on = threading.get_ident(), threading.Event(), threading.Event()
    ended: queue.Queue[BaseException | None] = queue.Queue()

    def step() -> None:
        if threading.get_ident() == caller:  # one of the two replicas; the other one is in a helper
            has_begun.wait(SECONDS)
            return
        has_begun.set()
        may_go_on.wait(SECONDS)
        try:
            change(variable)
            ended.put(None)
        except BaseException as error:
            ended.put(error)

    with pytest.raises(DeadlineExceededError, match="1 of 2 replicas"):
        strategy.run(step)
    may_go_on.set()
    error = ended.get(timeout=SECONDS)
    assert isinstance(error, FailedPreconditionError)
    assert "after its strategy.run had raised" in str(error)
    components = getattr(variable, "values", [variable])
    assert [component.numpy().tolist() for component in components] == [[0.0, 0.0, 0.0]] * len(components)


def test_a_collective_that_waits_too_long_leaves_the_strategy_usable(monkeypatch):
    monkeypatch.setenv("RINGLET_TIMEOUT_SECONDS", "0.1")
    strategy = mirrored()

    with pytest.raises(DeadlineExceededError, match=r"waited 0\.1 s for rank 1"):
        strategy.run(lambda: all_reduce() if replica_id() == 0 else time.sleep(0.15))
    assert_usable(strategy)


OPTIONS_TEXT = (
    r"replica \d of 3 waited 0\.05 s, the timeout_seconds of its CommunicationOptions, for the other replicas in "
    "all_reduce: check what they execute, or allow more time"
)


@pytest.mark.parametrize(("variable", "text"), [("0.05", r"waited 0\.05 s for rank \d"), ("600", OPTIONS_TEXT)])
def test_a_replica_that_never_arrives_is_left_when_the_others_have_waited_their_time_out(monkeypatch, variable, text):
    monkeypatch.setenv("RINGLET_TIMEOUT_SECONDS", variable)
    options = ringlet.experimental.CommunicationOptions(timeout_seconds=None if variable == "0.05" else 0.05)
    strategy, may_end, has_returned = mirrored(3), threading.Event(), threading.Event()
    strategy.run(lambda: None)  # makes the group, with the time-out of the environment
    strategy.extended._thread_pool.timeout_seconds = 600  # of further runs
    caller, in_helpers, is_stuck = threading.get_ident(), itertools.count(), threading.Event()
    stuck: list[int] = []

    def step() -> None:
        # Not in the calling thread, which could not raise an error before its own replica had returned.
        if threading.get_ident() != caller and next(in_helpers) == 0:
            stuck.append(replica_id())
            is_stuck.set()
            may_end.wait(SECONDS)
            has_returned.set()
        else:
            is_stuck.wait(SECONDS)
            replica().all_reduce("SUM", 1.0, options)

    start = time.monotonic()
    with pytest.raises(DeadlineExceededError, match=text) as caught:
        strategy.run(step)
    assert not has_returned.is_set()
    assert time.monotonic() - start < SECONDS / 4  # of the run's own time-out, nothing is waited for
    if variable == "0.05":
        assert f"waited 0.05 s for rank {stuck[0]}" in str(caught.value)
    assert f"replica {stuck[0]} is in step (" in caught.value.__notes__[0]
    may_end.set()
    assert_usable(strategy)


def test_a_time_out_counts_if_its_replica_raises_while_the_run_already_waits(monkeypatch):
    fail = ReplicaRun._fail

    def fail_late(run: ReplicaRun, replica: int, error: BaseException) -> None:
        if isinstance(error, DeadlineExceededError):  # after the other replica, which sees the group's error
            time.sleep(_GRACE_SECONDS / 2)
        fail(run, replica, error)

    monkeypatch.setattr(ReplicaRun, "_fail", fail_late)
    strategy, may_end, has_returned = mirrored(3), threading.Event(), threading.Event()
    caller, in_helpers = threading.get_ident(), itertools.count()

    def step() -> None:
        if threading.get_ident() == caller:
            all_reduce()
        elif next(in_helpers) == 0:
            may_end.wait(SECONDS)
            has_returned.set()
        else:
            replica().all_reduce("SUM", 1.0, ringlet.experimental.CommunicationOptions(timeout_seconds=0.05))

    with pytest.raises(DeadlineExceededError, match=r"replica \d of 3 waited 0\.05 s"):
        strategy.run(step)
    assert not has_returned.is_set()
    may_end.set()
    assert_usable(strategy)


def test_a_time_out_that_a_replica_raises_itself_leaves_no_other_replica():
    has_begun, has_returned = threading.Event(), threading.Event()

    def step() -> None:
        if replica_id() == 0:
            has_begun.wait(SECONDS)
            raise DeadlineExceededError("the user's own")
        has_begun.set()
        time.sleep(2 * _GRACE_SECONDS)
        has_returned.set()

    with pytest.raises(DeadlineExceededError, match="the user's own"):
        mirrored().run(step)
    assert has_returned.is_set()


def interrupt_soon() -> None:
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()


def test_ctrl_c_in_replica_0_releases_replicas_that_wait_in_a_collective():
    strategy = mirrored()
    released: list[type[BaseException]] = []

    def step() -> None:
        if replica_id() == 0:
            interrupt_soon()
            time.sleep(SECONDS)
        try:
            all_reduce()
        except BaseException as error:
            released.append(type(error))
            raise

    with pytest.raises(KeyboardInterrupt):
        strategy.run(step)
    assert_usable(strategy)
    assert released == [CollectiveAborted]


POINTS = {
    "claim": ("ringlet.strategy.replica.step_execution", "ReplicaRun", "execute"),
    "finish": ("ringlet.strategy.replica.step_execution", "ReplicaRun", "_finish"),
    "prepare": ("ringlet.strategy.replica.replica_threads", "ReplicaThreads", "prepare"),
    "acquire": ("ringlet.strategy.replica.replica_threads", "ReplicaThreadPool", "acquire"),
    "release": ("ringlet.strategy.replica.replica_threads", "ReplicaThreadPool", "release"),
    "enter": ("ringlet.devices.blas_threads", "BlasLimiter", "enter"),
    "leave BLAS": ("ringlet.devices.blas_threads", "BlasLimiter", "leave"),
}


@pytest.mark.parametrize("is_before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("point", POINTS)
def test_ctrl_c_around_any_step_of_a_run_leaves_the_strategy_usable(point, is_before, monkeypatch):
    module, owner_name, name = POINTS[point]
    owner = getattr(importlib.import_module(module), owner_name)
    original = getattr(owner, name)
    interrupts = [KeyboardInterrupt()]

    def interrupted(*args: Any) -> Any:
        is_mine = threading.current_thread() is threading.main_thread()
        if is_before and is_mine and interrupts:
            raise interrupts.pop()
        result = original(*args)
        if is_mine and interrupts:
            raise interrupts.pop()
        return result

    strategy = mirrored()
    assert_usable(strategy)
    monkeypatch.setattr(owner, name, interrupted)
    with pytest.raises(KeyboardInterrupt):
        strategy.run(all_reduce)
    assert interrupts == []
    assert blas_limiter()._replicas == {}
    assert_usable(strategy)
    pool = strategy.extended._thread_pool
    assert (len(pool._all), pool._owners) == (1, {})


@pytest.mark.parametrize("part", ["depart", "finish"])
def test_ctrl_c_while_a_replica_finishes_does_not_block_the_run(part, monkeypatch):
    strategy = mirrored()
    interrupts = [KeyboardInterrupt()]
    finish = ReplicaRun._finish

    def interrupted(run: ReplicaRun, replica: int) -> None:
        if replica == 0 and interrupts:
            run.ended[0] = True
            if part == "finish":
                run.threads.depart(0)
            raise interrupts.pop()
        finish(run, replica)

    monkeypatch.setattr(ReplicaRun, "_finish", interrupted)
    with pytest.raises(KeyboardInterrupt):
        strategy.run(all_reduce)
    assert_usable(strategy)


def test_ctrl_c_does_not_wait_for_a_replica_that_does_not_return(capfd):
    strategy = mirrored()
    has_begun, may_end = threading.Event(), threading.Event()
    late: queue.Queue[BaseException | None] = queue.Queue()

    def step() -> None:
        if replica_id() == 0:
            has_begun.wait(SECONDS)
            interrupt_soon()
            return
        has_begun.set()
        may_end.wait(SECONDS)
        try:
            all_reduce()
            late.put(None)
        except BaseException as error:
            late.put(error)

    with pytest.raises(KeyboardInterrupt):
        strategy.run(step)
    [line] = capfd.readouterr().err.splitlines()
    assert line.startswith("ringlet: strategy.run was interrupted while replica 1 is in step (")
    with pytest.raises(FailedPreconditionError, match=r"has raised while replica 1 is in step .*Wait for them"):
        strategy.run(lambda: None)
    may_end.set()
    assert_usable(strategy)
    assert isinstance(late.get(timeout=SECONDS), CollectiveAborted)


def test_ctrl_c_does_not_wait_for_the_batches_of_a_map(capfd):
    strategy = mirrored()
    both_run, may_end = threading.Barrier(2, timeout=SECONDS), threading.Event()

    def fn(x: Any) -> Any:
        if both_run.wait() == 0:
            interrupt_soon()
        may_end.wait(SECONDS)
        return x

    with pytest.raises(KeyboardInterrupt):
        strategy.map(fn, np.arange(2), batch_size=1)
    [line] = capfd.readouterr().err.splitlines()
    assert "interrupted while replica 0 is in fn (" in line
    assert "; replica 1 is in fn (" in line
    may_end.set()
    assert strategy.map(lambda x: x, np.arange(2)).tolist() == [0, 1]


SLEEPS = """
import signal, threading
import numpy as np
import ringlet

strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
out = np.zeros(3)
has_begun = threading.Event()

def step():
    replica = ringlet.get_replica_context()
    if replica.replica_id_in_sync_group == 1:
        has_begun.set()
        tell("asleep")
        time.sleep(1000)
    has_begun.wait()
    {other}

def attempt(call):
    try:
        call()
    except BaseException as error:
        tell([type(error).__name__, str(error), out.tolist()])
"""
OTHERS = {
    "in a collective": "replica.all_reduce('SUM', np.ones(3), out=out)",
    "in a merge_call": "replica.merge_call(lambda strategy: None)",
    "asleep": "time.sleep(1000)",
    "at the end": "pass",
}


@pytest.mark.parametrize("other", OTHERS)
def test_ctrl_c_raises_while_a_replica_sleeps(processes, other):
    program = SLEEPS.format(other=OTHERS[other])
    process = processes.start(program + "attempt(lambda: strategy.run(step))\nattempt(lambda: strategy.run(step))")
    assert process.told() == "asleep"
    time.sleep(0.1)  # the other replica is where it should be, most of the time
    process.popen.send_signal(signal.SIGINT)
    assert process.told() == ["KeyboardInterrupt", "", [0.0] * 3]
    kind, text, _ = process.told()
    assert kind == "FailedPreconditionError"
    assert "replica 1 is in step (" in text
    assert process.wait() == 0
    assert process.said().count("ringlet: strategy.run was interrupted while replica 1 is in step (") == 1


def test_ctrl_c_ends_a_program_whose_replica_sleeps(processes):
    process = processes.start(SLEEPS.format(other=OTHERS["in a collective"]) + "strategy.run(step)")
    assert process.told() == "asleep"
    process.popen.send_signal(signal.SIGINT)
    assert process.wait() == -signal.SIGINT
    said = process.said()
    assert 0 <= said.find("while replica 1 is in step (") < said.find("Traceback") < said.find("KeyboardInterrupt")


WORKERS = """
def late():
    if rank() == 1:
        tell("asleep")
        time.sleep(1000)
    return step()

attempt(lambda: strategy.run(step))
attempt(lambda: strategy.run(late))
"""


def test_ctrl_c_in_one_worker_whose_replica_sleeps_is_an_error_on_the_other(processes):
    name = f"test {uuid.uuid4()}"
    first, second = (processes.start(PROGRAM + WORKERS, environ=environment(i, 2, 2, name)) for i in range(2))
    assert [first.told(), second.told(), first.told()] == [[4.0, 8.0], [4.0, 8.0], "asleep"]
    first.popen.send_signal(signal.SIGINT)
    assert first.told()["kind"] == "KeyboardInterrupt"
    assert second.told()["kind"] == "CollectiveAborted"
    assert (first.wait(), second.wait()) == (0, 0)
    assert "strategy.run was interrupted while replica 1 is in late (" in first.said()
