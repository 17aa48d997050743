"""What outlives a group, and what does not: arrays stay right, everything else is given back."""

from __future__ import annotations

import os

import pytest

pytestmark = pytest.mark.slow

GROUPS = "1000" if os.environ.get("RINGLET_CI_NIGHTLY") else "300"

PROLOGUE = """
import gc
import numpy as np, ringlet
from ringlet.collectives import init_process_group
rank, num_ranks, name = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
"""

KEPT = """
kept = []
for round in range(5):
    with init_process_group(rank, num_ranks, name=name, timeout_seconds=50) as member:
        for count in (0, 1, 7, 1000, 300_000):
            x = ringlet.empty_shared(count, np.float64)
            x[...] = np.arange(count) + rank
            sent = member.broadcast(x if rank == 0 else None, root=0)
            kept.append((x, member.all_reduce(x), member.all_gather(np.full(3, rank)), sent))
    del member
gc.collect()
tell("closed")
hear()
for x, total, gathered, sent in kept:
    count = len(x)
    expected = num_ranks * np.arange(count) + sum(range(num_ranks))
    assert np.array_equal(x, np.arange(count) + rank)
    assert np.array_equal(total, expected)
    assert np.array_equal(gathered, np.repeat(np.arange(num_ranks), 3))
    assert np.array_equal(sent, np.arange(count))
    assert not total.flags.writeable
tell("right")
"""


def test_arrays_outlive_their_group_and_the_processes_that_made_them(processes, name):
    ranks = [processes.start(PROLOGUE + KEPT, rank, 3, name) for rank in range(3)]
    for process in ranks:
        assert process.told() == "closed"
    ranks[0].kill()
    ranks[0].wait()
    for process in ranks[1:]:
        process.say()
        assert process.told() == "right"


KINDS = """
from ringlet.collectives import Op
with init_process_group(rank, num_ranks, name=name, timeout_seconds=50) as member:
    base = (np.arange(240, dtype=np.float64) + rank).reshape(4, 6, 10)
    total = sum(np.arange(240, dtype=np.float64) + r for r in range(num_ranks)).reshape(4, 6, 10)
    read_only = base.copy()
    read_only.flags.writeable = False
    shared = ringlet.empty_shared((4, 6, 10), np.float64)
    shared[...] = base
    misaligned = np.frombuffer(b"x" + base.tobytes(), np.uint8)[1:].view(np.float64).reshape(4, 6, 10)
    for own, expected in [
        (read_only, total),
        (base[:, ::2], total[:, ::2]),
        (base.T, total.T),
        (base[::-1, :, 3], total[::-1, :, 3]),
        (np.asfortranarray(base), total),
        (base.astype(">f8"), total),
        (misaligned, total),
        (shared, total),
        (shared[1:3], total[1:3]),
        (shared[:, 1:5:2, ::-1], total[:, 1:5:2, ::-1]),
        (base[:0], total[:0]),
        (base[0, 0, 0], total[0, 0, 0]),
        (np.array(3.5), np.array(3.5 * num_ranks)),
        (np.empty((0, 3)), np.empty((0, 3))),
    ]:
        got = member.all_reduce(own)
        assert got.shape == np.shape(expected) and np.array_equal(got, expected), (np.shape(own), got, expected)
        if np.ndim(own):
            gathered = member.all_gather(own)
            first = gathered[: len(own)]
            assert np.array_equal(first, np.asarray(own) - rank) or np.ndim(own) == 0
    out = np.empty((4, 6, 10))
    member.all_reduce(base, out=out)
    assert np.array_equal(out, total)
    member.all_reduce(shared, out=shared)
    assert np.array_equal(shared, total)
    # Results of one call as inputs of the next, and freed inputs.
    x = np.full(50_000, 1.0)
    for step in range(6):
        x = member.all_reduce(x)
    assert (x == num_ranks**6).all()
tell("right")
"""


@pytest.mark.parametrize("crosses", ["1", "0"])
@pytest.mark.parametrize("num_ranks", [2, 3])
def test_arrays_of_any_layout_are_combined_right(processes, name, num_ranks, crosses):
    environ = {"RINGLET_CROSS_MEMORY": crosses}
    ranks = [processes.start(PROLOGUE + KINDS, rank, num_ranks, name, environ=environ) for rank in range(num_ranks)]
    assert [process.told() for process in ranks] == ["right"] * num_ranks


# What a process has of everything that could leak. Resident memory after a collection, as the system counts it.
MANY = """
def state():
    gc.collect()
    resident = int(open("/proc/self/statm").read().split()[1]) * 4096
    mappings = len(open("/proc/self/maps").readlines())
    return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")), resident, mappings
def run(times):
    for _ in range(times):
        with init_process_group(rank, num_ranks, name=name, timeout_seconds=50) as member:
            x = ringlet.empty_shared(1000, np.float32)
            x[...] = 1
            assert member.all_reduce(x)[0] == num_ranks
            assert member.all_reduce(np.ones(10))[0] == num_ranks
        del x
run(100)
time.sleep(0.5)
before = state()
run(int(sys.argv[4]))
for _ in range(500):  # threads that were told to end take a moment
    after = state()
    if after[:2] == before[:2]:
        break
    time.sleep(0.01)
tell([before, after])
"""


@pytest.mark.timeout(300)
def test_hundreds_of_groups_leave_nothing_in_their_processes(processes, name):
    ranks = [processes.start(PROLOGUE + MANY, rank, 2, name, GROUPS) for rank in range(2)]
    for process in ranks:
        before, after = process.told(280)
        assert after[0] == before[0], "descriptors"
        assert after[1] == before[1], "threads"
        assert after[2] - before[2] < 2**20, "resident memory"
        assert after[3] - before[3] < 20, "mappings"
