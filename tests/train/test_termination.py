"""SIGTERM and functions that are polled are noticed; afterwards, and in children, SIGTERM has its previous effect."""

from __future__ import annotations

import ctypes
import logging
import os
import select
import signal
import socket
import threading
import time
from pathlib import Path

import pytest

from ringlet.train import termination
from ringlet.train.termination import TerminationConfig, TerminationNotice, protect_loader_process
from tests.processes.harness import PATIENCE_SECONDS, eventually


@pytest.fixture(autouse=True)
def _the_handler_of_the_tests_comes_back(monkeypatch):
    monkeypatch.setattr(termination, "_MERGED_SECONDS", 0.01)
    log = termination._logs.mine
    log.end(log.notices.copy())  # notices that other tests have left open would protect the children, too
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


class Child:
    """A forked process that answers until it is ended, as a loader process does."""

    def __init__(self, init=lambda: None):
        self._mine, other = socket.socketpair()
        self.pid = os.fork()
        if self.pid == 0:
            self._mine.close()
            init()
            other.send(b".")  # Python forgets signals that arrive while it forks
            while True:
                # Python handles a signal that arrives just before a call into the system only after that call.
                while not select.select([other], [], [], 0.1)[0]:
                    pass
                if not other.recv(1):
                    os._exit(0)
                other.send(b"!")
        other.close()
        assert self._mine.recv(1) == b"."

    def answers(self):
        self._mine.send(b"?")
        try:
            return self._mine.recv(1) == b"!"
        except ConnectionResetError:
            return False

    def end(self):
        """Return the exit status after a signal to that process alone."""
        os.kill(self.pid, signal.SIGTERM)
        return self.ended()

    def ended(self):
        """Return the exit status once it has ended."""
        status = os.waitpid(self.pid, 0)[1]
        self._mine.close()
        return status


def signal_both(child):
    for process in (child.pid, os.getpid()):
        os.kill(process, signal.SIGTERM)


def test_a_forked_child_ignores_a_signal_of_its_group_during_a_long_call_of_the_parent():
    """As a product of large matrices, during which Python calls no handler."""
    notice, child, answers = TerminationNotice(None), Child(), []
    library, mutex = ctypes.CDLL(None), ctypes.create_string_buffer(64)
    call = Path(f"/proc/self/task/{threading.get_native_id()}/syscall")

    def signal_and_ask():
        answers.append(eventually(lambda: hex(ctypes.addressof(mutex)) in call.read_text()))
        for _ in range(2):
            signal_both(child)
            answers.append(child.answers())  # so that the second signal is not merged with the first
        answers.append(notice.at)
        library.pthread_mutex_unlock(mutex)

    library.pthread_mutex_lock(mutex)
    thread = threading.Thread(target=signal_and_ask)
    thread.start()
    library.pthread_mutex_lock(mutex)
    thread.join()
    assert answers == [True, True, True, None]
    assert eventually(lambda: notice.at is not None)
    assert child.end() == signal.SIGTERM


def test_a_child_forked_before_and_with_a_handler_of_its_own_is_protected_on_request():
    """As a DataLoader's, whose processes replace the handler."""

    def init():
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        protect_loader_process(0)

    before = Child(init)
    notice = TerminationNotice(None)
    after = Child(init)
    for child in (before, after):
        signal_both(child)
        assert child.answers()
    assert eventually(lambda: notice.at is not None)
    notice.close()
    assert [before.end(), after.end()] == [signal.SIGTERM] * 2


def test_a_child_that_receives_two_signals_where_its_parent_receives_one_ends_later(monkeypatch):
    """The system merges signals that arrive at the same time."""
    monkeypatch.setattr(termination, "_MERGED_SECONDS", 0.3)
    notice, child = TerminationNotice(None), Child()
    signal_both(child)
    assert child.answers()
    assert notice.at is not None
    os.kill(child.pid, signal.SIGTERM)
    assert child.answers()
    assert child.ended() == signal.SIGTERM


def test_another_reader_of_signals_keeps_its_descriptor():
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    signal.set_wakeup_fd(writer.fileno())
    try:
        notice, child = TerminationNotice(None), Child()
        signal_both(child)
        assert child.answers()
        assert reader.recv(1) == bytes([signal.SIGTERM])
        notice.close()
    finally:
        assert signal.set_wakeup_fd(-1) == writer.fileno()
    assert child.end() == signal.SIGTERM
    reader.close()
    writer.close()


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
        f"termination_watcher_fn raised OSError: {text}; it will be called again in 1 s"
        for text in ("no answer", "refused")
    ]


def test_polling_ends_with_the_notice(monkeypatch):
    monkeypatch.setattr(termination, "_POLL_SECONDS", 0.001)
    notice = TerminationNotice(lambda: False)
    assert "ringlet-termination" in [thread.name for thread in threading.enumerate()]
    del notice
    assert eventually(lambda: "ringlet-termination" not in [thread.name for thread in threading.enumerate()])
