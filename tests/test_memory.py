"""Memory of results: reused while needed, and returned to the system afterwards without a request."""

from __future__ import annotations

import gc
import subprocess
import sys

import numpy as np
import pytest

from ringlet import _core
from ringlet.collectives import Group

COUNT = 300_000  # float64: a block of its own, on huge pages where there are any

SETUP = f"""
import os, signal, time, numpy as np
from ringlet import _core
from ringlet.collectives import Group

signal.alarm(60)

def result():
    return Group(1).member(0).all_reduce(np.ones({COUNT}))

def wait_until(holds):
    while not holds():
        time.sleep(0.001)

def num_threads():
    return len(os.listdir("/proc/self/task"))

def is_given_back():
    return _core.pool_statistics()["idle_bytes"] == 0
"""


def run_python(code: str) -> list[str]:
    """Run code after SETUP, in a new process; return the words that it prints."""
    options = ["-W", "ignore::DeprecationWarning"]  # of Python 3.12 and newer about a fork beside threads
    command = [sys.executable, *options, "-c", SETUP + code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")


def test_memory_of_a_result_is_live_then_idle_and_gone_when_trimmed():
    gc.collect()
    _core.trim_pool()
    before = _core.pool_statistics()
    result = Group(1).member(0).all_reduce(np.ones(COUNT))
    assert _core.pool_statistics()["live_bytes"] - before["live_bytes"] >= result.nbytes
    del result
    idle = _core.pool_statistics()
    assert (idle["live_bytes"], idle["idle_blocks"]) == (before["live_bytes"], before["idle_blocks"] + 1)
    assert _core.trim_pool() == idle["idle_bytes"] > 0
    assert _core.pool_statistics()["idle_bytes"] == 0


@needs_proc
def test_idle_memory_goes_back_without_a_call_and_leaves_no_thread():
    code = """
_core.set_pool_keep_idle(0.05)
threads = num_threads()
kept = result()
for _ in range(2):
    result()
    wait_until(lambda: is_given_back() and num_threads() == threads)
    print(_core.pool_statistics()["live_blocks"], kept.sum())
"""
    assert run_python(code) == ["1", f"{COUNT}.0"] * 2


@needs_proc
def test_a_forked_child_gives_its_idle_memory_back_too():
    code = """
_core.set_pool_keep_idle(0.05)
result()
if os.fork() == 0:
    signal.alarm(60)
    result()
    wait_until(lambda: is_given_back() and num_threads() == 1)
    os._exit(7)
print(os.waitstatus_to_exitcode(os.wait()[1]))
wait_until(is_given_back)
"""
    assert run_python(code) == ["7"]


@needs_proc
def test_a_process_ends_at_once_while_memory_is_idle():
    code = """
_core.set_pool_keep_idle(1e9)
threads = num_threads()
result()
print(num_threads() - threads, _core.pool_statistics()["idle_blocks"])
"""
    assert run_python(code) == ["1", "1"]
