"""Every way in which a process can leave its group, and what the others are told."""

from __future__ import annotations

import re
import signal
import time

import pytest

from tests.processes.leaving import LEAVE, WAIT, start_all

pytestmark = pytest.mark.slow

ENDINGS = [
    # what the script does, what the others are told
    ("os._exit(4)", "exited with status 4"),
    ("os._exit(0)", "exited with status 0"),
    ("sys.exit(3)", "exited with status 3"),
    ("sys.exit()", "exited with status 0"),
    ("pass", "exited with status 0"),
    ("raise KeyError('weights')", "exited with status 1"),
    ("os.kill(os.getpid(), 9)", "was killed by SIGKILL (signal 9)"),
    ("os.kill(os.getpid(), 15)", "was killed by SIGTERM (signal 15)"),
    ("os.kill(os.getpid(), 2)", "was killed by SIGINT (signal 2)"),
    ("import ctypes; ctypes.string_at(0)", "was killed by SIGSEGV (signal 11)"),
    ("os.abort()", "was killed by SIGABRT (signal 6)"),
]


@pytest.mark.parametrize(("ending", "reason"), ENDINGS, ids=[ending for ending, _ in ENDINGS])
def test_a_process_that_ends_is_told_with_the_way_it_did(processes, name, ending, reason):
    leaving, others = start_all(
        processes, name, "\nimport resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n" + ending
    )
    leaving.say()
    for process in others:
        kind, text, known = process.told()
        assert kind == "WorkerLostError"
        assert known == {"rank": 1, "pid": leaving.pid, "reason": reason}
        assert re.search(rf"rank 1 \(pid {leaving.pid} on \S+\) {re.escape(reason)}", text)
        assert ("make the same calls" if reason == "exited with status 0" else "from its last checkpoint") in text
        assert process.wait() == 0


@pytest.mark.parametrize("leaver", [0, 2])
def test_the_lost_rank_may_be_any_one(processes, name, leaver):
    leaving, others = start_all(processes, name, "", leaver=leaver)
    leaving.kill()
    for process in others:
        kind, _, known = process.told()
        assert (kind, known["rank"]) == ("WorkerLostError", leaver)


def test_a_process_that_runs_another_program_in_its_place_counts_as_lost(processes, name):
    leaving, others = start_all(processes, name, "os.execvp('sleep', ['sleep', '50'])")
    leaving.say()
    for process in others:
        kind, text, known = process.told()
        assert kind == "WorkerLostError"
        assert (known["rank"], known["pid"]) == (1, leaving.pid)
        assert "connection" in text


def test_a_closed_member_is_a_departure_and_no_loss(processes, name):
    leaving, others = start_all(processes, name, "member.close()\ntell('closed')\nhear()")
    leaving.say()
    assert leaving.told() == "closed"
    for process in others:
        kind, text, _ = process.told()
        assert kind == "CollectiveMismatchError"
        assert "rank 1" in text
        assert "closed its group" in text
    leaving.say()
    assert leaving.wait() == 0


def test_who_ends_after_close_is_not_lost_either(processes, name):
    leaving, others = start_all(processes, name, "member.close()\nos._exit(0)")
    leaving.say()
    assert leaving.wait() == 0
    for process in others:
        kind, text, _ = process.told()
        assert kind == "CollectiveMismatchError"
        assert "rank 1" in text
        assert "closed its group" in text


LAST_CALL = """
from ringlet.collectives import init_process_group
import numpy as np
rank, num_ranks, name = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
for _ in range(30):
    with init_process_group(rank, num_ranks, name=name, timeout_seconds=50) as member:
        got = member.all_reduce(np.full(1000, rank + 1.0))
    assert got[0] == 6 and got[-1] == 6, got
tell("all right")
"""


def test_the_last_call_before_the_end_of_a_with_block_is_right_on_all_ranks(processes, name):
    started = [processes.start(LAST_CALL, rank, 3, name) for rank in range(3)]
    assert [process.told() for process in started] == ["all right"] * 3
    assert [process.wait() for process in started] == [0] * 3


FINISH_AND_DIE = """
from ringlet.collectives import init_process_group
import numpy as np
rank, name = int(sys.argv[1]), sys.argv[2]
member = init_process_group(rank, 3, name=name, timeout_seconds=50)
got = member.all_reduce(np.full(200_000, rank + 1.0))
assert (got == 6).all()
if rank == 1:
    os._exit(0)
tell("right")
try:
    member.barrier()
except Exception as error:
    tell(type(error).__name__)
"""


def test_who_finished_a_call_has_its_answer_although_a_peer_ended_right_after_it(processes, name):
    for _ in range(5):
        started = [processes.start(FINISH_AND_DIE, rank, name) for rank in range(3)]
        for rank in (0, 2):
            assert started[rank].told() == "right"
            assert started[rank].told() == "WorkerLostError"
        for process in started:
            process.wait()


FAIL_AND_KEEP = """
from ringlet.collectives import init_process_group
try:
    init_process_group(1, 3, name=sys.argv[2], timeout_seconds=50)
except Exception as error:
    kept = error  # and with it all that its traceback refers to
tell(type(kept).__name__)
hear()
"""
JOIN = """
from ringlet.collectives import init_process_group
try:
    init_process_group(int(sys.argv[1]), 3, name=sys.argv[2], timeout_seconds=50)
except Exception as error:
    tell([type(error).__name__, str(error)])
"""


def test_a_process_that_keeps_the_error_of_its_joining_does_not_keep_the_others_waiting(processes, name):
    others = [processes.start(JOIN, rank, name) for rank in (0, 2)]
    failing = processes.start(FAIL_AND_KEEP, 1, name, environ={"RINGLET_STALL_SECONDS": "never"})
    assert failing.told() == "ValueError"
    for process in others:
        kind, text = process.told(20)
        assert (kind, f"rank 1 (pid {failing.pid} on " in text) == ("WorkerLostError", True), text


WITH = """
from ringlet.collectives import init_process_group
rank, num_ranks, name = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
with init_process_group(rank, num_ranks, name=name, timeout_seconds=50) as member:
    tell("ready")
    hear()
    %s
"""


EXCEPTIONS = [
    # the last statement of the block, what the others raise, words of it, exit status
    ("raise KeyError('weights')", "CollectiveAborted", "rank 1 raised KeyError: 'weights'", 1),
    ("sys.exit(3)", "CollectiveAborted", "rank 1 raised SystemExit: 3", 3),
    ("sys.exit(0)", "CollectiveMismatchError", "closed its group", 0),
]


@pytest.mark.parametrize("case", EXCEPTIONS, ids=[case[0] for case in EXCEPTIONS])
def test_an_exception_in_a_with_block_is_told_to_the_others(processes, name, case):
    statement, kind, words, status = case
    others = [processes.start(WAIT, rank, 3, name) for rank in (0, 2)]
    leaving = processes.start(WITH % statement, 1, 3, name)
    for process in (leaving, *others):
        assert process.told() == "ready"
    leaving.say()
    assert leaving.wait() == status
    for process in others:
        told = process.told()
        assert told[0] == kind
        assert words in told[1]


CALL = """
try:
    member.barrier()
except Exception as error:
    tell([type(error).__name__, str(error)])
"""
INTERRUPTED = """
from ringlet.collectives import init_process_group
rank, name = int(sys.argv[1]), sys.argv[2]
member = init_process_group(rank, 2, name=name, timeout_seconds=50)
try:
    tell("ready")
    member.barrier()
except KeyboardInterrupt:
    tell("interrupted")
    hear()
"""


def test_ctrl_c_ends_a_wait_in_one_process_and_the_others_hear_of_it(processes, name):
    waiting = processes.start(INTERRUPTED, 1, name)
    other = processes.start(LEAVE + CALL, 0, 2, name)
    assert waiting.told() == other.told() == "ready"
    time.sleep(1)  # for it to be in the call
    waiting.kill(signal.SIGINT)
    assert waiting.told() == "interrupted"
    other.say()
    kind, text = other.told()
    assert kind in ("CollectiveAborted", "WorkerLostError")
    assert "rank 1" in text
