"""Servers: tasks that join their coordinator."""

from __future__ import annotations

import contextlib
import json
import uuid

import numpy as np
import pytest

import ringlet
from ringlet.cluster import ClusterSpec, ServerDef, SimpleClusterResolver, start_tasks
from ringlet.compat import tf
from ringlet.coordinator.server import Server
from ringlet.errors import ClusterConfigError, DeadlineExceededError, FailedPreconditionError, NotFoundError
from ringlet.ipc import ChannelClosed
from tests.processes.harness import PATIENCE_SECONDS, Processes, eventually

CLUSTER = {"worker": ["localhost:2222", "localhost:2223"], "ps": ["localhost:2224"], "chief": ["localhost:2225"]}
SPEC = ClusterSpec(CLUSTER)

PROGRAM = """
import ringlet
server = ringlet.Server(ringlet.cluster_resolver.TFConfigClusterResolver())
tell(server.target)
try:
    server.join()
    tell("ended")
except Exception as error:
    tell(f"{type(error).__name__}: {error}")
"""


@pytest.fixture
def job_id(monkeypatch):
    job_id = uuid.uuid4().hex
    monkeypatch.setenv("RINGLET_JOB_ID", job_id)
    return job_id


@pytest.fixture
def processes():
    with Processes() as started:
        yield started


@pytest.fixture
def serve(monkeypatch):
    """Has servers send back what they are sent; gives who was served."""
    served = []

    def echo(channel, task_type, task_id):
        served.append((task_type, task_id))
        with contextlib.closing(channel), contextlib.suppress(ChannelClosed):
            while True:
                channel.send(channel.receive().header)

    monkeypatch.setattr("ringlet.coordinator.task_main.serve", echo)
    return served


def start(processes, job_id, job, index):
    place = {"cluster": CLUSTER, "task": {"type": job, "index": index}}
    return processes.start(PROGRAM, environ={"TF_CONFIG": json.dumps(place), "RINGLET_JOB_ID": job_id})


@pytest.mark.parametrize(
    ("given", "arguments", "told"),
    [
        # cluster, arguments, job name and task index of server_def in tensorflow 2.21
        ({"worker": ["a:1"]}, {}, ("worker", 0)),
        (SPEC, {"job_name": "ps"}, ("ps", 0)),
        (SPEC, {"job_name": "worker", "task_index": 1}, ("worker", 1)),
        (SPEC.as_cluster_def(), {"job_name": "ps"}, ("ps", 0)),
        ({"ps": {3: "a:1"}}, {}, ("ps", 3)),
        (ServerDef(SPEC.as_cluster_def(), "worker", 0, "grpc"), {"task_index": 1}, ("worker", 1)),
        (SimpleClusterResolver(SPEC, task_type="worker", task_id=1), {}, ("worker", 1)),
        (SimpleClusterResolver(SPEC, task_type="worker", task_id=1), {"task_index": 0}, ("worker", 0)),
    ],
)
def test_a_server_knows_its_task(given, arguments, told):
    server = Server(given, **arguments, start=False)
    assert (server.server_def.job_name, server.server_def.task_index) == told
    assert server.server_def.protocol == "grpc"
    assert server.target == f"grpc://{ClusterSpec(server.server_def.cluster).task_address(*told)}"


@pytest.mark.parametrize(
    ("given", "arguments", "kind", "text"),
    [
        # cluster, arguments, error, its text: the first five as in tensorflow 2.21, which calls the next two internal
        (SPEC, {}, ValueError, "Must specify an explicit `job_name`."),
        (SPEC, {"job_name": "worker"}, ValueError, "Must specify an explicit `task_index`."),
        (5, {}, TypeError, "Could not convert `server_or_cluster_def` to a `tf.train.ServerDef` or"),
        ({}, {}, ValueError, "explicit `job_name`. The cluster is empty: is TF_CONFIG set?"),
        ({"worker": "a:1"}, {}, TypeError, "Could not convert `server_or_cluster_def` to a `tf.train.ServerDef` or"),
        (SPEC, {"job_name": "ps", "protocol": "x"}, NotFoundError, "No server factory registered"),
        (SPEC, {"job_name": "nope", "task_index": 0}, ClusterConfigError, 'Job "nope" was not defined in cluster'),
        (SPEC, {"job_name": "ps", "task_index": 7}, ClusterConfigError, 'Task 7 was not defined in job "ps"'),
        (SPEC, {"job_name": 3, "task_index": 0}, TypeError, "job_name must be a str"),
        (SPEC, {"job_name": "ps", "task_index": "0"}, TypeError, "task_index an int"),
    ],
)
def test_a_server_without_a_task_is_refused(given, arguments, kind, text):
    with pytest.raises(kind) as caught:
        Server(given, **arguments)
    assert text in str(caught.value)


def test_a_local_server_has_one_task():
    server = Server.create_local_server()
    assert (server.server_def.job_name, server.target) == ("localhost", "grpc://localhost:0")


def test_it_has_the_names_that_tensorflow_gives_it():
    names = (tf.distribute.Server, tf.compat.v1.distribute.Server, tf.compat.v1.train.Server, ringlet.Server)
    assert all(name is Server for name in names)


def test_servers_in_one_process_serve_their_coordinator_and_then_the_next_ones_that_come_in_time(job_id, serve):
    servers = []
    for task in (("worker", 0), ("worker", 1), ("ps", 0)):
        servers.append(Server(SPEC, *task, timeout_seconds=2))
        servers[-1].start()
    for turn in range(2):
        tasks = start_tasks(SimpleClusterResolver(SPEC), PATIENCE_SECONDS)
        for channel in tasks.workers + tasks.ps:
            channel.send(channel.peer.encode())
            assert channel.receive().header == channel.peer.encode()
        tasks.stop()
        assert eventually(lambda turn=turn: len(serve) >= 3 * (turn + 1))
    assert sorted(serve) == sorted([("worker", 0), ("worker", 1), ("ps", 0)] * 2)
    for server in servers:
        server.join()


def test_servers_in_processes_of_their_own_end_with_their_coordinator(processes, job_id):
    started = [start(processes, job_id, *task) for task in (("worker", 0), ("worker", 1), ("ps", 0))]
    assert [process.told() for process in started] == [f"grpc://localhost:222{number}" for number in (2, 3, 4)]
    tasks = start_tasks(SimpleClusterResolver(SPEC), PATIENCE_SECONDS)
    assert [tasks.pid_of("worker", 1), tasks.pid_of("ps", 0)] == [started[1].pid, started[2].pid]
    second = start(processes, job_id, "worker", 1)
    second.told()
    assert second.told().startswith(f"FailedPreconditionError: /job:worker/task:1 is held by pid {started[1].pid}")
    tasks.stop()
    assert [process.told() for process in started] == ["ended"] * 3
    assert [process.wait() for process in started] == [0] * 3


def test_a_server_whose_coordinator_does_not_come_says_so(job_id):
    server = Server(SPEC, "ps", timeout_seconds=0.05)
    with pytest.raises(DeadlineExceededError, match=r"waited 0.05 s for the coordinator of the cluster of 3 servers"):
        server.join()


def test_an_error_that_nobody_waits_for_is_logged(job_id, caplog):
    Server(SPEC, "ps", timeout_seconds=0.05)
    assert eventually(lambda: "/job:ps/task:0" in caplog.text)


@pytest.mark.parametrize(("arguments", "started"), [(("chief", 0), True), (("ps", 0), False)])
def test_what_serves_nobody_cannot_be_joined(arguments, started):
    with pytest.raises(FailedPreconditionError, match=rf"/job:{arguments[0]}/task:0 does not accept coordinators"):
        Server(SPEC, *arguments, start=started).join()


@pytest.mark.parametrize("cluster", [{"worker": ["a:1"]}, {"chief": ["a:1"], "worker": ["b:1"]}, {"ps": ["a:1"]}])
def test_a_task_of_a_cluster_without_parameter_servers_or_workers_has_no_coordinator(cluster):
    server = Server(cluster, next(reversed(cluster)), 0)
    assert server.target == f"grpc://{cluster[server.server_def.job_name][0]}"
    with pytest.raises(FailedPreconditionError, match="cluster with the jobs worker and ps"):
        server.join()


class Program:
    """What scheduled functions reach by its class."""

    strategy: ringlet.Strategy
    count: ringlet.Variable


def a_step_by_a_class_attribute():
    strategy = Program.strategy
    with strategy.scope():
        twice = strategy.run(lambda x: 2 * x, args=(3,))
    Program.count.assign_add(1)
    return twice, strategy.reduce("SUM", 4, axis=None), strategy.gather(np.ones(2), axis=0).sum()


def test_functions_may_reach_their_strategy_by_an_attribute_where_servers_are_threads(job_id, monkeypatch, caplog):
    servers = [Server(SPEC, *task, timeout_seconds=1) for task in (("worker", 0), ("worker", 1), ("ps", 0))]
    strategy = ringlet.ParameterServerStrategy(SimpleClusterResolver(SPEC))
    with strategy.scope():
        monkeypatch.setattr(Program, "count", ringlet.Variable(0), raising=False)
    monkeypatch.setattr(Program, "strategy", strategy, raising=False)
    coordinator = ringlet.coordinator.ClusterCoordinator(strategy)
    values = [coordinator.schedule(a_step_by_a_class_attribute) for _ in range(4)]
    assert [value.fetch() for value in values] == [(6, 4, 2.0)] * 4
    assert int(Program.count) == 4
    assert "without using" not in caplog.text
    with ringlet.MirroredStrategy(["CPU:0"]).scope(), pytest.raises(RuntimeError, match="Mixing different strategies"):
        strategy.run(lambda: 1)
    coordinator.shutdown()
    for server in servers:
        server.join()
