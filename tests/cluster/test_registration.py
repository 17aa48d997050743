"""Where servers come in, and strangers do not (reliability E6)."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from pathlib import Path

import pytest

from ringlet.cluster import ClusterSpec, ServersJob
from ringlet.cluster.registration import RegistrationServer, register
from ringlet.errors import ClusterConfigError, DeadlineExceededError, FailedPreconditionError
from ringlet.ipc.deadline import Deadline
from ringlet.rendezvous.handshake import Handshake
from tests.processes.harness import PATIENCE_SECONDS, descriptors_of, eventually
from tests.rendezvous.test_strangers import WORDS, connect, is_dropped


@pytest.fixture
def job(name):
    return ServersJob.of(ClusterSpec({"worker": ["a:1", "b:1"], "ps": ["c:1"]}), name)


@pytest.fixture
def open_doorway(job):
    """Opens the server; gives who comes."""
    with contextlib.ExitStack() as opened:
        arrivals = []

        def welcome(rank, arrival):
            arrivals.append((rank, arrival))
            opened.callback(arrival.channel.close)

        def start(objection=lambda rank: None):
            server = RegistrationServer(job, objection, welcome)
            opened.callback(server.close)
            return arrivals

        yield start


@pytest.fixture
def strangers():
    """Connections that are closed at the end of the test."""
    with contextlib.ExitStack() as connections:
        yield connections


def come(job, task, seconds=PATIENCE_SECONDS):
    return register(job, task, Deadline.after(seconds))


def test_who_comes_gets_a_channel_to_the_coordinator(job, open_doorway):
    arrivals = open_doorway()
    with contextlib.closing(come(job, ("ps", 0))) as channel:
        assert eventually(lambda: arrivals)
        (rank, arrival), *_ = arrivals
        assert (rank, arrival.channel.peer, channel.peer) == (3, "/job:ps/task:0", "the coordinator")
        assert arrival.is_there()
        assert channel.leads_to_this_process
        channel.send(b"here", [b"abc"])
        assert bytes(arrival.channel.receive().buffers[0]) == b"abc"
    assert not arrival.is_there()


def test_who_comes_too_early_waits(job, open_doorway):
    channels = []
    thread = threading.Thread(target=lambda: channels.append(come(job, ("worker", 1))))
    thread.start()
    time.sleep(0.05)
    open_doorway()
    thread.join(PATIENCE_SECONDS)
    channels[0].close()


def test_who_waits_too_long_says_for_whom(job):
    with pytest.raises(DeadlineExceededError, match=r"task:0 \(pid .* waited 0.05 s for the coordinator of the"):
        come(job, ("worker", 0), 0.05)


def test_who_waits_long_says_once_for_whom_and_goes_on_waiting(job, monkeypatch, caplog):
    monkeypatch.setenv("RINGLET_STALL_SECONDS", "0.02")
    with pytest.raises(DeadlineExceededError):
        come(job, ("worker", 0), 0.1)
    (record,) = caplog.records
    assert "waited 0.02 s for the coordinator of the cluster of 3 servers" in record.getMessage()
    assert record.getMessage().endswith("Still waiting (limit: 0.1 s)")


def test_who_is_objected_to_is_told_why(job, open_doorway):
    arrivals = open_doorway(lambda rank: f"rank {rank} is taken.")
    with pytest.raises(FailedPreconditionError, match=r"^rank 2 is taken\.$"):
        come(job, ("worker", 1))
    assert arrivals == []


def test_another_version_is_refused_before_anything_else_is_read(job, open_doorway, monkeypatch):
    open_doorway()
    genuine = Handshake.of_this_process(job, [1])
    monkeypatch.setattr("ringlet.rendezvous.handshake._PROTOCOL", 99)
    assert Handshake.of_this_process(job, [1]).version != genuine.version
    with pytest.raises(FailedPreconditionError, match=r"runs ringlet .*, protocol 99: install the same version"):
        come(job, ("worker", 0))


@pytest.mark.parametrize("ranks", [[0], [1, 2]])
def test_nobody_comes_as_the_coordinator_or_as_several(job, open_doorway, strangers, ranks):
    arrivals = open_doorway()
    connection = connect(strangers, job.address())
    connection.send(json.dumps(Handshake.of_this_process(job, ranks).as_message()).encode())
    assert b"cannot register with the coordinator" in connection.recv(65536)
    assert arrivals == []


def test_who_counts_other_ranks_is_refused_and_servers_still_come(job, open_doorway, strangers):
    open_doorway()
    connection = connect(strangers, job.address())
    handshake = {**Handshake.of_this_process(job, [1]).as_message(), "num_ranks": 1000, "ranks": [999]}
    connection.send(json.dumps(handshake).encode())
    assert b"rank 999 " in connection.recv(65536)
    come(job, ("worker", 0)).close()


def test_a_cluster_has_one_coordinator_at_a_time(job, open_doorway):
    open_doorway()
    with pytest.raises(FailedPreconditionError, match=r"^this process is already the coordinator of this cluster"):
        open_doorway()


def test_the_name_is_free_once_the_doorway_is_closed_and_nothing_is_left(job):
    before = descriptors_of()
    for _ in range(3):
        server = RegistrationServer(job, lambda rank: None, lambda rank, arrival: None)
        server.close()
        server.close()
    assert descriptors_of() == before


def test_the_name_is_free_again_where_an_interrupt_came_while_the_doorway_was_opened(job, open_doorway, monkeypatch):
    start = threading.Thread.start

    def interrupted(thread):
        start(thread)
        raise KeyboardInterrupt

    def is_open():
        with contextlib.suppress(FailedPreconditionError):
            open_doorway()
            return True
        return False

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", interrupted)
        with pytest.raises(KeyboardInterrupt) as kept:
            open_doorway()
    assert eventually(is_open)
    del kept


def test_strangers_are_dropped_and_servers_still_come(job, open_doorway, strangers):
    open_doorway()
    before = descriptors_of()
    some, slow = [], connect(strangers, job.address())
    for number in range(200):
        some.append(connect(strangers, job.address()))
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            some[-1].send(WORDS[1 + number % (len(WORDS) - 1)])
    come(job, ("worker", 0)).close()
    assert all(is_dropped(connection) for connection in (*some, slow))
    strangers.close()
    assert eventually(lambda: descriptors_of() <= before + 3)
    assert not Path("/tmp/bombed").exists()


def test_a_coordinator_that_answers_nonsense_is_not_believed(job):
    """Somebody of this user listens under the name who is no coordinator."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(job.address())
        listener.listen()

        def answer():
            for word in (b'{"kind": "welcome"}', b"\x80\x04", b""):
                connection, _ = listener.accept()
                with connection:
                    connection.recv(65536)
                    connection.send(word)

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(DeadlineExceededError):
            come(job, ("worker", 0), 0.3)
        thread.join(PATIENCE_SECONDS)


# --- the job of a coordinator and its servers -------------------------------------------------------------------------

CLUSTER = {"worker": ["a:1", "b:1"], "ps": ["c:1"]}


def address(job_id="", **cluster):
    return ServersJob.of(ClusterSpec({**CLUSTER, **cluster}), job_id).address(1000)


def test_all_who_know_the_same_workers_and_servers_meet_whatever_else_they_know():
    assert address() == address(chief=["d:1"]) == address(evaluator=["e:1"])
    assert address() == ServersJob.of(ClusterSpec(dict(reversed(CLUSTER.items()))), "").address(1000)


def test_other_clusters_jobs_and_users_meet_elsewhere():
    others = [address(ps=["c:2"]), address(worker=["a:1"]), address(worker=["b:1", "a:1"]), address("second")]
    others.append(ServersJob.of(ClusterSpec(CLUSTER), "").address(1001))
    assert len({address(), *others}) == 6


def test_the_coordinator_is_rank_0_and_the_tasks_follow_workers_first():
    job = ServersJob.of(ClusterSpec({"ps": ["c:1"], "worker": {3: "a:1", 1: "b:1"}}), "")
    assert job.num_ranks == 4
    assert [job.rank_of(task) for task in (("worker", 1), ("worker", 3), ("ps", 0))] == [1, 2, 3]
    assert job.names_of([2, 0]) == "the coordinator and /job:worker/task:3"
    assert str(job) == "the cluster of 3 servers"


@pytest.mark.parametrize("missing", ["worker", "ps"])
def test_a_cluster_without_workers_or_servers_is_refused(missing):
    with pytest.raises(ClusterConfigError, match=f"No such job in cluster: '{missing}'"):
        ServersJob.of(ClusterSpec({job: tasks for job, tasks in CLUSTER.items() if job != missing}), "")
