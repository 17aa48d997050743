"""Ctrl-C, and handlers of signals that raise: heard soon wherever a rank waits, and told to all others."""

from __future__ import annotations

import re
import signal
import time

import pytest

pytestmark = pytest.mark.slow

# Soon on a machine that is busy with other work. Nothing here takes so long unless it failed.
SOON_SECONDS = 3.0

WORK = """
import signal
import numpy as np, ringlet
from ringlet.collectives import init_process_group
rank, name, seconds = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])
def handler(number, frame):
    raise LookupError("from the handler")
signal.signal(signal.SIGUSR1, handler)
member = init_process_group(rank, 3, name=name, timeout_seconds=seconds)
x = ringlet.empty_shared(6_000_000, np.float32)
out = ringlet.empty_shared(6_000_000, np.float32)
x[...], out[...] = 1, 0
member.barrier()
tell("at work")
try:
    while True:
        started = time.monotonic()
        member.all_reduce(x, out=out)
except BaseException as error:
    tell([type(error).__name__, str(error), time.monotonic() - started])
    hear()
"""


def start_work(processes, name, seconds):
    ranks = [processes.start(WORK, rank, name, seconds) for rank in range(3)]
    for process in ranks:
        assert process.told() == "at work"
    time.sleep(0.3)
    ranks[2].kill(signal.SIGSTOP)  # most probably with a piece of the work in hand, so that nobody can finish it
    time.sleep(0.3)
    return ranks


@pytest.mark.parametrize(("number", "raised"), [(signal.SIGINT, "KeyboardInterrupt"), (signal.SIGUSR1, "LookupError")])
def test_a_signal_is_heard_in_the_middle_of_the_work_and_fails_the_group_for_all(processes, name, number, raised):
    interrupted, other, stopped = start_work(processes, name, 50)
    began = time.monotonic()
    interrupted.kill(number)
    assert interrupted.told()[0] == raised
    kind, text, _ = other.told()
    assert time.monotonic() - began < SOON_SECONDS
    assert kind == "CollectiveAborted"
    assert "of rank 0, was interrupted" in text
    stopped.kill(signal.SIGCONT)
    assert stopped.told()[:2] == [kind, text]


def test_a_deadline_in_the_middle_of_the_work_is_kept_although_a_rank_is_stopped(processes, name):
    ranks = start_work(processes, name, 1)
    for process in ranks[:2]:
        kind, _, seconds = process.told()
        assert kind in ("DeadlineExceededError", "CollectiveAborted")
        assert seconds < 1 + SOON_SECONDS  # and not the 5 s that a rank which runs would be given


REUSED = """
import numpy as np, ringlet
from ringlet.collectives import init_process_group
rank, name = int(sys.argv[1]), sys.argv[2]
x = ringlet.empty_shared(2_000_000, np.float32)
out = ringlet.empty_shared(2_000_000, np.float32)
x[...], out[...] = 1, 0
try:
    with init_process_group(rank, 3, name=name, timeout_seconds=50) as member:
        member.barrier()
        tell("at work")
        try:
            while True:
                member.all_reduce(x, out=out)
        except BaseException:
            out[...] = -1  # it belongs to the caller again
            raise
except BaseException as error:
    tell([type(error).__name__, str(error)])
    hear()
    tell(bool((out == -1).all()))
"""


@pytest.mark.parametrize("turn", range(3))
def test_nobody_writes_to_memory_of_a_call_that_was_interrupted(processes, name, turn):
    ranks = [processes.start(REUSED, rank, name) for rank in range(3)]
    for process in ranks:
        assert process.told() == "at work"
    time.sleep(0.2 + 0.003 * turn)
    ranks[0].kill(signal.SIGINT)
    assert ranks[0].told()[0] == "KeyboardInterrupt"
    for process in ranks[1:]:
        kind, text = process.told()
        assert kind == "CollectiveAborted"
        assert "of rank 0, was interrupted" in text or "rank 0 raised KeyboardInterrupt" in text
    for process in ranks:
        process.say()
        assert process.told() is True


SPLIT = """
from ringlet.collectives import init_process_group
rank, name = int(sys.argv[1]), sys.argv[2]
member = init_process_group(rank, 2, name=name, timeout_seconds=50)
tell("ready")
if rank == 1:
    hear()
try:
    member.split(0)
except BaseException as error:
    tell([type(error).__name__, str(error)])
    hear()
"""


def test_ctrl_c_is_heard_in_a_split(processes, name):
    waiting, late = [processes.start(SPLIT, rank, name) for rank in range(2)]
    assert waiting.told() == late.told() == "ready"
    time.sleep(0.5)  # for it to be in the call
    began = time.monotonic()
    waiting.kill(signal.SIGINT)
    assert waiting.told()[0] == "KeyboardInterrupt"
    assert time.monotonic() - began < SOON_SECONDS
    late.say()
    kind, text = late.told()
    assert kind == "CollectiveAborted"
    assert re.fullmatch(
        r"split\(\), call 1 of rank 0, was interrupted while it waited for rank 1 \(pid \d+, after 0 calls\)\.", text
    )


# Rank 1 has met the other, and waits for a word before it makes the group.
MAKE = """
from ringlet.rendezvous.job_key import Job
from ringlet.rendezvous.rendezvous import rendezvous
from ringlet.ipc.deadline import Deadline
from ringlet.collectives import process_group
rank, name, seconds = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])
try:
    connected = rendezvous(Job(name, "", 2), [rank], 50)
    tell("met")
    if rank == 1:
        hear()
    started = time.monotonic()
    process_group._join(connected, 2, Deadline(50.0, started + seconds))
except BaseException as error:
    tell([type(error).__name__, str(error), time.monotonic() - started])
    hear()
"""


def test_ctrl_c_is_heard_while_a_group_is_made_and_told_to_the_others(processes, name):
    waiting, late = [processes.start(MAKE, rank, name, 50) for rank in range(2)]
    assert waiting.told() == late.told() == "met"
    time.sleep(0.5)  # for it to be in the core
    began = time.monotonic()
    waiting.kill(signal.SIGINT)
    assert waiting.told()[0] == "KeyboardInterrupt"
    assert time.monotonic() - began < SOON_SECONDS
    late.say()
    kind, text, _ = late.told()
    assert kind == "WorkerLostError"
    assert text.startswith(f"rank 0 (pid {waiting.pid} on ")
    assert ") was interrupted while the group was created." in text


def test_the_time_for_making_a_group_is_counted_once_from_the_beginning(processes, name):
    waiting, late = [processes.start(MAKE, rank, name, 0.7) for rank in range(2)]
    assert waiting.told() == late.told() == "met"
    kind, text, seconds = waiting.told()
    assert kind == "DeadlineExceededError"
    assert text.startswith(f"rank 1 (pid {late.pid} on ")
    assert "did not answer within 50 s" in text  # of which 0.7 s were left
    assert seconds < SOON_SECONDS
    late.say()
    kind, text, _ = late.told()
    assert kind == "WorkerLostError"
    assert "rank 0" in text
    assert "gave up after 50 s while the group was created" in text
