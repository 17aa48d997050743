"""The process that leads the group of the workers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from ringlet.ipc import process_group_reaper
from tests.processes.harness import PATIENCE_SECONDS


@pytest.fixture
def start():
    started = []

    def start_keeper(launcher):
        command = [sys.executable, "-I", "-S", process_group_reaper.__file__, str(launcher)]
        started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        return started[-1]

    yield start_keeper
    for process in started:
        process.kill()
        process.wait(PATIENCE_SECONDS)
        process.stdin.close()
        process.stdout.close()


def test_it_leads_a_group_of_its_own_and_says_when_it_does(start):
    process = start(os.getpid())
    assert process.stdout.read() == b"."
    assert os.getpgid(process.pid) == process.pid


def test_it_kills_its_group_when_the_launchers_end_of_the_pipe_closes(start):
    process = start(os.getpid())
    process.stdout.read(1)
    process.stdin.close()
    assert process.wait(PATIENCE_SECONDS) == -signal.SIGKILL


def test_it_heeds_no_signal_that_is_meant_for_the_workers(start):
    process = start(os.getpid())
    process.stdout.read(1)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2):
        os.killpg(process.pid, number)
    assert process.poll() is None


def test_it_ends_also_where_another_process_holds_the_pipe(start):
    # Its parent is not the launcher that it was told: as if that had ended, and somebody had inherited its descriptors.
    assert start(1).wait(PATIENCE_SECONDS) == -signal.SIGKILL
