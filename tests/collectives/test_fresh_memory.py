"""Memory that results and shared arrays begin with."""

from __future__ import annotations

import signal
import threading
import time

import numpy as np
import pytest

import ringlet
from ringlet import _core


@pytest.mark.parametrize("count", [3, 300_000])
def test_fresh_memory_is_full_of_nan_in_tests(count):
    assert np.isnan(ringlet.empty_shared((count,))).all()
    assert np.isnan(_core.allocate((count,), np.dtype(np.float64))[0]).all()


def test_memory_is_reserved_while_a_timer_interrupts_all_the_time():
    calls = []
    before = signal.signal(signal.SIGALRM, lambda *_: calls.append(None))
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        ringlet.empty_shared(1 << 28, np.uint8)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_other_threads_run_while_memory_is_reserved():
    is_over = threading.Event()

    def reserve() -> None:
        ringlet.empty_shared(1 << 29, np.uint8)
        is_over.set()

    thread = threading.Thread(target=reserve)
    thread.start()
    turns = 0
    while not is_over.is_set():
        turns += 1
        time.sleep(0)
    thread.join()
    assert turns > 10
