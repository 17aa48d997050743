"""Children that a process of a group forks: they are no members, and do no harm."""

from __future__ import annotations

import os
import signal

from tests.processes.leaving import LEAVE, start_all


def test_a_process_that_ends_while_a_forked_child_lives_is_seen_at_once(processes, name):
    fork = """
child = os.fork()
if child == 0:
    for descriptor in range(3):
        os.close(descriptor)
    time.sleep(40)
    os._exit(0)
tell(child)
hear()
os._exit(5)
"""
    leaving, others = start_all(processes, name, fork)
    leaving.say()
    child = leaving.told()
    leaving.say()
    for process in others:
        kind, _, known = process.told(20)
        assert (kind, known["reason"]) == ("WorkerLostError", "exited with status 5")
    os.kill(child, signal.SIGKILL)


CHILD_USES = """
child = os.fork()
if child == 0:
    try:
        member.barrier()
        os._exit(0)
    except Exception as error:
        tell([type(error).__name__, str(error)])
        os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
member.barrier()
tell("passed")
"""


def test_a_forked_child_cannot_use_the_group_and_does_it_no_harm(processes, name):
    forking, others = start_all(processes, name, CHILD_USES)
    forking.say()
    kind, text = forking.told()
    assert kind != "DeadlineExceededError"
    assert "fork" in text
    assert forking.told() == "passed"
    assert [process.told() for process in others] == ["passed", "passed"]


CHILD_JOINS = """
child = os.fork()
if child == 0:
    inner = init_process_group(rank, num_ranks, name=name + " inner", timeout_seconds=50)
    inner.barrier()
    inner.close()
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
member.barrier()
tell("passed")
"""


def test_forked_children_can_make_a_group_of_their_own(processes, name):
    started = [processes.start(LEAVE + CHILD_JOINS, rank, 3, name) for rank in range(3)]
    for process in started:
        assert process.told() == "ready"
    for process in started:
        process.say()
    assert [process.told() for process in started] == ["passed"] * 3
