"""Threads that read and write one storage see whole values, lose none, and leave it open to a child."""

from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest

from ringlet.values.variables.storage import Storage, replace
from ringlet.values.variables.update_opcodes import assign_add


@pytest.mark.usefixtures("_hasty_interpreter")
@pytest.mark.parametrize("size", [4, 50_000])
def test_no_thread_ever_sees_half_a_write(size):
    storage, torn, stop = Storage(np.zeros(size), 2), [], threading.Event()

    def read():
        while not stop.is_set():
            arrays = [storage.read(0), storage.read(1)]
            firsts = [array[0] for array in arrays]
            torn.extend(array for array, first in zip(arrays, firsts, strict=True) if (array != first).any())

    def write(seed):
        values = [np.full(size, seed * 100.0 + i) for i in range(10)]
        for number in range(300):
            if number % 7 == seed:
                storage.write_one(seed % 2, replace, values[number % 10])
            else:
                storage.write_all(replace, values[number % 10])

    readers = [threading.Thread(target=read) for _ in range(4)]
    writers = [threading.Thread(target=write, args=(seed,)) for seed in range(4)]
    for thread in readers + writers:
        thread.start()
    for thread in writers:
        thread.join(60)
    stop.set()
    for thread in readers:
        thread.join(60)
    assert torn == []


@pytest.mark.usefixtures("_hasty_interpreter")
def test_no_addition_of_any_thread_is_lost():
    storage = Storage(np.zeros(3, np.int64), 2)

    def count():
        for _ in range(500):
            storage.write_all(assign_add, np.ones(3, np.int64))

    threads = [threading.Thread(target=count) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert storage.read(1).tolist() == [4000] * 3


FORK_DURING_A_WRITE = """
import os, signal, threading, numpy as np
from ringlet.values.variables.storage import Storage, replace

storage, has_begun, may_end = Storage(np.arange(3.0), 2), threading.Event(), threading.Event()

def slow(old, value, new):
    has_begun.set()
    may_end.wait(30)
    replace(old, value, new)

writer = threading.Thread(target=storage.write_all, args=(slow, np.ones(3)))
writer.start()
has_begun.wait(30)
if os.fork() == 0:
    signal.alarm(30)
    before = storage.read(0).tolist()
    storage.write_all(replace, np.full(3, 7.0))
    os.write(1, f"child {before} {storage.read(1).tolist()}".encode())
    os._exit(0)
os.wait()
may_end.set()
writer.join(30)
print(" parent", storage.read(1).tolist())
"""


def test_a_child_forked_during_a_write_reads_and_writes():
    options = ["-W", "ignore::DeprecationWarning"]  # a process with threads should not fork: that is what this is about
    command = [sys.executable, *options, "-c", FORK_DURING_A_WRITE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "child [0.0, 1.0, 2.0] [7.0, 7.0, 7.0] parent [1.0, 1.0, 1.0]\n"
