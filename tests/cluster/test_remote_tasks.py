"""Clusters whose tasks connect by TCP, on ports of this machine."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
import time

import pytest

from ringlet.cluster import ClusterSpec, SimpleClusterResolver, remote_tasks, start_tasks
from ringlet.cluster.remote_tasks import RemoteCluster, RemoteTasks, TaskListener
from ringlet.errors import ClusterConfigError, DeadlineExceededError, FailedPreconditionError
from ringlet.ipc import ChannelClosed
from ringlet.ipc.deadline import Deadline
from tests.processes.harness import PATIENCE_SECONDS, eventually

TASKS = [("worker", 0), ("worker", 1), ("ps", 0)]
SECRET = "a secret of these tests"


@pytest.fixture
def spec():
    """A cluster on free ports, which stay free because nothing else here asks for them."""
    with contextlib.ExitStack() as bound:
        ports = [bound.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1] for _ in TASKS]
    return ClusterSpec({"worker": [f"127.0.0.1:{port}" for port in ports[:2]], "ps": [f"localhost:{ports[2]}"]})


@pytest.fixture
def cluster(spec, monkeypatch):
    monkeypatch.setenv("RINGLET_SECRET", SECRET)
    return RemoteCluster.of(spec)


class Servers:
    """Listeners of tasks, and the channels to their coordinator."""

    def __init__(self, cluster):
        self.cluster, self.listeners, self.channels, self.clients = cluster, {}, {}, []

    def start(self, *tasks, cluster=None):
        for task in tasks:
            listener = self.listeners[task] = TaskListener(cluster or self.cluster, task, self.clients.append)
            threading.Thread(target=self._wait, args=(task, listener), daemon=True).start()
        return self

    def _wait(self, task, listener):
        with contextlib.suppress(DeadlineExceededError):
            self.channels[task] = listener.coordinator(Deadline.after(PATIENCE_SECONDS))

    def channel(self, task):
        assert eventually(lambda: task in self.channels)
        return self.channels[task]

    def end(self, task):
        self.listeners.pop(task).close()
        self.channels.pop(task).close()

    def close(self):
        for task, listener in self.listeners.items():
            listener.close()
            if listener._holder is not None:  # the coordinator may know it earlier
                self.channel(task)
        for channel in (*self.channels.values(), *self.clients):
            channel.close()


@pytest.fixture
def servers(cluster):
    with contextlib.closing(Servers(cluster)) as made:
        yield made


@pytest.fixture
def join(cluster):
    with contextlib.ExitStack() as made:

        def make(seconds=PATIENCE_SECONDS, **more):
            tasks = RemoteTasks(cluster, seconds, **more)
            made.callback(tasks.stop)
            return tasks

        yield make


def test_the_coordinator_and_a_worker_have_channels_to_the_tasks(servers, spec, join):
    servers.start(*TASKS)
    tasks = start_tasks(SimpleClusterResolver(spec), PATIENCE_SECONDS)
    assert [channel.peer for channel in tasks.workers + tasks.ps] == [
        f"/job:{job}/task:{index} at {spec.task_address(job, index)}" for job, index in TASKS
    ]
    for task, channel in zip(TASKS, tasks.workers + tasks.ps, strict=True):
        servers.channel(task).send(repr(task).encode())
        assert channel.receive().header == repr(task).encode()
    assert tasks.pid_of("ps", 0) == os.getpid()
    (channel,) = join(jobs=("ps",), name="/job:worker/task:1").ps
    channel.send(b"from a worker")
    assert eventually(lambda: servers.clients)
    assert servers.clients[0].receive().header == b"from a worker"
    assert servers.clients[0].peer == "/job:worker/task:1"
    tasks.stop()
    for task in TASKS:
        with pytest.raises(ChannelClosed, match="the coordinator has closed its connection"):
            servers.channel(task).receive()


def test_tasks_that_start_later_are_waited_for_and_named(servers, join, monkeypatch, caplog):
    monkeypatch.setenv("RINGLET_STALL_SECONDS", "0.05")
    servers.start(*TASKS[:2])
    threading.Timer(0.2, servers.start, TASKS[2:]).start()
    join()
    text = caplog.records[0].getMessage()
    assert text.startswith("the coordinator waited 0.05 s for /job:ps/task:0 at localhost:")
    assert "(Connection refused) of the cluster of 3 servers" in text


def test_tasks_that_do_not_start_are_named(servers, join):
    servers.start(TASKS[1])
    with pytest.raises(DeadlineExceededError, match=r"worker/task:0 at .* \(Connection refused\) and /job:ps/task:0"):
        join(0.2)
    with pytest.raises(ChannelClosed):
        servers.channel(TASKS[1]).receive()


def test_a_coordinator_that_does_not_start_is_named(cluster, monkeypatch, caplog):
    monkeypatch.setenv("RINGLET_STALL_SECONDS", "0.05")
    listener = TaskListener(cluster, ("ps", 0), None)
    with (
        contextlib.closing(listener),
        pytest.raises(DeadlineExceededError, match=r"ps/task:0 at localhost:\d+ waited 0.1 s for the coordinator"),
    ):
        listener.coordinator(Deadline.after(0.1))
    assert "waited 0.05 s for the coordinator" in caplog.text


def test_another_secret_is_named_on_both_sides_before_other_tasks_start(servers, join, spec, caplog):
    servers.start(TASKS[2], cluster=RemoteCluster.of(spec, {"RINGLET_SECRET": "some other secret"}))
    with pytest.raises(
        FailedPreconditionError, match=r"ps/task:0 at localhost:\d+ has a different RINGLET_SECRET: set"
    ):
        join()
    assert eventually(lambda: "has refused a connection: a process on 127.0.0.1 has a different" in caplog.text)
    assert not servers.channels


def test_other_versions_are_named(servers, join, monkeypatch, caplog):
    servers.start(TASKS[0])
    monkeypatch.setattr("ringlet.cluster.remote_tasks.__version__", "0.0.7")
    text = (
        r"the coordinator \(pid \d+ on .*\) has ringlet 0.0.7, Python 3.*, but /job:worker/task:0 at .* has ringlet .*"
        ": install the same versions on all hosts"
    )
    with pytest.raises(FailedPreconditionError, match=text):
        join()
    assert eventually(lambda: "task:0 at 127.0.0.1" in caplog.text and "has refused a connection: " in caplog.text)


@pytest.mark.parametrize("differs", ["job", "cluster", "task"])
def test_another_job_cluster_or_task_is_named(servers, join, spec, differs):
    environ, task, others = {"RINGLET_SECRET": SECRET}, ("worker", 0), spec
    if differs == "job":
        environ["RINGLET_JOB_ID"] = "other"
    elif differs == "cluster":
        others = ClusterSpec({"worker": spec.job_tasks("worker"), "ps": ["localhost:1"]})
    else:  # the addresses of two tasks are exchanged
        task, others = (
            ("worker", 1),
            ClusterSpec({"worker": spec.job_tasks("worker")[::-1], "ps": spec.job_tasks("ps")}),
        )
    servers.start(task, cluster=RemoteCluster.of(others, environ))
    with pytest.raises(FailedPreconditionError, match="different clusters, tasks at this address or RINGLET_JOB_ID"):
        join()


def test_strangers_neither_block_nor_end_a_task(servers, join, spec, monkeypatch, caplog):
    monkeypatch.setattr(remote_tasks, "_MAX_PENDING", 4)
    caplog.set_level(logging.DEBUG)
    servers.start(*TASKS)
    with contextlib.ExitStack() as strangers:
        for job, index in TASKS:
            host, port = spec.task_address(job, index).split(":")
            for data in (b"", b"GET / HTTP/1.1\r\n\r\n", b"ringlet1", b"ringlet1" + bytes(32 + 32), *[b""] * 10):
                stranger = strangers.enter_context(socket.create_connection((host, int(port))))
                stranger.sendall(data)
        tasks = join()
        servers.channel(("ps", 0)).send(b"undisturbed")
        assert tasks.ps[0].receive().header == b"undisturbed"
    assert "is not a task of a ringlet cluster" in caplog.text
    assert "the connection was closed during the handshake" in caplog.text


def test_a_connection_without_a_free_thread_is_dropped_and_the_next_one_is_answered(servers, join, spec, monkeypatch):
    servers.start(*TASKS)
    start = threading.Thread.start

    def fail(thread):
        monkeypatch.setattr(threading.Thread, "start", start)
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", fail)
    host, port = spec.task_address("worker", 0).split(":")
    with socket.create_connection((host, int(port)), PATIENCE_SECONDS) as dropped:
        assert not dropped.recv(1)
    assert len(join(PATIENCE_SECONDS).workers) == 2


def test_a_second_coordinator_is_refused_unless_the_first_one_has_ended(servers, join):
    servers.start(*TASKS)
    first = join()
    with pytest.raises(FailedPreconditionError, match=r"is held by the coordinator \(pid \d+ on .*\): two processes"):
        join()
    first.stop()
    for task in TASKS:
        servers.channel(task).close()
    threading.Timer(0.1, lambda: [(servers.end(task), servers.start(task)) for task in TASKS]).start()
    assert len(join().workers) == 2


def test_a_task_that_was_lost_is_waited_for_also_if_it_first_starts_wrongly(servers, join, spec, caplog):
    servers.start(*TASKS)
    tasks = join()
    servers.channel(("worker", 0))
    servers.end(("worker", 0))
    with pytest.raises(ChannelClosed):
        tasks.workers[0].receive()
    assert tasks.ending_of("worker", 0) == "has closed its connection"
    servers.start(("worker", 0), cluster=RemoteCluster.of(spec, {"RINGLET_SECRET": "some other secret"}))
    restarted = []
    thread = threading.Thread(target=lambda: restarted.append(tasks.restart("worker", 0)))
    thread.start()
    assert eventually(lambda: "(the coordinator tried to connect)" in caplog.text)
    servers.listeners.pop(("worker", 0)).close()
    assert eventually(lambda: servers.start(("worker", 0)) is servers)
    thread.join(PATIENCE_SECONDS)
    servers.channel(("worker", 0)).send(b"back")
    assert tasks.workers[0] is restarted[0]
    assert restarted[0].receive().header == b"back"


def test_stopping_ends_a_restart_that_waits(servers, join):
    servers.start(*TASKS)
    tasks = join()
    servers.listeners.pop(("worker", 1)).close()
    threading.Timer(0.1, tasks.stop).start()
    started = time.monotonic()
    with pytest.raises(FailedPreconditionError, match="was stopped"):
        tasks.restart("worker", 1)
    assert time.monotonic() - started < PATIENCE_SECONDS / 2


def test_a_forked_child_stops_nobody(servers, join):
    servers.start(*TASKS)
    tasks = join()
    child = os.fork()
    if child == 0:
        tasks.stop()
        os._exit(sum(channel.fileno() >= 0 for channel in tasks.workers + tasks.ps))
    assert os.waitpid(child, 0)[1] == 0
    servers.channel(("ps", 0)).send(b"still there")
    assert tasks.ps[0].receive().header == b"still there"


# --- the configuration ------------------------------------------------------------------------------------------------


def test_a_cluster_of_this_machine_needs_no_secret(spec):
    assert RemoteCluster.of(spec, {}) is None
    assert RemoteCluster.of(ClusterSpec({"worker": ["unknown.invalid:1"], "ps": [":1"]}), {}) is None


def test_the_secret_is_not_shown(cluster):
    assert SECRET not in repr(cluster)


@pytest.mark.parametrize(
    ("environ", "text"),
    [
        (
            {},
            r"addresses of other machines \(198.51.100.7:3\), whose.* RINGLET_SECRET is not set.*`python -c 'imp",
        ),
        ({"RINGLET_SECRET": "short"}, r"RINGLET_SECRET has 5 characters: expected at least 16.*`python -c 'import sec"),
    ],
)
def test_a_cluster_of_several_machines_needs_a_secret(environ, text):
    spec = ClusterSpec({"worker": ["localhost:1"], "ps": ["localhost:2"], "chief": ["198.51.100.7:3"]})
    with pytest.raises(ClusterConfigError, match=text):
        RemoteCluster.of(spec, environ)


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("198.51.100.7:3", r"/job:ps/task:0 at 198.51.100.7:3 is not on this machine: start it on the machine"),
        ("localhost", r"/job:ps/task:0 has the address 'localhost': expected host:port, as in node1:2222"),
        ("localhost:0", "expected host:port"),
        ("localhost:http", "expected host:port"),
    ],
)
def test_an_address_that_cannot_be_served_is_refused(address, text, monkeypatch):
    monkeypatch.setenv("RINGLET_SECRET", SECRET)
    cluster = RemoteCluster.of(ClusterSpec({"worker": ["localhost:1"], "ps": [address]}))
    with pytest.raises(ClusterConfigError, match=text):
        TaskListener(cluster, ("ps", 0), None)


def test_a_port_in_use_is_named_also_under_another_name_of_the_host(servers, spec):
    servers.start(("ps", 0))
    port = spec.task_address("ps", 0).partition(":")[2]
    same = RemoteCluster.of(ClusterSpec({"worker": [f"127.0.0.1:{port}"], "ps": [f"localhost:{port}"]}))
    with pytest.raises(
        OSError, match=rf"worker/task:0 at 127.0.0.1:{port} cannot listen: the port is in use: end the other process"
    ):
        TaskListener(same, ("worker", 0), None)
