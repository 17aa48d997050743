"""Processes with several ranks, parts of a group, several groups, and a process that is stopped."""

from __future__ import annotations

import signal

import pytest

from tests.processes.harness import descriptors_of, eventually

GRADUAL = """
from ringlet.collectives import init_process_group
import numpy as np, threading
rank, name = int(sys.argv[1]), sys.argv[2]
members = init_process_group(ranks=[2 * rank, 2 * rank + 1], num_ranks=4, name=name, timeout_seconds=50)
def run(member):
    for _ in range(100):
        member.all_reduce(np.ones(10))
    member.close()
threads = [threading.Thread(target=run, args=(member,)) for member in members]
for thread in threads: thread.start()
for thread in threads: thread.join()
del members
tell("closed")
hear()
"""


def test_a_process_whose_members_are_all_closed_holds_nothing(processes, name):
    started = [processes.start(GRADUAL, rank, name) for rank in range(2)]
    for process in started:
        assert process.told() == "closed"
    for process in started:
        assert eventually(lambda pid=process.pid: descriptors_of(pid) <= 4), "no socket, handle or segment is left"
        process.say()
        assert process.wait() == 0


KEPT_PLAN = """
from ringlet.collectives import init_process_group
import numpy as np
rank, name = int(sys.argv[1]), sys.argv[2]
with init_process_group(rank, 2, name=name, timeout_seconds=50) as member:
    part = member.split(0)
    plans = [each.plan_all_reduce(np.ones(3)) for each in (member, part)]
    assert [plan().tolist() for plan in plans] == [[2.0] * 3] * 2
tell("closed")
hear()
for call in (*plans, part.barrier):
    try:
        call()
    except Exception as error:
        tell(type(error).__name__)
"""


def test_plans_that_are_kept_hold_nothing_of_a_closed_group(processes, name):
    started = [processes.start(KEPT_PLAN, rank, name) for rank in range(2)]
    for process in started:
        assert process.told() == "closed"
    for process in started:
        assert eventually(lambda pid=process.pid: descriptors_of(pid) <= 4), "no socket, handle or segment is left"
        process.say()
        assert [process.told() for _ in range(3)] == ["FailedPreconditionError"] * 3


OVERLAP = """
from ringlet.collectives import init_process_group
import numpy as np, threading
rank, name, call = int(sys.argv[1]), sys.argv[2], sys.argv[3]
ranks = [0, 1] if rank == 0 else [2]
members = init_process_group(ranks=ranks, num_ranks=3, name=name, timeout_seconds=50)
same = np.zeros(3000)
def run(member):
    x, other = np.arange(9000.0), np.zeros(3000)
    out = same if rank == 0 else other
    try:
        eval(call)
        told = [member.rank, "returned", ""]
    except Exception as error:
        told = [member.rank, type(error).__name__, str(error)]
    tell(told)
threads = [threading.Thread(target=run, args=(member,)) for member in members]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


@pytest.mark.parametrize(
    "call",
    [
        "member.reduce_scatter(x, out=out)",
        "member.all_reduce(x[:3000], out=out)",
        "member.all_gather(x[:1000], out=out)",
        "member.broadcast(x[:3000] if member.rank == 2 else None, root=2, out=out)",
        "member.scatter(x if member.rank == 2 else None, root=2, out=out)",
        "member.all_to_all(x[:3000], out=out)",
        "member.exclusive_scan(x[:3000], out=out)",
        "member.collective_permute(x[:3000], [(0, 1), (1, 0)], out=out)",
        "member.all_reduce(out if member.rank == 0 else x[:3000], out=out if member.rank == 1 else other)",
    ],
)
def test_ranks_of_one_process_must_not_share_an_output_although_copies_stand_for_it(processes, name, call):
    started = [processes.start(OVERLAP, rank, name, call) for rank in range(2)]
    for process in (started[0], started[0], started[1]):
        rank, kind, text = process.told()
        assert kind == "InvalidArgumentError", (rank, kind, text)
        assert "of rank 0 (array 0) and " in text
        assert "of rank 1 (array 0) share memory" in text


MIXED = """
from ringlet.collectives import init_process_group
import numpy as np, threading
rank, name = int(sys.argv[1]), sys.argv[2]
members = init_process_group(ranks=[2 * rank, 2 * rank + 1], num_ranks=6, name=name, timeout_seconds=50)
tell("ready")
def run(member):
    try:
        while True:
            member.all_reduce(np.ones(30_000))
    except Exception as error:
        tell([member.rank, type(error).__name__, getattr(error, "rank", None), getattr(error, "pid", None)])
threads = [threading.Thread(target=run, args=(member,)) for member in members]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def test_the_loss_of_a_process_with_several_ranks_is_told_to_every_thread_of_the_others(processes, name):
    started = [processes.start(MIXED, rank, name) for rank in range(3)]
    for process in started:
        assert process.told() == "ready"
    started[1].kill()
    for process in (started[0], started[2]):
        for _ in range(2):
            rank, kind, lost, pid = process.told()
            assert rank in (0, 1, 4, 5)
            assert (kind, lost, pid) == ("WorkerLostError", 2, started[1].pid)


PARTS = """
from ringlet.collectives import init_process_group
rank, num_ranks, name = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
member = init_process_group(rank, num_ranks, name=name, timeout_seconds=50)
part = member.split(rank % 2)
part.barrier()
tell("ready")
try:
    while True:
        part.all_reduce(rank)
        time.sleep(0.001)
except Exception as error:
    tell([type(error).__name__, getattr(error, "rank", None), getattr(error, "pid", None)])
"""


def test_a_loss_is_told_to_all_parts_of_the_group(processes, name):
    started = [processes.start(PARTS, rank, 4, name) for rank in range(4)]
    for process in started:
        assert process.told() == "ready"
    victim = started.pop(1)
    victim.kill()
    for process in started:
        kind, _, pid = process.told()
        assert (kind, pid) == ("WorkerLostError", victim.pid)


OUTSIDE = """
import signal
from ringlet.collectives import init_process_group
rank, name = int(sys.argv[1]), sys.argv[2]
member = init_process_group(rank, 3, name=name, timeout_seconds=50)
part = member.split(None if rank == 0 else 0)
tell("ready")
hear()
def interrupt(*_):
    raise RuntimeError("interrupted")
try:
    if rank == 0:
        signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        member.barrier()
    elif rank == 1:
        part.barrier()
    tell("waited for nothing")
except Exception as error:
    tell([type(error).__name__, str(error)])
hear()
"""


def test_a_failure_claimed_outside_of_a_part_reaches_the_ranks_that_wait_in_it(processes, name):
    started = [processes.start(OUTSIDE, rank, name) for rank in range(3)]
    for process in started:
        assert process.told() == "ready"
    for process in started:
        process.say()
    assert started[0].told() == ["RuntimeError", "interrupted"]
    kind, text = started[1].told(20)
    assert kind == "CollectiveAborted"
    assert "of rank 0, was interrupted while it waited for rank 1" in text
    assert started[2].told() == "waited for nothing"


STOPPED = """
from ringlet.collectives import init_process_group
rank, name = int(sys.argv[1]), sys.argv[2]
member = init_process_group(rank, 3, name=name, timeout_seconds=2)
member.barrier()
tell("ready")
hear()
try:
    member.barrier("after")
    tell("passed")
except Exception as error:
    tell([type(error).__name__, str(error)])
"""


@pytest.mark.slow
def test_a_stopped_process_is_a_time_out_that_names_it_and_no_loss(processes, name):
    started = [processes.start(STOPPED, rank, name) for rank in range(3)]
    for process in started:
        assert process.told() == "ready"
    started[1].kill(signal.SIGSTOP)
    for process in started:
        process.say()
    for process in (started[0], started[2]):
        kind, text = process.told()
        assert kind == "DeadlineExceededError"
        assert "rank 1" in text
    started[1].kill(signal.SIGCONT)
    kind, text = started[1].told()
    assert kind in ("CollectiveAborted", "DeadlineExceededError", "WorkerLostError")
    assert kind != "passed"


TWO_GROUPS = """
from ringlet.collectives import init_process_group
rank, name = int(sys.argv[1]), sys.argv[2]
one = init_process_group(rank, 2, name=name + " one", timeout_seconds=50)
two = init_process_group(1 - rank, 2, name=name + " two", timeout_seconds=50)
assert one.all_gather([rank]).tolist() == [0, 1] and two.all_gather([rank]).tolist() == [1, 0]
one.close()
assert two.all_gather([rank]).tolist() == [1, 0]
two.close()
tell("right")
"""


def test_processes_can_be_in_several_groups_at_once(processes, name):
    started = [processes.start(TWO_GROUPS, rank, name) for rank in range(2)]
    assert [process.told() for process in started] == ["right"] * 2
