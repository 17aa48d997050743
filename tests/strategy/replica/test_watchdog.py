"""Time limits of single calls: the replica that has waited too long raises, and no other call is aborted."""

from __future__ import annotations

import contextlib
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ringlet
from ringlet.errors import CollectiveAborted, DeadlineExceededError
from ringlet.strategy.replica import watchdog
from ringlet.strategy.replica.error_selection import follows_from_abort
from ringlet.strategy.replica.watchdog import Watchdog
from tests.strategy.replicas import SECONDS, assert_usable, mirrored, replica, replica_id
from tests.strategy.test_fork import run_python

SOON = ringlet.experimental.CommunicationOptions(timeout_seconds=0.02)
LATE = ringlet.experimental.CommunicationOptions(timeout_seconds=SECONDS)


def until_the_group_fails() -> None:
    """Stay away from the collective in which the other replicas wait."""
    last = time.monotonic() + SECONDS
    while replica()._run.threads.group.failure is None:
        assert time.monotonic() < last
        time.sleep(0.001)


CALLS: dict[str, Callable[[Any], Any]] = {
    "all_reduce": lambda options: replica().all_reduce("SUM", np.ones(3), options),
    "all_gather": lambda options: replica().all_gather(np.ones(3), 0, options),
    "all_reduce of many": lambda options: replica().all_reduce("SUM", [np.ones(3), 1.5], options),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
@pytest.mark.parametrize("num_replicas", [2, 3, 8])
@pytest.mark.parametrize("is_late", [0, 1])
def test_replicas_that_wait_too_long_raise_and_the_strategy_stays_usable(call, num_replicas, is_late):
    strategy = mirrored(num_replicas)

    def step() -> Any:
        if replica_id() == is_late:
            until_the_group_fails()
        return call(SOON)

    text = (
        r"waited 0\.02 s, the timeout_seconds of its CommunicationOptions, for the other replicas in "
        "all_(reduce|gather): check what they execute, or allow more time"
    )
    with pytest.raises(DeadlineExceededError, match=text):
        strategy.run(step)
    assert_usable(strategy)


def test_an_expired_watchdog_keeps_nothing_alive():
    class Abort:
        def __call__(self, reason: str) -> None:
            ended.set()

    ended = threading.Event()
    early, late = Abort(), Abort()
    references = [weakref.ref(early), weakref.ref(late)]
    with Watchdog(SECONDS, print, lambda: "never"):  # keeps the next one, which expires later, in the queue
        with Watchdog(2 * SECONDS, late, lambda: "never"):
            pass
        with contextlib.suppress(DeadlineExceededError), Watchdog(0.01, early, lambda: "now"):
            assert ended.wait(SECONDS)
            time.sleep(0.01)
    del early, late
    end = time.monotonic() + SECONDS
    while any(reference() is not None for reference in references):
        assert time.monotonic() < end
        time.sleep(0.001)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_a_distant_deadline_changes_nothing(call):
    strategy = mirrored(2)
    expected = strategy.run(lambda: call(None))
    found = strategy.run(lambda: call(LATE))
    np.testing.assert_equal(strategy.experimental_local_results(found), strategy.experimental_local_results(expected))


def test_a_single_replica_does_not_wait():
    assert mirrored(1).run(lambda: CALLS["all_reduce"](SOON)).tolist() == [1, 1, 1]


def wait_in(deadline_seconds: float, then: BaseException | None) -> None:
    """Leave a watchdog after it has expired, with or without an exception."""
    ended = threading.Event()
    with Watchdog(deadline_seconds, lambda _: ended.set(), lambda: "too late"):
        assert ended.wait(SECONDS)
        if then is not None:
            raise then


@pytest.mark.parametrize("then", [None, CollectiveAborted("too late")])
def test_an_expired_deadline_is_raised_as_an_independent_failure(then):
    with pytest.raises(DeadlineExceededError, match="too late") as caught:
        wait_in(0.01, then)
    assert not follows_from_abort(caught.value)


def test_another_failure_is_raised_instead():
    with pytest.raises(KeyError):
        wait_in(0.01, KeyError("of its own"))


def test_a_watchdog_left_in_time_does_not_abort():
    reasons: list[str] = []
    of_others = [entry for _, _, entry in watchdog._timer._entries]  # the timer is that of the process
    for _ in range(100):
        with Watchdog(SECONDS, reasons.append, lambda: "too late"):
            pass
    with Watchdog(0.0, reasons.append, lambda: "never"):
        time.sleep(0.002)
    assert reasons == []
    own = [entry for _, _, entry in watchdog._timer._entries if not any(entry is other for other in of_others)]
    assert all(entry.action is None for entry in own)


def test_deadlines_expire_in_order():
    order: list[str] = []
    both = threading.Event()

    def note(text: str) -> None:
        order.append(text)
        if len(order) == 2:
            both.set()

    def wait() -> None:
        with Watchdog(0.05, note, lambda: "second"), Watchdog(0.01, note, lambda: "first"):
            assert both.wait(SECONDS)

    with pytest.raises(DeadlineExceededError):
        wait()
    assert order == ["first", "second"]


def test_deadlines_work_in_a_forked_child():
    code = """
import time
from ringlet.experimental import CommunicationOptions

def late_step():
    replica = ringlet.get_replica_context()
    if int(replica.replica_id_in_sync_group) == 1:
        while replica._run.threads.group.failure is None:
            time.sleep(0.001)
    return replica.all_reduce("SUM", np.ones(3), CommunicationOptions(timeout_seconds=0.02))

def attempt():
    try:
        strategy.run(late_step)
    except TimeoutError:
        return "over"

print(attempt(), flush=True)
if os.fork() == 0:
    signal.alarm(30)
    os.write(1, attempt().encode())
    os._exit(0)
os.wait()
"""
    assert run_python(code) == "over\nover"
