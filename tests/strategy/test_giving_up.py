"""Runs that do not end by themselves: deadlines and Ctrl-C."""

from __future__ import annotations

import importlib
import os
import queue
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ringlet
from ringlet.devices.blas_threads import blas_limiter
from ringlet.errors import DeadlineExceededError, FailedPreconditionError
from ringlet.strategy.replica.step_execution import ReplicaRun
from tests.strategy.replicas import SECONDS, all_reduce, assert_usable, mirrored, replica_id


def test_a_replica_that_does_not_return_in_time_is_named_with_its_line():
    strategy = mirrored(3)
    strategy.extended._crews.timeout_seconds = 0.05
    may_end = threading.Event()

    def step() -> None:
        if replica_id() == 1:
            may_end.wait(SECONDS)
        elif replica_id() == 0:
            time.sleep(0.01)

    named = r"1 of 3 replicas .*replica 1 is in wait .*RINGLET_TIMEOUT_SECONDS"
    with pytest.raises(DeadlineExceededError, match=named):
        strategy.run(step)
    with pytest.raises(FailedPreconditionError, match="this strategy is closed"):
        strategy.run(lambda: None)
    may_end.set()


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
    strategy.extended._crews.timeout_seconds = 0.05
    with strategy.scope():
        variable = ringlet.Variable(np.zeros(3), **options)
    caller, has_begun, may_go_on = threading.get_ident(), threading.Event(), threading.Event()
    ended: queue.Queue[BaseException | None] = queue.Queue()

    def step() -> None:
        if threading.get_ident() == caller:  # whichever replica it is, the other one is in a helper
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


def interrupt_soon() -> None:
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()


def test_ctrl_c_releases_replicas_that_wait_in_a_collective():
    strategy = mirrored()
    released: list[type[BaseException]] = []

    def step() -> None:
        if replica_id() == 0:
            interrupt_soon()
            return
        # Not departed yet, as far as replica 1 can tell: it waits in a barrier that nobody else comes to.
        try:
            threading.Event().wait(0.3)
            all_reduce()
        except BaseException as error:
            released.append(type(error))
            raise

    with pytest.raises(KeyboardInterrupt):
        strategy.run(step)
    assert len(released) == 1
    assert_usable(strategy)


def test_ctrl_c_in_replica_0_is_raised():
    strategy = mirrored()

    def step() -> None:
        if replica_id() == 0:
            interrupt_soon()
            time.sleep(SECONDS)
        all_reduce()

    with pytest.raises(KeyboardInterrupt):
        strategy.run(step)
    assert_usable(strategy)


POINTS = {
    "claim": ("ringlet.strategy.replica.step_execution", "ReplicaRun", "execute"),
    "leave": ("ringlet.strategy.replica.step_execution", "ReplicaRun", "_leave"),
    "prepare": ("ringlet.strategy.replica.replica_threads", "Crew", "prepare"),
    "acquire": ("ringlet.strategy.replica.replica_threads", "CrewPool", "acquire"),
    "release": ("ringlet.strategy.replica.replica_threads", "CrewPool", "release"),
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
    crews = strategy.extended._crews
    assert (len(crews._all), crews._owners) == (1, {})


@pytest.mark.parametrize("part", ["depart", "finish"])
def test_ctrl_c_while_a_replica_leaves_does_not_keep_the_run_from_ending(part, monkeypatch):
    strategy = mirrored()
    interrupts = [KeyboardInterrupt()]
    leave = ReplicaRun._leave

    def interrupted(run: ReplicaRun, replica: int) -> None:
        if replica == 0 and interrupts:
            run.ended[0] = True
            if part == "finish":
                run.crew.depart(0)
            raise interrupts.pop()
        leave(run, replica)

    monkeypatch.setattr(ReplicaRun, "_leave", interrupted)
    with pytest.raises(KeyboardInterrupt):
        strategy.run(all_reduce)
    assert_usable(strategy)


def test_a_second_ctrl_c_gives_up_a_replica_that_does_not_return():
    strategy = mirrored()
    may_end = threading.Event()

    def step() -> None:
        if replica_id() == 0:
            interrupt_soon()
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
            time.sleep(0.01)
        else:
            may_end.wait(SECONDS)

    with pytest.raises(KeyboardInterrupt):
        strategy.run(step)
    with pytest.raises(FailedPreconditionError, match="given up while replicas were running"):
        strategy.run(lambda: None)
    may_end.set()
