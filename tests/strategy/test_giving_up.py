"""Runs that do not end by themselves: deadlines and Ctrl-C."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from ringlet.errors import DeadlineExceededError, FailedPreconditionError
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
