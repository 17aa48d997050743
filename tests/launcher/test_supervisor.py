"""Looking after processes: their ends, and the deadlines by which they come."""

from __future__ import annotations

import os
import signal
import sys
import time

import pytest

from ringlet.ipc.worker_process import Keeper, Worker
from ringlet.launcher.output_relay import OutputChannel
from ringlet.launcher.supervisor import Supervisor

STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(300)"


@pytest.fixture
def supervise():
    """Gives a supervisor of some programs, and what they have written."""
    made = []

    def make(*programs, grace_seconds=0.2, has_failed=lambda worker: worker.status != 0, **options):
        keeper, written = Keeper(), []
        workers, channels = [], []
        for index, program in enumerate(programs):
            reader, writer = os.pipe()
            workers.append(Worker(index, keeper.start([sys.executable, "-c", program], os.environ, stdout=writer)))
            channels.append(OutputChannel(index, reader, b"", written.append))
            os.close(writer)
        options |= {"grace_seconds": grace_seconds, "has_failed": has_failed}
        made.append(Supervisor(keeper, workers, channels, **options))
        return made[-1], written

    yield make
    for supervisor in made:
        supervisor.close()


def go_on(supervisor, until=lambda: False, seconds=60.0):
    end = time.monotonic() + seconds
    while supervisor.is_at_work() and not until():
        supervisor.turn()
        assert time.monotonic() < end


def statuses(supervisor):
    return [worker.status for worker in supervisor.workers]


def test_it_is_at_work_until_all_have_ended_and_all_was_read(supervise):
    supervisor, written = supervise("print('a')", "import time; time.sleep(0.2); print('b')")
    go_on(supervisor)
    assert statuses(supervisor) == [0, 0]
    assert b"".join(written) == b"a\nb\n"


def test_one_failure_ends_the_others(supervise):
    supervisor, _ = supervise("raise SystemExit(3)", "import time; time.sleep(300)")
    go_on(supervisor)
    assert statuses(supervisor) == [3, -signal.SIGTERM]


def test_who_does_not_end_when_asked_is_killed(supervise):
    supervisor, written = supervise(STUBBORN)
    go_on(supervisor, until=lambda: written)
    supervisor.ask_to_end(signal.SIGTERM)
    go_on(supervisor)
    assert statuses(supervisor) == [-signal.SIGKILL]


WHEN_TOLD = "import os, sys, time\nwhile not os.path.exists({gate!r}):\n    time.sleep(0.01)\n"


def test_who_ended_first_is_heard_of_first_also_where_nobody_has_looked_for_a_while(supervise, tmp_path):
    gates = [tmp_path / str(index) for index in range(2)]
    said = []

    def has_failed(worker):
        said.append((worker.index, b"".join(written)))
        return False

    says_why = "print('the other one has gone'); sys.exit(1)"
    supervisor, written = supervise(
        *(WHEN_TOLD.format(gate=str(gate)) + says_why * (1 - index) for index, gate in enumerate(gates)),
        has_failed=has_failed,
    )
    for index in (1, 0):
        gates[index].touch()
        os.waitid(os.P_PID, supervisor.workers[index].process.pid, os.WEXITED | os.WNOWAIT)
    go_on(supervisor)
    assert said == [(1, b""), (0, b"the other one has gone\n")]


def test_a_failure_may_be_none_to_the_caller(supervise):
    supervisor, _ = supervise("raise SystemExit(3)", "import time; time.sleep(0.5)", has_failed=lambda worker: False)
    go_on(supervisor)
    assert statuses(supervisor) == [3, 0]


def test_a_child_that_holds_a_pipe_does_not_hold_up_the_end(supervise):
    program = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)'])"
    supervisor, _ = supervise(program)
    start = time.monotonic()
    go_on(supervisor)
    assert time.monotonic() - start < 30


def test_nothing_is_read_while_the_caller_is_held_up(supervise):
    held_up = [True]
    supervisor, written = supervise("print('a'); import time; time.sleep(300)", is_held_up=lambda: held_up[0])
    end = time.monotonic() + 0.5
    go_on(supervisor, until=lambda: time.monotonic() > end)
    assert b"".join(written) == b""
    held_up[0] = False
    go_on(supervisor, until=lambda: b"".join(written) == b"a\n")


def test_ends_are_seen_also_where_the_system_tells_nobody(supervise, monkeypatch):
    monkeypatch.delattr("os.pidfd_open", raising=False)
    supervisor, _ = supervise("raise SystemExit(3)", "import time; time.sleep(300)")
    go_on(supervisor)
    assert statuses(supervisor) == [3, -signal.SIGTERM]
