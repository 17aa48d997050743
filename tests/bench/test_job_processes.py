"""Time is counted of the processes that were named, together, as long as they are there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench.job_processes import cpu_seconds_of

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="jobs are found in /proc")

WORKS = """
import sys, time
while time.process_time() < float(sys.argv[1]):
    pass
print("done", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def worked():
    """Gives a function that starts a process, which has used so many seconds when it comes back."""
    processes = []

    def start(seconds):
        command = [sys.executable, "-S", "-c", WORKS, str(seconds)]
        processes.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        assert processes[-1].stdout.readline() == "done\n"
        return processes[-1]

    yield start
    for process in processes:
        process.communicate(timeout=30)


def test_the_time_of_several_processes_is_their_sum(worked):
    one, other = worked(0.2), worked(0.3)
    seconds = cpu_seconds_of([one.pid]), cpu_seconds_of([other.pid])
    assert cpu_seconds_of([one.pid, other.pid]) == pytest.approx(sum(seconds), abs=0.05)
    assert sum(seconds) > 0.4


def test_a_process_that_is_gone_counts_as_none(worked):
    gone, there = worked(0.2), worked(0.1)
    gone.communicate(timeout=30)
    assert cpu_seconds_of([gone.pid]) == 0.0
    assert cpu_seconds_of([gone.pid, there.pid]) == pytest.approx(cpu_seconds_of([there.pid]), abs=0.05)
