"""The workers of one launch."""

from __future__ import annotations

import errno
import gc
import os
import time
from pathlib import Path

import pytest

import ringlet
from ringlet.launcher import launch_job
from tests.processes.harness import children, descriptors_of, threads_of

# B6 of a long run: nothing accumulates, however often functions are job.
LAUNCHES = 1000 if os.environ.get("RINGLET_CI_NIGHTLY") else 5


def memory_bytes():
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.timeout(600 + 3 * LAUNCHES)  # of which each takes a third of a second, and longer beside other work
def test_nothing_accumulates_over_launches():
    for _ in range(2):
        ringlet.launch(os.getpid, n=1)
    gc.collect()
    before, threads, memory = (descriptors_of(), children()), threads_of(), memory_bytes()
    pids = {ringlet.launch(os.getpid, n=1)[0] for _ in range(LAUNCHES)}
    assert len(pids) == LAUNCHES
    assert (descriptors_of(), children()) == before
    assert threads_of() <= threads  # the core's own end by themselves when they are idle
    assert memory_bytes() - memory < 1 << 20


def test_if_one_worker_cannot_start_those_that_have_are_ended(monkeypatch):
    before = descriptors_of(), children()
    start = launch_job.LaunchJob._start

    def start_two(self, index, *others):
        if index == 2:
            raise OSError(errno.EAGAIN, "no more processes")
        return start(self, index, *others)

    monkeypatch.setattr(launch_job.LaunchJob, "_start", start_two)
    with pytest.raises(OSError, match="no more processes"):
        ringlet.launch(time.sleep, n=3, args=(300,))
    assert (descriptors_of(), children()) == before
