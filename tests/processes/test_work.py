"""Asynchronous calls of processes: lost ranks, forks, the end of the interpreter, Ctrl-C."""

from __future__ import annotations

import signal
import time

JOIN = """
import numpy as np
from ringlet.collectives import init_process_group
from ringlet.errors import *
member = init_process_group(rank=int(sys.argv[1]), num_ranks=2, name=sys.argv[2], timeout_seconds=40)
"""


def start(processes, name, script, *more):
    return [processes.start(JOIN + script, rank, name, *more) for rank in range(2)]


def test_calls_overlap_and_keep_their_order(processes, name):
    script = """
works = [member.all_reduce_async(np.full(100_000, number + member.rank)) for number in range(10)]
last = member.all_reduce(np.ones(3))
tell([works[-1].is_done(), [work.wait()[0].item() for work in works], last.tolist()])
member.close()
"""
    for rank in start(processes, name, script):
        assert rank.told() == [True, [2 * number + 1 for number in range(10)], [2, 2, 2]]
        assert rank.wait() == 0


def test_a_lost_rank_is_the_error_of_all_calls_that_wait_for_it(processes, name):
    script = """
member.barrier()
tell("joined")
if member.rank == 1:
    hear()
works = [member.all_reduce_async(np.ones(10)), member.barrier_async()]
for work in works:
    try:
        work.wait()
    except WorkerLostError as error:
        tell([error.rank, str(error)])
"""
    ranks = start(processes, name, script)
    assert [rank.told() for rank in ranks] == ["joined"] * 2
    ranks[1].kill(signal.SIGKILL)
    for _ in range(2):
        rank, text = ranks[0].told()
        assert rank == 1
        assert "SIGKILL" in text
    assert ranks[0].wait() == 0


def test_a_program_that_exits_while_a_call_waits_names_it_and_does_not_hang(processes, name):
    script = """
member.barrier()
if member.rank == 0:
    member.all_reduce_async(np.ones(3))
    member.barrier_async("last")
    tell("exits")
else:
    tell("waits")
    hear()
    try:
        member.all_reduce(np.ones(3), out=np.ones(3))
        member.barrier()
    except Exception as error:
        tell([type(error).__name__, str(error)])
"""
    leaving, other = start(processes, name, script)
    assert (leaving.told(), other.told()) == ("exits", "waits")
    started = time.monotonic()
    assert leaving.wait() == 0
    assert time.monotonic() - started < 20
    assert "rank 0 exited with unfinished asynchronous calls: all_reduce, barrier. Call wait()" in leaving.said()
    other.say()
    kind, text = other.told()
    assert kind == "CollectiveAborted"
    assert "rank 0 exited with unfinished asynchronous calls: all_reduce, barrier" in text


def test_calls_that_other_ranks_join_are_completed_at_exit(processes, name):
    script = """
work = member.all_reduce_async(np.ones(3))
if member.rank == 1:
    tell(work.wait().tolist())
    member.close()
"""
    ranks = start(processes, name, script)
    assert ranks[1].told() == [2, 2, 2]
    assert [rank.wait() for rank in ranks] == [0, 0]
    assert ranks[0].said() == "standard error: "


def test_a_forked_child_raises_and_the_parent_continues(processes, name):
    script = """
member.all_reduce_async(np.ones(3)).wait()
if member.rank == 0:
    work = member.all_reduce_async(np.ones(3))
    if os.fork() == 0:
        for call in (work.wait, work.is_done, lambda: member.barrier_async().wait(), member.barrier, member.close):
            try:
                tell(call())
            except FailedPreconditionError as error:
                tell(str(error))
            except Exception as error:
                tell([type(error).__name__, str(error)])
        sys.exit(0)
    os.wait()
    tell("go on")
else:
    hear()
    work = member.all_reduce_async(np.ones(3))
tell(work.wait().tolist())
member.close()
"""
    parent, other = start(processes, name, script)
    assert f"all_reduce runs in process {parent.pid}, the parent of this process" in parent.told()
    assert "the parent of this process" in parent.told()
    for _ in range(2):
        assert "forked" in str(parent.told())
    parent.told()  # close
    assert parent.told() == "go on"
    other.say()
    for rank in (parent, other):
        assert rank.told() == [2, 2, 2]
        assert rank.wait() == 0


def test_ctrl_c_ends_a_wait(processes, name):
    script = """
member.barrier()
if member.rank == 0:
    work = member.all_reduce_async(np.ones(3))
    tell("waits")
    try:
        work.wait()
    except KeyboardInterrupt:
        tell("interrupted")
    tell(work.wait().tolist())
else:
    hear()
    tell(member.all_reduce(np.ones(3)).tolist())
member.close()
"""
    waits, other = start(processes, name, script)
    assert waits.told() == "waits"
    time.sleep(0.1)
    waits.kill(signal.SIGINT)
    assert waits.told() == "interrupted"
    other.say()
    assert waits.told() == other.told() == [2, 2, 2]
    assert [waits.wait(), other.wait()] == [0, 0]
