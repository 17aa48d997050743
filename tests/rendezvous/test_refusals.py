"""Who must not come between the processes of a job, and what each of them hears."""

from __future__ import annotations

import os
import re
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from ringlet.errors import FailedPreconditionError
from ringlet.rendezvous.job_key import Job
from ringlet.rendezvous.listener import Listener
from ringlet.rendezvous.rendezvous import rendezvous
from tests.rendezvous.ranks import MEET, all_met, start, wait_for_listener, wait_for_seats

pytestmark = pytest.mark.slow


def test_a_rank_that_is_there_already_is_sent_away_and_the_first_one_goes_on(processes, name):
    first = [start(processes, name, 0, 3)]
    wait_for_listener(name)
    first.append(start(processes, name, 2, 3))
    wait_for_seats(first[0], 1)
    kind, text, _, _ = start(processes, name, 2, 3).told()
    assert kind == "FailedPreconditionError"
    assert f"rank 2 is held by pid {first[1].pid} on {socket.gethostname()}, started " in text
    assert "another job of this name is running; set RINGLET_JOB_ID" in text
    assert len(all_met([*first, start(processes, name, 1, 3)])) == 1


def test_a_second_rank_0_is_sent_away(processes, name):
    first = start(processes, name, 0, 2)
    wait_for_listener(name)
    kind, text, _, _ = start(processes, name, 0, 2).told()
    assert kind == "FailedPreconditionError"
    assert f"rank 0 is held by pid {first.pid}" in text
    assert len(all_met([first, start(processes, name, 1, 2)])) == 1


@pytest.mark.parametrize("rank", [0, 1])
def test_a_complete_group_sends_everybody_away(processes, name, rank):
    first = [start(processes, name, number, 2) for number in range(2)]
    all_met(first)
    kind, text, _, seconds = start(processes, name, rank, 2).told()
    assert kind == "FailedPreconditionError"
    assert f"rank {rank} is held by pid {first[rank].pid}" in text
    assert seconds < 20


def test_who_comes_to_a_group_that_lost_the_rank_hears_so(processes, name):
    first = [start(processes, name, number, 2) for number in range(2)]
    all_met(first)
    first[1].kill()
    first[1].wait()
    kind, text, _, _ = start(processes, name, 1, 2).told()
    assert kind == "FailedPreconditionError"
    assert f"rank 1 was held by pid {first[1].pid}" in text
    assert "has exited, so its group has failed" in text


def test_another_number_of_ranks_ends_all_that_have_joined(processes, name):
    joined = [start(processes, name, 0, 3)]
    wait_for_listener(name)
    joined.append(start(processes, name, 1, 3))
    wait_for_seats(joined[0], 1)
    joined.append(start(processes, name, "2,3", 4))
    for process in joined:
        kind, text, _, seconds = process.told()
        assert kind == "FailedPreconditionError"
        assert f"ranks 2 and 3 (pid {joined[2].pid} on " in text
        assert "was started with num_ranks=4, but rank 0" in text
        assert "with num_ranks=3: start all processes with the same number" in text
        assert seconds < 20


def test_ranks_that_connect_after_another_number_of_ranks_learn_both_numbers(name):
    def join(rank, num_ranks):
        with pytest.raises(FailedPreconditionError, match=r"was started with num_ranks=4, but rank 0 .* num_ranks=3"):
            rendezvous(Job(name, "", num_ranks), [rank], 5)

    with ThreadPoolExecutor() as pool:
        host = pool.submit(join, 0, 3)
        wait_for_listener(name)
        for rank, num_ranks in [(1, 4), (2, 3), (3, 4)]:
            assert not host.done()
            join(rank, num_ranks)
        host.result()


def test_ranks_that_connect_together_with_another_number_of_ranks_are_all_refused(name, monkeypatch):
    poll = Listener.poll
    seen = []

    def poll_for_all(listener, seconds):
        clients, ready = poll(listener, seconds)
        while len(seen) + len(clients) < 3:
            clients += poll(listener, 1.0)[0]
        seen.extend(clients)
        return clients, ready

    def join(rank, num_ranks):
        with pytest.raises(FailedPreconditionError, match=r"was started with num_ranks=4, but rank 0 .* num_ranks=3"):
            rendezvous(Job(name, "", num_ranks), [rank], 5)

    monkeypatch.setattr(Listener, "poll", poll_for_all)
    with ThreadPoolExecutor() as pool:
        host = pool.submit(join, 0, 3)
        wait_for_listener(name)
        for joined in [host, *(pool.submit(join, rank, 4) for rank in (1, 2, 3))]:
            joined.result()


# Rank 0 waits for 2 s only, in which a busy machine may not start an interpreter.
READY = """
import ringlet.rendezvous.rendezvous
tell("ready")
hear()
"""


def test_a_rank_that_is_held_is_refused_alone_also_with_another_number_of_ranks(processes, name):
    other, again = (processes.start(READY + MEET, 0, name, "", num_ranks, 60) for num_ranks in (3, 2))
    assert (other.told(), again.told()) == ("ready", "ready")
    first = start(processes, name, 0, 2, seconds=2)
    wait_for_listener(name)
    other.say()
    kind, text, _, _ = other.told()
    assert kind == "FailedPreconditionError"
    assert "was started with num_ranks=3, but rank 0" in text
    again.say()
    assert again.told()[0] == "FailedPreconditionError"
    kind, text, _, _ = first.told()
    assert kind == "DeadlineExceededError"
    assert "num_ranks=3" in text
    assert "was refused" in text
    # The process that was refused is named, not the one that holds the rank, and that one is not listed as another.
    assert f" pid {again.pid} on {socket.gethostname()} also started as rank 0, and was refused." in text
    assert "held by" not in text
    assert "connected)" not in text


OTHER_VERSION = """
import ringlet.version
ringlet.version.__version__ = "0.0.1"
"""


def test_another_version_is_sent_away_by_name(processes, name):
    first = start(processes, name, 0, 2)
    wait_for_listener(name)
    kind, text, _, _ = processes.start(OTHER_VERSION + MEET, 1, name, "", 2, 60).told()
    assert kind == "FailedPreconditionError"
    assert "runs ringlet 0.0.1, protocol 1: install the same version" in text
    assert len(all_met([first, start(processes, name, 1, 2)])) == 1


THREADS = """
from ringlet.rendezvous.job_key import Job
from ringlet.rendezvous.rendezvous import rendezvous
import threading
def run(rank):
    try:
        rendezvous(Job(sys.argv[1], "", 2), [rank], 1)
    except Exception as error:
        tell([rank, type(error).__name__, str(error)])
threads = [threading.Thread(target=run, args=(rank,)) for rank in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def test_two_ranks_of_one_process_are_told_to_come_together(processes, name):
    process = processes.start(THREADS, name)
    told = {rank: rest for rank, *rest in (process.told(), process.told())}
    assert told[1][0] == "FailedPreconditionError"
    assert "is in the same process as rank 0" in told[1][1]
    assert told[0][0] == "DeadlineExceededError"


SQUAT = """
import socket
os.setuid(12345)
squatter = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
squatter.bind(sys.argv[1].replace("@", chr(0)))
squatter.listen()
tell("here")
hear()
"""
COME = """
import socket
os.setuid(12345)
stranger = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
stranger.settimeout(30)
stranger.connect(sys.argv[1].replace("@", chr(0)))
tell(stranger.recv(1000).decode())
tell(len(stranger.recv(1000)))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to play another user")
def test_a_name_that_another_user_took_is_refused_and_the_user_named(processes, name):
    address = Job(name, "", 2).address()
    squatter = processes.start(SQUAT, address.replace("\0", "@"))
    assert squatter.told() == "here"
    for rank in range(2):
        kind, text, _, seconds = start(processes, name, rank, 2).told()
        assert kind == "PermissionError"
        assert f"is held by pid {squatter.pid} of user 12345, but rank {rank} runs as user 0: " in text
        assert " run all processes as one user" in text
        assert seconds < 20


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to play another user")
def test_another_user_who_comes_is_sent_away(processes, name):
    first = start(processes, name, 0, 2)
    wait_for_listener(name)
    stranger = processes.start(COME, Job(name, "", 2).address().replace("\0", "@"))
    assert "belongs to user" in stranger.told()
    assert stranger.told() == 0
    assert len(all_met([first, start(processes, name, 1, 2)])) == 1


def can_unshare(*flags):
    return subprocess.run(["unshare", *flags, "true"], capture_output=True, check=False).returncode == 0


def test_a_process_of_another_network_namespace_hears_of_it_at_its_time_out(processes, name):
    if not can_unshare("-n"):
        pytest.skip("this user may not make network namespaces")
    start(processes, name, 0, 2)
    wait_for_listener(name)
    kind, text, _, _ = start(processes, name, 1, 2, seconds=0.5, under=["unshare", "-n"]).told()
    assert kind == "DeadlineExceededError"
    assert "processes of different containers connect only if these share their network" in text


def test_a_process_of_another_pid_namespace_is_refused_by_name(processes, name):
    if not can_unshare("-p", "-f"):
        pytest.skip("this user may not make PID namespaces")
    first = start(processes, name, 0, 2)
    wait_for_listener(name)
    inside = ["unshare", "-p", "-f", "--kill-child", "--mount-proc"]
    kind, text, _, _ = start(processes, name, 1, 2, under=inside).told()
    assert kind == "FailedPreconditionError"
    assert re.search(
        r"^rank 1 \(.*\) and rank 0 \(.*\) run in different PID namespaces \(containers\): processes must be able to "
        r"detect each other's exit\. Start all in one container, or in one PID namespace \(docker run --pid=\)\.",
        text,
    )
    assert len(all_met([first, start(processes, name, 1, 2)])) == 1
