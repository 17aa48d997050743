"""Processes that one process starts and ends."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

import pytest

from ringlet.cluster.child_processes import ChildProcesses, wait_for
from ringlet.errors import FailedPreconditionError
from ringlet.ipc.deadline import Deadline
from tests.processes.harness import PATIENCE_SECONDS, children, eventually


@pytest.fixture
def crew():
    crew = ChildProcesses()
    yield crew
    crew.end_all(0.0)


def start(crew, program):
    return crew.start([sys.executable, "-I", "-S", "-c", program], os.environ, [])


def test_a_process_outlives_the_thread_that_asked_for_it(crew):
    started = []
    thread = threading.Thread(target=lambda: started.append(start(crew, "import time; time.sleep(300)")))
    thread.start()
    thread.join(PATIENCE_SECONDS)
    time.sleep(0.1)
    assert not started[0].has_ended()


def test_those_that_end_by_themselves_are_not_killed(crew):
    worker = start(crew, "import time; time.sleep(0.1); raise SystemExit(3)")
    crew.end_all(PATIENCE_SECONDS)
    assert worker.status == 3


@pytest.mark.parametrize(
    "program", ["signal.pause()", "os.setsid(); signal.pause()", "os.kill(os.getpid(), signal.SIGSTOP)"]
)
def test_those_that_do_not_end_are_killed_in_time(crew, program):
    worker = start(crew, f"import os, signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {program}")
    time.sleep(0.1)
    started = time.monotonic()
    crew.end_all(0.6)
    assert time.monotonic() - started < 2.0
    assert worker.status == -signal.SIGKILL


def test_one_process_can_be_ended_alone(crew):
    one, other = start(crew, "import time; time.sleep(300)"), start(crew, "import time; time.sleep(300)")
    crew.end(one)
    assert (one.status, other.has_ended()) == (-signal.SIGKILL, False)


def test_nothing_starts_after_the_end_and_nothing_is_left(crew):
    before = children()
    start(crew, "import time; time.sleep(300)")
    crew.end_all(0.0)
    crew.end_all(0.0)
    with pytest.raises(FailedPreconditionError, match="were stopped: start a new cluster"):
        start(crew, "")
    assert len(children()) < len(before) + 1


def test_a_forked_child_ends_nobody(crew):
    worker = start(crew, "import time; time.sleep(300)")
    child = os.fork()
    if child == 0:
        crew.end_all(0.0)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert not worker.has_ended()


def test_a_forked_child_waits_for_no_lock_and_starts_nobody(crew):
    is_held, is_over = threading.Event(), threading.Event()

    def use():
        with crew._lock:
            is_held.set()
            is_over.wait(PATIENCE_SECONDS)

    thread = threading.Thread(target=use)
    thread.start()
    assert is_held.wait(PATIENCE_SECONDS)
    child = os.fork()
    if child == 0:
        signal.alarm(int(PATIENCE_SECONDS))
        crew.end_all(0.0)
        with pytest.raises(FailedPreconditionError, match="belong to process"):
            start(crew, "")
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    is_over.set()
    thread.join(PATIENCE_SECONDS)
    assert status == 0


def test_a_signal_may_end_all_while_one_is_starting(crew):
    class Environment:
        def keys(self):  # where the process is started
            os.kill(os.getpid(), signal.SIGUSR1)
            time.sleep(0.05)
            return ()

    before = children()
    handler = signal.signal(signal.SIGUSR1, lambda *_: crew.end_all(0.0))
    try:
        with pytest.raises(FailedPreconditionError, match="were stopped"):
            crew.start([sys.executable, "-I", "-S", "-c", "import time; time.sleep(300)"], Environment(), [])
    finally:
        signal.signal(signal.SIGUSR1, handler)
    assert len(children()) < len(before) + 1


def test_a_program_that_is_not_there_is_an_error_of_its_process(crew):
    worker = crew.start(["/no/such/program"], os.environ, [])
    assert wait_for([worker], Deadline.after(PATIENCE_SECONDS))
    assert worker.status == 1


def test_waiting_for_processes_ends_at_the_deadline(crew):
    assert not wait_for([start(crew, "import time; time.sleep(300)")], Deadline.after(0.05))
    assert eventually(lambda: wait_for([], Deadline.after(0.0)))
