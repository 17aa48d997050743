"""That processes find each other, and what each of them hears when some do not come, or end."""

from __future__ import annotations

import signal
import socket
import time

import pytest

from tests.processes.harness import threads_of
from tests.rendezvous.ranks import all_met, start, wait_for_listener, wait_for_seats

# --- joining ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shares", [["0", "1"], ["2", "0", "3", "1"], ["0,1", "2,3"], ["1,3", "0,2", "4"]])
def test_every_process_gets_a_connection_and_a_handle_of_every_other_one(processes, name, shares):
    num_ranks = sum(len(share.split(",")) for share in shares)
    started = [start(processes, name, share, num_ranks) for share in shares]
    assert len(all_met(started)) == 1, "one token"
    for process in started:
        process.say()
    assert [process.wait() for process in started] == [0] * len(started)


def test_eight_processes_meet(processes, name):
    started = [start(processes, name, rank, 8) for rank in range(8)]
    assert len(all_met(started)) == 1


def test_peers_are_in_the_order_of_their_lowest_ranks_whoever_comes_first(processes, name):
    last = start(processes, name, "1,3", 4)
    time.sleep(0.2)
    middle = start(processes, name, "2", 4)
    first = start(processes, name, "0", 4)
    told = [process.told() for process in (first, last, middle)]
    assert [answer[1] for answer in told] == [0, 1, 2]
    assert all(answer[2] == [[0], [1, 3], [2]] for answer in told)


def test_jobs_with_other_ids_or_names_do_not_meet(processes, name):
    jobs = [(name, "a"), (name, "b"), (name + "x", "a")]
    started = [start(processes, job, rank, 2, job_id=job_id) for job, job_id in jobs for rank in range(2)]
    assert len(all_met(started)) == 3


def test_a_name_can_be_used_again_when_its_job_is_over(processes, name):
    for how in ("closed", "killed"):
        started = [start(processes, name, rank, 2) for rank in range(2)]
        all_met(started)
        for process in started:
            process.say() if how == "closed" else process.kill()
        for process in started:
            process.wait()


TWICE = """
from ringlet.rendezvous.job_key import Job
from ringlet.rendezvous.rendezvous import rendezvous
for _ in range(20):
    connected = rendezvous(Job(sys.argv[1], "", 3), [int(sys.argv[2])], 60)
    connected.close()
left = []
for number in range(3, 100):
    try:
        left.append(os.readlink(f"/proc/self/fd/{number}"))
    except FileNotFoundError:
        pass
tell(left)
"""


def test_the_same_processes_can_meet_again_and_again(processes, name):
    started = [processes.start(TWICE, name, rank) for rank in range(3)]
    for process in started:
        left = process.told()
        assert left == [], "no socket, pipe or handle is left"


def test_a_rank_that_gave_up_may_come_again(processes, name):
    waiting = start(processes, name, 0, 3)
    early = start(processes, name, 1, 3, seconds=0.5)
    assert early.told()[0] == "DeadlineExceededError"
    assert len(all_met([waiting, start(processes, name, 1, 3), start(processes, name, 2, 3)])) == 1


def test_a_listener_that_gave_up_may_come_again(processes, name):
    early = start(processes, name, 0, 2, seconds=0.3)
    assert early.told()[0] == "DeadlineExceededError"
    assert len(all_met([start(processes, name, 1, 2), start(processes, name, 0, 2)])) == 1


# --- who does not come ------------------------------------------------------------------------------------------------


def test_the_time_out_names_the_ranks_that_are_missing_on_every_rank(processes, name):
    started = [start(processes, name, rank, 5, seconds=2) for rank in (0, 1, 3)]
    for process in started:
        kind, text, _, seconds = process.told()
        assert kind == "DeadlineExceededError"
        assert "waited 2 s for ranks 2 and 4 of the group" in text
        assert "(ranks 0, 1 and 3 connected)" in text
        assert 0.5 < seconds < 20


def test_without_rank_0_the_time_out_names_it_and_what_may_be_the_reason(processes, name):
    kind, text, _, _ = start(processes, name, 1, 2, seconds=0.5).told()
    assert kind == "DeadlineExceededError"
    assert "rank 1 (pid " in text
    assert "waited 0.5 s for rank 0 of the group" in text
    assert "network namespace" in text
    assert "RINGLET_JOB_ID" in text


# --- who ends ---------------------------------------------------------------------------------------------------------


def waiting_three(processes, name):
    """Ranks 0 to 2 of 4, all seated."""
    started = [start(processes, name, rank, 4) for rank in range(3)]
    wait_for_seats(started[0], 2)
    time.sleep(0.2)  # and they have heard so
    return started


@pytest.mark.parametrize(
    ("rank", "number", "reason"),
    [(0, signal.SIGKILL, "was killed by SIGKILL (signal 9)"), (2, signal.SIGTERM, "was killed by SIGTERM (signal 15)")],
)
def test_when_one_that_had_come_is_killed_all_others_say_who_and_how(processes, name, rank, number, reason):
    started = waiting_three(processes, name)
    victim = started.pop(rank)
    victim.kill(number)
    for process in started:
        kind, text, known, _ = process.told()
        assert kind == "WorkerLostError"
        assert known == {"rank": rank, "pid": victim.pid, "reason": reason}
        assert f"rank {rank} (pid {victim.pid} on {socket.gethostname()}) {reason}" in text


def test_a_listener_interrupted_by_the_user_leaves_its_place_to_the_next(processes, name):
    first = start(processes, name, 0, 3)
    wait_for_listener(name)
    others = [start(processes, name, 1, 3)]
    wait_for_seats(first, 1)
    first.kill(signal.SIGINT)
    kind, text, *_ = first.told()
    assert kind == "KeyboardInterrupt"
    assert "was interrupted while it waited for rank 2 of the group" in text
    assert "(ranks 0 and 1 connected)" in text
    assert len(all_met([*others, start(processes, name, 0, 3), start(processes, name, 2, 3)])) == 1


# --- descriptors and forks --------------------------------------------------------------------------------------------


FORKED = """
from ringlet.rendezvous.job_key import Job
from ringlet.rendezvous.rendezvous import rendezvous
connected = rendezvous(Job(sys.argv[1], "", 2), [int(sys.argv[2])], 60)
child = os.fork()
if child == 0:
    time.sleep(60)
    os._exit(0)
tell(child)
hear()
connected.close()
tell("closed")
hear()
os.kill(child, 9)
os.waitpid(child, 0)
"""


def test_a_forked_child_holds_neither_the_name_nor_a_connection(processes, name):
    forking = [processes.start(FORKED, name, rank) for rank in range(2)]
    for process in forking:
        process.told()
    for process in forking:
        process.say()
        assert process.told() == "closed"
    started = [start(processes, name, rank, 2) for rank in range(2)]
    assert len(all_met(started)) == 1
    for process in forking:
        process.say()
        assert process.wait() == 0


@pytest.mark.slow
def test_a_limit_of_open_files_that_is_too_low_is_named(processes, name):
    def lower():
        import resource

        resource.setrlimit(resource.RLIMIT_NOFILE, (12, 12))

    started = [start(processes, name, rank, 8, seconds=6, before=lower) for rank in range(8)]
    told = [process.told() for process in started]
    kinds = {answer[0] for answer in told}
    assert kinds <= {"OSError", "WorkerLostError", "DeadlineExceededError"}, told
    texts = [answer[1] for answer in told if answer[0] == "OSError"]
    assert texts
    assert all("limit of 12 open files" in text for text in texts)


def test_the_thread_that_guards_a_group_ends_with_it(processes, name):
    started = [start(processes, name, rank, 2) for rank in range(2)]
    all_met(started)
    assert threads_of(started[0].pid) >= 2
    assert threads_of(started[1].pid) < threads_of(started[0].pid)
