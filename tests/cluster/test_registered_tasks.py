"""Clusters whose processes come to their coordinator."""

from __future__ import annotations

import contextlib
import gc
import os
import threading
import time
import warnings

import pytest

from ringlet.cluster import ClusterSpec, LocalClusterResolver, ServersJob, SimpleClusterResolver, start_tasks
from ringlet.cluster.registered_tasks import RegisteredTasks
from ringlet.cluster.registration import register
from ringlet.errors import ClusterConfigError, DeadlineExceededError, FailedPreconditionError
from ringlet.ipc import ChannelClosed
from ringlet.ipc.deadline import Deadline
from tests.processes.harness import PATIENCE_SECONDS, eventually

SPEC = ClusterSpec({"worker": ["a:1", "b:1"], "ps": ["c:1"]})
TASKS = [("worker", 0), ("worker", 1), ("ps", 0)]

SERVER = """
from ringlet.cluster import ClusterSpec, ServersJob
from ringlet.ipc.deadline import Deadline
from ringlet.cluster.registration import register
job = ServersJob.of(ClusterSpec({"worker": ["a:1", "b:1"], "ps": ["c:1"]}), sys.argv[1])
channel = register(job, ("worker", 0), Deadline.after(60))
tell("joined")
try:
    channel.receive()
except ConnectionError as error:
    tell(str(error))
"""


class Servers:
    """Tasks in threads of this process."""

    def __init__(self, job_id):
        self.job = ServersJob.of(SPEC, job_id)
        self.channels = {}
        self.threads = []

    def start(self, *tasks):
        threads = [threading.Thread(target=self._come, args=(task,), daemon=True) for task in tasks]
        self.threads += threads
        for thread in threads:
            thread.start()
        return self

    def _come(self, task):
        self.channels[task] = register(self.job, task, Deadline.after(PATIENCE_SECONDS))

    def close(self):
        for thread in self.threads:  # who was let in may not know it yet
            thread.join(PATIENCE_SECONDS)
        for channel in self.channels.values():
            channel.close()


@pytest.fixture
def servers(name):
    servers = Servers(name)
    yield servers
    servers.close()


@pytest.fixture
def join(name):
    """Makes the coordinator's side."""
    with contextlib.ExitStack() as made:

        def make(seconds=PATIENCE_SECONDS):
            tasks = RegisteredTasks(SPEC, name, seconds)
            made.callback(tasks.stop)
            return tasks

        yield make


def test_all_tasks_have_come_once_it_is_made(servers, join):
    servers.start(*TASKS)
    tasks = join()
    assert [channel.peer for channel in tasks.workers] == ["/job:worker/task:0", "/job:worker/task:1"]
    assert [channel.peer for channel in tasks.ps] == ["/job:ps/task:0"]
    assert eventually(lambda: len(servers.channels) == 3)
    for task in TASKS:
        servers.channels[task].send(repr(task).encode())
    heard = [channel.receive().header for channel in tasks.workers + tasks.ps]
    assert heard == [repr(task).encode() for task in TASKS]
    assert tasks.pid_of("ps", 0) == os.getpid()


def test_tasks_that_do_not_come_are_named(servers, join):
    servers.start(("worker", 1))
    with pytest.raises(
        DeadlineExceededError,
        match=r"waited 0.5 s for /job:worker/task:0 and /job:ps/task:0 of .* \(/job:worker/task:1 registered\)\. Start",
    ):
        join(0.5)
    assert eventually(lambda: len(servers.channels) == 1)
    with pytest.raises(ChannelClosed):
        servers.channels["worker", 1].receive()


def test_who_does_not_come_is_named_before_the_time_is_over(servers, join, monkeypatch, caplog):
    monkeypatch.setenv("RINGLET_STALL_SECONDS", "0.05")
    threading.Timer(0.2, servers.start, TASKS).start()
    join()
    (record,) = caplog.records
    assert record.getMessage().startswith("the coordinator waited 0.05 s for /job:worker/task:0, ")


def test_a_forked_child_waits_for_no_lock_and_stops_nobody(servers, join):
    servers.start(*TASKS)
    tasks = join()
    with tasks._registrations._changed:
        child = os.fork()
        if child == 0:
            thread = threading.Thread(target=tasks.stop)  # to which the lock is somebody else's
            thread.start()
            thread.join(PATIENCE_SECONDS)
            os._exit(int(thread.is_alive()))
    assert os.waitpid(child, 0)[1] == 0
    servers.channels["ps", 0].send(b"still there")
    assert tasks.ps[0].receive().header == b"still there"


def test_a_task_that_is_there_is_not_replaced(servers, join):
    servers.start(*TASKS)
    join()
    with pytest.raises(FailedPreconditionError, match=r"/job:ps/task:0 is held by pid \d+ .* Start each task once"):
        register(servers.job, ("ps", 0), Deadline.after(PATIENCE_SECONDS))


def test_a_task_that_was_lost_is_waited_for_and_replaced(servers, join):
    servers.start(*TASKS)
    tasks = join()
    assert eventually(lambda: len(servers.channels) == 3)
    lost = servers.channels["worker", 0]
    lost.close()
    with pytest.raises(ChannelClosed):
        tasks.workers[0].receive()
    assert tasks.ending_of("worker", 0) == "closed its connection, but is still running"
    servers.start(("worker", 0))
    channel = tasks.restart("worker", 0)
    assert tasks.workers[0] is channel
    assert eventually(lambda: servers.channels["worker", 0] is not lost)
    servers.channels["worker", 0].send(b"back")
    assert channel.receive().header == b"back"


def test_a_task_that_does_not_come_back_is_named(servers, join):
    servers.start(*TASKS)
    tasks = join(0.5)
    with pytest.raises(DeadlineExceededError, match=r"waited 0.5 s for /job:worker/task:1 of"):
        tasks.restart("worker", 1)


def test_stopping_ends_a_restart_that_waits(servers, join):
    servers.start(*TASKS)
    tasks = join()
    threading.Timer(0.1, tasks.stop).start()
    started = time.monotonic()
    with pytest.raises(FailedPreconditionError, match="was stopped"):
        tasks.restart("worker", 1)
    assert time.monotonic() - started < PATIENCE_SECONDS / 2
    tasks.stop()


def test_the_next_coordinator_finds_the_name_free_also_if_nobody_stopped_the_last_one(servers, join, name):
    servers.start(*TASKS)
    tasks = RegisteredTasks(SPEC, name, PATIENCE_SECONDS)
    assert eventually(lambda: len(servers.channels) == 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        del tasks
        gc.collect()
    servers.close()
    servers.start(*TASKS)
    assert len(join().workers) == 2
    assert eventually(lambda: not any(channel.is_closed for channel in servers.channels.values()))


def test_the_end_of_a_process_is_told_as_the_system_tells_it(processes, servers, join, name):
    process = processes.start(SERVER, name)
    servers.start(("worker", 1), ("ps", 0))
    tasks = join()
    assert process.told() == "joined"
    assert tasks.pid_of("worker", 0) == process.pid
    process.kill()
    with pytest.raises(ChannelClosed):
        tasks.workers[0].receive()
    process.wait()
    assert tasks.ending_of("worker", 0) in ("was killed by SIGKILL (signal 9)", "ended")


def test_servers_hear_of_the_end_of_their_coordinator(processes, servers, join, name):
    process = processes.start(SERVER, name)
    servers.start(("worker", 1), ("ps", 0))
    join().stop()
    assert [process.told(), process.told()] == ["joined", "the coordinator has closed its connection"]
    assert process.wait() == 0


# --- from a resolver to processes -------------------------------------------------------------------------------------


def test_a_local_cluster_is_started_once(monkeypatch):
    monkeypatch.setattr("ringlet.cluster.resolvers.local_resolver._MAIN", "tests.cluster.echoing")
    resolver = LocalClusterResolver(1, 1)
    tasks = start_tasks(resolver, 0.0)
    assert start_tasks(resolver, 0.0) is tasks is resolver.start()
    tasks.stop()


def test_the_tasks_of_another_cluster_have_to_come(monkeypatch, name):
    monkeypatch.setenv("RINGLET_JOB_ID", name)
    resolver = SimpleClusterResolver(ClusterSpec({"worker": ["a:1"], "ps": ["b:1"]}))
    with pytest.raises(DeadlineExceededError, match=rf"worker/task:0 and /job:ps/task:0 .*_ID '{name}'"):
        start_tasks(resolver, 0.05)


def test_a_cluster_without_parameter_servers_has_no_tasks():
    with pytest.raises(ClusterConfigError, match="No such job in cluster: 'ps'"):
        start_tasks(SimpleClusterResolver(ClusterSpec({"worker": ["a:1"]})), 0.05)
