"""Work of devices in threads: what is claimed by whom, errors, nesting, forks."""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import threading
import warnings

import numpy as np
import pytest

from ringlet.devices import blas_threads
from ringlet.devices.blas_threads import loaded_libraries
from ringlet.sharding.execution import device_threads
from ringlet.sharding.execution.device_threads import INLINE_BYTES, in_threads, on_devices
from ringlet.sharding.memory_modes import current_mode, mode

MUCH = INLINE_BYTES + 1


@pytest.fixture(autouse=True)
def four_cores(monkeypatch):
    """A pool of a machine with four cores, whatever this one has."""
    pool = device_threads._Pool()
    pool._num_cores = 4
    monkeypatch.setattr(device_threads, "_pool", pool)


def threads_of(num_devices, nbytes):
    """The thread that each device's work ran in, where each waits for as many as may be at work."""
    found = {}
    barrier = threading.Barrier(min(num_devices, 4) if nbytes * num_devices > INLINE_BYTES else 1, timeout=10)

    def work(device):
        if device < barrier.parties:
            barrier.wait()
        found[device] = threading.get_ident()

    on_devices(work, range(num_devices), nbytes)
    assert sorted(found) == list(range(num_devices))
    return set(found.values())


def test_little_work_is_done_by_the_calling_thread():
    assert threads_of(8, INLINE_BYTES // 8) == {threading.get_ident()}


@pytest.mark.parametrize("num_devices", [2, 4, 9])
def test_much_work_is_done_by_as_many_threads_as_there_are_cores(num_devices):
    for _ in range(3):
        threads = threads_of(num_devices, MUCH)
        assert len(threads) == min(num_devices, 4)
        assert threading.get_ident() in threads


@pytest.mark.parametrize("nbytes", [0, MUCH])
def test_the_error_of_the_first_device_that_fails_is_raised_and_names_it(nbytes):
    def work(device):
        if device >= 2:
            raise ValueError(f"no {device}")

    for _ in range(20):
        with pytest.raises(ValueError, match="no 2") as caught:
            on_devices(work, range(8), nbytes)
        assert caught.value.__notes__ == ["in the work of device 2"]


def test_work_that_is_not_of_devices_names_none():
    def work(number):
        raise ValueError(number)

    for nbytes in (0, MUCH):
        with pytest.raises(ValueError, match="0") as caught:
            in_threads(work, range(4), nbytes)
        assert not getattr(caught.value, "__notes__", [])


def test_work_may_have_work_of_devices_in_it():
    done = []

    def outer(device):
        on_devices(lambda inner: done.append((device, inner)), range(3), MUCH)

    on_devices(outer, range(5), MUCH)
    assert sorted(done) == [(device, inner) for device in range(5) for inner in range(3)]


def test_several_threads_may_call_at_once():
    sums = [0] * 6

    def call(number):
        parts = np.zeros(8, int)
        for _ in range(20):
            on_devices(lambda device: parts.__setitem__(device, parts[device] + number), range(8), MUCH)
        sums[number] = int(parts.sum())

    threads = [threading.Thread(target=call, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert sums == [20 * 8 * number for number in range(6)]


def test_callers_leave_cores_to_each_other():
    is_claimed, may_end = threading.Event(), threading.Event()

    def hold(device):
        is_claimed.set()
        may_end.wait(timeout=10)

    busy = threading.Thread(target=on_devices, args=(hold, range(3), MUCH))
    busy.start()
    is_claimed.wait(timeout=10)
    before = len(device_threads._pool._callers)
    may_end.set()
    busy.join(timeout=10)
    assert before == 1
    assert not device_threads._pool._callers


def test_helpers_work_in_the_context_of_the_caller():
    modes, states = [], []

    def work(device):
        modes.append(current_mode())
        states.append(np.geterr()["divide"])

    with mode("copy"), np.errstate(divide="raise"):
        on_devices(work, range(8), MUCH)
    assert set(modes) == {"copy"}
    assert set(states) == {"raise"}


@pytest.mark.parametrize("nbytes", [0, MUCH])
@pytest.mark.parametrize("count", [1, 3])
def test_blas_has_one_thread_for_each_device_but_one_that_is_alone(nbytes, count):
    libraries = loaded_libraries()
    if not libraries:
        pytest.skip("no BLAS whose threads can be limited")
    before = [library.get_threads() for library in libraries]
    seen = []
    on_devices(lambda _: seen.extend(library.get_threads() for library in libraries), range(count), nbytes)
    assert set(seen) == {1}
    assert [library.get_threads() for library in libraries] == before
    on_devices(lambda _: seen.append([library.get_threads() for library in libraries]), [0], nbytes, is_alone=True)
    assert seen[-1] == before


def test_ctrl_c_in_work_comes_before_other_errors():
    def work(device):
        raise KeyboardInterrupt if device else ValueError

    is_raised = threading.Barrier(2, timeout=10)

    def together(device):
        is_raised.wait()
        work(device)

    with pytest.raises(KeyboardInterrupt):
        on_devices(together, range(2), MUCH)


class InterruptedEvent(threading.Event):
    """Ctrl-C ends each wait without a time-out."""

    def wait(self, timeout=None):
        if timeout is None:
            raise KeyboardInterrupt
        return super().wait(timeout)


@pytest.mark.parametrize("first", ["in the work", "while it waits"])
def test_ctrl_c_prints_what_other_threads_run_and_a_second_one_does_not_wait(first, capsys):
    has_begun, may_end = threading.Event(), threading.Event()

    def slow_work(device):
        if threading.current_thread() is helper:
            has_begun.set()
            may_end.wait(10)
        elif first == "in the work":
            raise KeyboardInterrupt

    job = device_threads._Job(slow_work, range(2), "")
    job._has_ended = InterruptedEvent()
    helper = threading.Thread(target=job.help)
    helper.start()
    has_begun.wait(10)
    job.take_part()
    with pytest.raises(KeyboardInterrupt):
        job.finish()
    may_end.set()
    helper.join(10)
    printed = capsys.readouterr().err
    assert "interrupted; waiting for 1 of the threads that compute tiles" in printed
    assert printed.endswith(". Press Ctrl-C again to stop waiting\n")


def interrupted_at(place, work):
    """Call something, with Ctrl-C as the system brings it at one place: after a call, or as one begins."""
    events = itertools.count()

    def profile(frame, event, _):
        is_place = event in ("call", "c_return") and frame.f_code.co_filename in (
            device_threads.__file__,
            blas_threads.__file__,
        )
        if is_place and next(events) == place:
            raise KeyboardInterrupt

    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)


def test_ctrl_c_at_any_place_ends_the_call_and_leaves_nothing_behind():
    claimed = threading.Barrier(2)

    def work(device):
        if device < 2:
            with contextlib.suppress(threading.BrokenBarrierError):
                claimed.wait(timeout=0.01)  # so that a helper has some, too

    def call_interrupted():
        for place in itertools.count():
            claimed.reset()
            try:
                interrupted_at(place, lambda: on_devices(work, range(4), MUCH))
            except KeyboardInterrupt:
                left.append((set(device_threads._pool._callers), dict(blas_threads.blas_limiter()._replicas)))
            else:
                return

    left = []
    on_devices(work, range(4), MUCH)
    caller = threading.Thread(target=call_interrupted, daemon=True)
    caller.start()
    caller.join(timeout=30)
    assert not caller.is_alive()
    assert len(left) > 10
    assert all(each == (set(), {}) for each in left)
    assert len(threads_of(9, MUCH)) == 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_has_a_pool_of_its_own():
    on_devices(lambda _: None, range(4), MUCH)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # fork with threads
        child = os.fork()
    if child == 0:
        done = []
        on_devices(done.append, range(4), MUCH)
        os._exit(0 if sorted(done) == [0, 1, 2, 3] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
