"""SIGTERM and functions that are polled are noticed; afterwards, and in children, SIGTERM has its previous effect."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time

import pytest

from ringlet.train import termination
from ringlet.train.termination import TerminationConfig, TerminationNotice
from tests.processes.harness import PATIENCE_SECONDS, eventually


@pytest.fixture(autouse=True)
def _the_handler_of_the_tests_comes_back():
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def test_the_defaults_and_attributes_are_tensorflows():
    assert vars(TerminationConfig()) == dict.fromkeys(["termination_watcher_fn", "exit_fn", "grace_period", "save_fn"])
    config = TerminationConfig(bool, int, 3.0, str)
    assert list(vars(config).values()) == [bool, int, 3.0, str]


@pytest.mark.parametrize("name", ["termination_watcher_fn", "exit_fn", "save_fn"])
def test_what_is_not_a_function_is_refused(name):
    with pytest.raises(TypeError, match=rf"{name} must be a function, got 42"):
        TerminationConfig(**{name: 42})


def test_the_first_signal_counts():
    notice = TerminationNotice(None)
    assert notice.at is None
    os.kill(os.getpid(), signal.SIGTERM)
    first = notice.at
    os.kill(os.getpid(), signal.SIGTERM)
    assert first is not None
    assert notice.at == first


@pytest.mark.parametrize("end", ["close", "delete"])
def test_afterwards_a_signal_has_its_previous_effect(end):
    received = []
    signal.signal(signal.SIGTERM, lambda number, frame: received.append(number))
    notice = TerminationNotice(None)
    os.kill(os.getpid(), signal.SIGTERM)
    assert received == []
    if end == "close":
        notice.close()
    del notice
    os.kill(os.getpid(), signal.SIGTERM)
    assert received == [signal.SIGTERM]


def test_a_signal_during_the_exit_is_ignored_until_another_training_begins():
    received = []
    signal.signal(signal.SIGTERM, lambda number, frame: received.append(number))
    notice = TerminationNotice(None)
    notice.keep_until_exit()
    notice.close()
    del notice
    os.kill(os.getpid(), signal.SIGTERM)
    assert received == []
    TerminationNotice(None)
    os.kill(os.getpid(), signal.SIGTERM)
    assert received == [signal.SIGTERM]


def test_a_forked_child_is_ended_by_the_signal():
    notice = TerminationNotice(None)
    ready = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(ready[1], b".")  # Python forgets signals that arrive while it forks
        time.sleep(PATIENCE_SECONDS)
        os._exit(0)
    os.read(ready[0], 1)
    for end in ready:
        os.close(end)
    os.kill(pid, signal.SIGTERM)
    assert os.waitpid(pid, 0)[1] == signal.SIGTERM
    assert notice.at is None


def test_a_forked_child_ignores_a_signal_of_its_group_and_no_other():
    notice = TerminationNotice(None)
    ready, done = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(ready[1], b".")
        os.read(done[0], 1)  # continues after a signal that is ignored
        os.write(ready[1], b"!")
        time.sleep(PATIENCE_SECONDS)
        os._exit(0)
    os.read(ready[0], 1)
    for process in (pid, os.getpid()):
        os.kill(process, signal.SIGTERM)
    assert eventually(lambda: notice.at is not None)
    os.write(done[1], b".")
    assert os.read(ready[0], 1) == b"!"
    os.kill(pid, signal.SIGTERM)
    assert os.waitpid(pid, 0)[1] == signal.SIGTERM
    for end in (*ready, *done):
        os.close(end)


def test_a_process_that_exits_ends_its_children():
    notice = TerminationNotice(None)
    ready = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(ready[1], b".")
        time.sleep(PATIENCE_SECONDS)
        os._exit(0)
    os.read(ready[0], 1)
    os.kill(os.getpid(), signal.SIGTERM)
    assert eventually(lambda: notice.at is not None)
    notice.keep_until_exit()
    try:
        os.kill(pid, signal.SIGTERM)
        assert os.waitpid(pid, 0)[1] == signal.SIGTERM
    finally:
        termination._ending.clear()
    for end in ready:
        os.close(end)


def test_another_thread_cannot_handle_signals_and_may_poll():
    outcomes = []

    def make(watch):
        try:
            outcomes.append(TerminationNotice(watch))
        except ValueError as error:
            outcomes.append(str(error))

    for watch in (None, lambda: True):
        thread = threading.Thread(target=make, args=(watch,), name="trainer")
        thread.start()
        thread.join()
    assert "this is the thread 'trainer'" in outcomes[0]
    assert "termination_watcher_fn" in outcomes[0]
    assert eventually(lambda: outcomes[1].at is not None)


def test_a_function_is_polled_until_it_returns_true_and_its_errors_are_logged_once(monkeypatch, caplog):
    monkeypatch.setattr(termination, "_POLL_SECONDS", 0.001)
    answers = iter([False, OSError("no answer"), OSError("no answer"), OSError("refused"), True])
    calls = []

    def watch():
        calls.append(next(answers))
        if isinstance(calls[-1], OSError):
            raise calls[-1]
        return calls[-1]

    with caplog.at_level(logging.WARNING):
        notice = TerminationNotice(watch)
        assert eventually(lambda: notice.at is not None)
    assert len(calls) == 5
    assert [record.getMessage() for record in caplog.records] == [
        f"termination_watcher_fn raised OSError: {text}; it is called again every second"
        for text in ("no answer", "refused")
    ]


def test_polling_ends_with_the_notice(monkeypatch):
    monkeypatch.setattr(termination, "_POLL_SECONDS", 0.001)
    notice = TerminationNotice(lambda: False)
    assert "ringlet-termination" in [thread.name for thread in threading.enumerate()]
    del notice
    assert eventually(lambda: "ringlet-termination" not in [thread.name for thread in threading.enumerate()])
