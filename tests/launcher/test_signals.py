"""Signals from a terminal, and the state in which it is left."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import sys
import termios
import time
from pathlib import Path

import pytest

from ringlet.launcher.signals import Signals
from tests.launcher.jobs import PROLOGUE
from tests.processes.harness import PATIENCE_SECONDS, eventually


class Terminal:
    """A terminal of its own, in which `ringlet run` is in the foreground."""

    def __init__(self, folder, script, *options):
        (folder / "script.py").write_text(PROLOGUE + script, encoding="utf-8")
        self.shown = b""
        self.pid, self._master = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.environ["TERM"] = "xterm"
            os.environ.pop("NO_COLOR", None)
            os.execv(sys.executable, [sys.executable, "-m", "ringlet", "run", *options, "script.py"])

    def type(self, keys):
        os.write(self._master, keys)

    def wait_for(self, text, count=1):
        """Read until a text has been shown so often."""
        end = time.monotonic() + PATIENCE_SECONDS
        while self.shown.count(text) < count:
            assert time.monotonic() < end, self.shown
            if select.select([self._master], [], [], 0.1)[0]:
                self.shown += os.read(self._master, 1 << 16)

    def end(self):
        """Read until the launcher has ended; give its exit status."""
        while True:
            try:
                data = os.read(self._master, 1 << 16)
            except OSError:  # the other end was closed
                data = b""
            if not data:
                return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            self.shown += data

    @property
    def echoes(self):
        return bool(termios.tcgetattr(self._master)[3] & termios.ECHO)

    def close(self):
        os.close(self._master)


@pytest.fixture
def open_terminal(tmp_path):
    """Opens terminals, and closes them with the test."""
    terminals = []

    def open_one(script, *options):
        terminals.append(Terminal(tmp_path, script, *options))
        return terminals[-1]

    yield open_one
    for terminal in terminals:
        terminal.close()


def test_ctrl_c_ends_all_with_one_traceback(open_terminal):
    terminal = open_terminal("print('ready')\ntime.sleep(300)", "-n", "3")
    terminal.wait_for(b"ready", 3)
    terminal.type(b"\x03")
    assert terminal.end() == 130
    assert terminal.shown.count(b"Traceback") == 1
    assert b"ringlet run: Ctrl-C: all 3 workers have ended" in terminal.shown


# One replica of each worker runs in the main thread, where Ctrl-C ends it.
SLEEPS = """
import threading
import ringlet
strategy = ringlet.MultiWorkerMirroredStrategy()
def step():
    replica = ringlet.get_replica_context()
    replica.all_reduce("SUM", 1.0)  # all workers have joined
    if threading.current_thread() is not threading.main_thread():
        print("asleep")
        time.sleep(300)
    replica.all_reduce("SUM", 1.0)
strategy.run(step)
"""


def test_ctrl_c_reports_the_replicas_that_sleep_in_every_worker(open_terminal):
    terminal = open_terminal(SLEEPS, "-n", "2", "--replicas", "2")
    terminal.wait_for(b"asleep", 2)
    terminal.type(b"\x03")
    assert terminal.end() == 130
    reports = terminal.shown.partition(b"Traceback")[0]
    replicas = re.findall(rb"was interrupted while replica (\d) is in step \(", reports)
    assert sorted(int(replica) // 2 for replica in replicas) == [0, 1]
    assert terminal.shown.count(b"Traceback") == 1
    assert b"KeyboardInterrupt" in terminal.shown


def test_a_second_ctrl_c_kills(open_terminal):
    terminal = open_terminal(
        "signal.signal(signal.SIGINT, lambda *_: print('not yet'))\nprint('ready')\nwhile True: time.sleep(0.05)",
        "-n", "2", "--grace-seconds", "300",
    )  # fmt: skip
    terminal.wait_for(b"ready", 2)
    terminal.type(b"\x03")
    terminal.wait_for(b"not yet", 2)
    terminal.type(b"\x03")
    assert terminal.end() == 130


def test_prefixes_have_colours_on_a_terminal(open_terminal):
    terminal = open_terminal("print('ready')", "-n", "2")
    assert terminal.end() == 0
    assert len(set(re.findall(rb"(\x1b\[\d+m)\[w\d\]\x1b\[0m ready\r\n", terminal.shown))) == 2


def test_reading_the_terminal_is_an_error_and_stops_nobody(open_terminal):
    terminal = open_terminal("if index == 0: open('/dev/tty').read()", "-n", "2")
    assert terminal.end() == 1
    assert b"OSError: [Errno 5]" in terminal.shown


def test_the_terminal_gets_its_settings_back_from_a_worker_that_was_killed(open_terminal):
    terminal = open_terminal(
        """
import termios
if index == 0:
    terminal = os.open("/dev/tty", os.O_RDWR)
    settings = termios.tcgetattr(terminal)
    settings[3] &= ~termios.ECHO
    termios.tcsetattr(terminal, termios.TCSANOW, settings)
    os.kill(os.getpid(), signal.SIGKILL)
time.sleep(300)
""",
        "-n", "2",
    )  # fmt: skip
    terminal.wait_for(b"SIGKILL")
    assert eventually(lambda: terminal.echoes)
    assert terminal.end() == 137


def test_ctrl_z_stops_the_workers_too_and_they_go_on_together(launcher):
    # In a process group of its own, as a shell starts it: the system does not stop a group that no shell looks after.
    job = launcher.start("print('ready')\nwhile True: time.sleep(0.01)", "-n", 2, preexec_fn=os.setpgrp)
    job.wait_for_lines(2)
    workers = [pid for pid in job.processes() if "script.py" in text_of(pid, "cmdline")]
    assert len(workers) == 2
    job.send(signal.SIGTSTP)
    assert eventually(lambda: {state_of(pid) for pid in (job.popen.pid, *workers)} == {"T"})
    job.send(signal.SIGCONT)
    assert eventually(lambda: "T" not in {state_of(pid) for pid in (job.popen.pid, *workers)})
    assert job.popen.poll() is None


def test_signals_that_were_ignored_stay_ignored_and_all_others_get_their_handlers_back():
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    old = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Signals():
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) != before[signal.SIGTERM]
    finally:
        signal.signal(signal.SIGHUP, old)
    assert {number: signal.getsignal(number) for number in before} == before


def state_of(pid):
    return text_of(pid, "stat").rpartition(")")[2].split()[0]


def text_of(pid, name):
    return Path(f"/proc/{pid}/{name}").read_text("utf-8")
