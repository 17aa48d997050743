"""A cluster of processes that their coordinator starts."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
import warnings
from pathlib import Path

import pytest

from ringlet.cluster import ClusterSpec, LocalClusterResolver
from ringlet.errors import ClusterConfigError, FailedPreconditionError, InvalidArgumentError
from ringlet.ipc import ChannelClosed
from tests.launcher.jobs import marked
from tests.processes.harness import PATIENCE_SECONDS, children, descriptors_of, eventually

# Within which all processes have ended, whatever they do.
STOP_SECONDS = 2.0

PROGRAM = """
from ringlet.cluster import LocalClusterResolver
from ringlet.cluster.resolvers import local_resolver
local_resolver._MAIN = "tests.cluster.echoing"
os.environ["RINGLET_TEST_MARK"] = sys.argv[1]
resolver = LocalClusterResolver(2, 1)
cluster = resolver.start()
for channel in cluster.workers + cluster.ps:
    channel.send(b"hello")
    channel.receive()
tell("started")
hear()
"""


@pytest.fixture(autouse=True)
def _tasks_echo(monkeypatch):
    monkeypatch.setattr("ringlet.cluster.resolvers.local_resolver._MAIN", "tests.cluster.echoing")


@pytest.fixture
def resolver():
    resolver = LocalClusterResolver(2, 1)
    yield resolver
    resolver.stop()


@pytest.fixture
def cluster(resolver):
    """A cluster of two workers and one parameter server, which answer."""
    cluster = resolver.start()
    for channel in cluster.workers + cluster.ps:
        assert answers(channel)
    return cluster


def answers(channel):
    channel.send(b"hello", [b"x" * 100_000])
    message = channel.receive()
    return (message.header, bytes(message.buffers[0])) == (b"hello", b"x" * 100_000)


def lives(pid):
    return Path(f"/proc/{pid}").exists()


def test_a_resolver_names_its_tasks_and_starts_none_of_them():
    before = children()
    resolver = LocalClusterResolver(workers=3, ps=2)
    spec = resolver.cluster_spec()
    assert [spec.num_tasks(job) for job in ("chief", "worker", "ps")] == [1, 3, 2]
    assert ClusterSpec(spec.as_dict()) == spec
    assert (resolver.task_type, resolver.task_id, resolver.environment) == ("chief", 0, "")
    assert resolver.master() == "chief-0"
    assert resolver.master("ps", 1, "grpc") == "grpc://ps-1"
    assert resolver.num_accelerators() == {}
    resolver.stop()
    assert children() == before


def test_a_task_that_there_is_not_is_an_error(resolver):
    with pytest.raises(ClusterConfigError, match="No task with index 2"):
        resolver.master("worker", 2)


@pytest.mark.parametrize("count", [0, -1, 1000, True, "2", 1.5])
def test_numbers_of_tasks_that_cannot_be_are_refused(count):
    with pytest.raises(InvalidArgumentError, match=r"workers is .*: expected an integer from 1 to"):
        LocalClusterResolver(count, 1)
    with pytest.raises(InvalidArgumentError, match=r"ps is .*: expected an integer from 1 to"):
        LocalClusterResolver(1, count)


def test_a_variable_that_is_no_text_is_refused():
    with pytest.raises(InvalidArgumentError, match=r"environment\['THREADS'\] is 4: expected strings"):
        LocalClusterResolver(1, 1, environment={"THREADS": 4})


@pytest.mark.parametrize(
    ("environment", "text"),
    [
        ({"": "1"}, "a name must have at least one character"),
        ({"A=B": "1"}, "and no '='"),
        ({"A": "\0"}, "NUL"),
        ({"A": "\ud800"}, "cannot be encoded"),
        (5, "environment is 5: expected a mapping of variable names to strings"),
        ("AB", "environment is 'AB': expected a mapping"),
    ],
)
def test_variables_that_no_process_can_have_are_refused(environment, text):
    with pytest.raises(InvalidArgumentError, match=text):
        LocalClusterResolver(1, 1, environment=environment)


def test_a_forked_child_has_a_cluster_of_its_own(resolver, cluster):
    child = os.fork()
    if child == 0:
        signal.alarm(int(PATIENCE_SECONDS))
        cluster.stop()
        own = resolver.start()
        is_other = own.pid_of("worker", 0) != cluster.pid_of("worker", 0) and answers(own.workers[0])
        resolver.stop()
        os._exit(0 if is_other else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert answers(cluster.workers[0])


def test_each_task_is_a_process_of_its_own_and_starting_again_starts_none(resolver, cluster):
    assert resolver.start() is cluster
    peers = [channel.peer for channel in cluster.workers + cluster.ps]
    assert peers == ["/job:worker/task:0", "/job:worker/task:1", "/job:ps/task:0"]
    assert len({cluster.pid_of(*task) for task in (("worker", 0), ("worker", 1), ("ps", 0))} | {os.getpid()}) == 4


def test_processes_that_are_idle_end_by_themselves_when_the_cluster_stops(cluster):
    started = time.monotonic()
    cluster.stop()
    assert time.monotonic() - started < STOP_SECONDS
    assert [cluster.ending_of(*task) for task in (("worker", 0), ("ps", 0))] == ["exited with status 0"] * 2
    cluster.stop()
    with pytest.raises(FailedPreconditionError, match="were stopped"):
        cluster.restart("worker", 0)


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL])
def test_all_end_in_time_whatever_one_of_them_does(cluster, number):
    os.kill(cluster.pid_of("worker", 0), number)
    started = time.monotonic()
    cluster.stop()
    assert time.monotonic() - started < STOP_SECONDS + 0.5
    assert cluster.ending_of("worker", 0) == "was killed by SIGKILL (signal 9)"
    assert not lives(cluster.pid_of("ps", 0))


def test_processes_that_are_still_starting_end_in_time_and_nothing_is_left(resolver):
    before = descriptors_of()
    started = time.monotonic()
    resolver.start()
    resolver.stop()
    assert time.monotonic() - started < STOP_SECONDS + 0.5
    assert descriptors_of() == before
    assert answers(resolver.start().ps[0]), "it can be started again"


def test_a_process_that_is_lost_is_told_and_can_be_replaced(cluster):
    lost = cluster.pid_of("worker", 1)
    os.kill(lost, signal.SIGKILL)
    with pytest.raises(ChannelClosed, match="/job:worker/task:1 has closed its connection"):
        cluster.workers[1].receive()
    assert cluster.ending_of("worker", 1) == "was killed by SIGKILL (signal 9)"
    channel = cluster.restart("worker", 1)
    assert cluster.workers[1] is channel
    assert answers(channel)
    assert cluster.pid_of("worker", 1) != lost
    assert answers(cluster.workers[0]), "nobody else is disturbed"


def test_a_process_that_hangs_can_be_replaced_by_a_thread_that_ends(cluster):
    hanging = cluster.pid_of("worker", 0)
    os.kill(hanging, signal.SIGSTOP)
    thread = threading.Thread(target=cluster.restart, args=("worker", 0))
    thread.start()
    thread.join(PATIENCE_SECONDS)
    time.sleep(0.05)
    assert answers(cluster.workers[0])
    assert not lives(hanging)


def test_a_process_that_cannot_start_is_told_with_its_status(monkeypatch, capfd):
    monkeypatch.setattr("ringlet.cluster.resolvers.local_resolver._MAIN", "no_such_module")
    resolver = LocalClusterResolver(1, 1)
    cluster = resolver.start()
    with pytest.raises(ChannelClosed):
        cluster.workers[0].receive()
    assert cluster.ending_of("worker", 0) == "exited with status 1"
    resolver.stop()
    assert "No module named 'no_such_module'" in capfd.readouterr().err


def test_a_program_may_have_more_arguments_than_a_command_has_room_for(monkeypatch, resolver):
    monkeypatch.setattr("sys.argv", ["train.py", *(f"data/ünï\udcff-{number:06}" for number in range(20_000))])
    assert answers(resolver.start().workers[0])


def test_tasks_are_told_who_they_are_and_have_variables_of_their_own():
    resolver = LocalClusterResolver(1, 1, environment={"MINE": "5", "OMP_NUM_THREADS": "1"})
    cluster = resolver.start()
    assert answers(cluster.workers[0])
    entries = Path(f"/proc/{cluster.pid_of('worker', 0)}/environ").read_text(encoding="utf-8").split("\0")
    found = dict(entry.split("=", 1) for entry in entries if entry)
    assert found["TF_CONFIG"].endswith('"task": {"type": "worker", "index": 0}}')
    assert (found["MINE"], found["OMP_NUM_THREADS"]) == ("5", "1")
    assert len(found["RINGLET_JOB_ID"]) == 16
    resolver.stop()


def test_a_cluster_that_nobody_holds_ends():
    cluster = LocalClusterResolver(1, 1).start()
    pid = cluster.pid_of("worker", 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        del cluster
        gc.collect()
    assert eventually(lambda: not lives(pid))


@pytest.mark.parametrize("end", ["exits", "is killed"])
def test_nothing_outlives_the_coordinator(processes, name, end):
    process = processes.start(PROGRAM, name)
    assert process.told() == "started"
    assert len(set(marked(name))) == 4, "three tasks, and who keeps them"
    started = time.monotonic()
    process.say() if end == "exits" else process.kill()
    process.wait()
    assert eventually(lambda: not set(marked(name)))
    assert time.monotonic() - started < STOP_SECONDS + 1.0
