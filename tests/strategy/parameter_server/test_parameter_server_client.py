"""The coordinator's requests to parameter servers."""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import signal
import threading
import time

import numpy as np
import pytest

import ringlet
from ringlet import _core
from ringlet.cluster_resolver import LocalClusterResolver
from ringlet.errors import DeadlineExceededError, FailedPreconditionError, InvalidArgumentError, PSUnavailableError
from ringlet.ipc import LocalChannel, pack, unpack
from ringlet.strategy.parameter_server import parameter_server_client
from ringlet.strategy.parameter_server.parameter_server_client import ParameterServers, servers_of
from ringlet.values.variables.table_server import TableServer
from ringlet.values.variables.table_storage import TableForm
from tests.coordinator.in_threads import ThreadTasks
from tests.values.tables import open_files

FORM = TableForm((3,), np.dtype(np.float64))


@pytest.fixture
def servers():
    tasks = ThreadTasks(workers=0, ps=2)
    yield ParameterServers(tasks)
    tasks.stop()


class LateTasks(ThreadTasks):
    """A cluster with one parameter server, which replies when the test calls `answer`."""

    def __init__(self):
        super().__init__(workers=0, ps=0)
        self.server = TableServer()
        self._channels["ps", 0], self._far_ends["ps", 0] = LocalChannel.pair("the coordinator", "/job:ps/task:0")

    def answer(self):
        channel = self._far_ends["ps", 0]
        message = channel.receive()
        number, request = unpack(message.header, message.buffers)
        reply, descriptors = self.server.answer(request)
        channel.send(*pack((number, reply)), descriptors)
        for descriptor in descriptors:
            os.close(descriptor)

    @contextlib.contextmanager
    def answering(self, count=1):
        """Reply to a number of requests in the background."""
        thread = threading.Thread(target=lambda: [self.answer() for _ in range(count)])
        thread.start()
        yield
        thread.join()

    def stop(self, timeout_seconds=2.0):
        self.lose("ps", 0)
        super().stop(timeout_seconds)


def test_a_table_begins_with_zeros_and_has_a_key_of_its_own(servers):
    tables = [servers.create(index, FORM, np.ndarray) for index in (0, 1, 0)]
    assert [table.read(0).tolist() for table in tables] == [[0.0] * 3] * 3
    assert len({table.key for table in tables}) == 3


def test_a_failed_creation_raises_the_error_of_the_parameter_server(servers):
    form = TableForm((3,), np.dtype(np.float64))
    form.stored = ((-3,), np.dtype(np.float64))
    with pytest.raises((InvalidArgumentError, ValueError)) as caught:
        servers.create(0, form, np.ndarray)
    assert "/job:ps/task:0 raised it" in str(caught.value.__cause__)
    assert servers.create(0, FORM, np.ndarray).read(0).tolist() == [0.0] * 3


def test_tables_of_freed_variables_are_freed_on_their_parameter_server():
    tasks = LateTasks()
    servers = ParameterServers(tasks)

    def create(requests=1):
        with tasks.answering(requests):
            return servers.create(0, FORM, np.ndarray)

    kept, gone = create(), [create() for _ in range(3)]
    keys = {table.key for table in gone}
    del gone
    gc.collect()
    assert tasks.server.keys() == {kept.key, *keys}
    assert set(servers._freed[0]) == keys
    more = create(requests=2)
    assert tasks.server.keys() == {kept.key, more.key}
    assert not servers._freed[0]
    assert kept.read(0).tolist() == [0.0] * 3
    tasks.stop()


def test_no_files_stay_open_but_those_of_tables_that_there_are(servers):
    before = open_files()
    for _ in range(30):
        servers.create(0, FORM, np.ndarray)
    assert open_files() < before + 15


def test_many_threads_make_tables_at_once(servers):
    made = []
    threads = [
        threading.Thread(target=lambda: made.extend(servers.create(i % 2, FORM, np.ndarray) for i in range(20)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({table.key for table in made}) == 80


def test_the_first_loss_is_named_and_ends_everything_but_reading(servers):
    table = servers.create(1, FORM, np.ndarray)
    servers.tasks.lose("ps", 1)
    with pytest.raises(
        PSUnavailableError, match=r"parameter server 1 \(/job:ps/.*, pid 812\) has left: the job has failed"
    ):
        servers.create(1, FORM, np.ndarray)
    with pytest.raises(PSUnavailableError, match="parameter server 1"):
        servers.create(0, FORM, np.ndarray)
    assert str(servers.mark_lost(0)) == str(servers.lost)
    assert (servers.lost.task_index, servers.lost.reason) == (1, "has left")
    assert table.read(0).tolist() == [0.0] * 3


def test_a_stopped_cluster_is_not_a_loss(servers):
    servers.tasks.stop()
    with pytest.raises(FailedPreconditionError, match="was stopped: create another strategy"):
        servers.create(0, FORM, np.ndarray)
    assert servers.lost is None


def test_a_parameter_server_that_does_not_answer_is_named_and_its_late_reply_is_dropped(monkeypatch):
    monkeypatch.setenv("RINGLET_TIMEOUT_SECONDS", "0.2")
    tasks = LateTasks()
    servers = ParameterServers(tasks)
    with pytest.raises(DeadlineExceededError, match=r"/job:ps/task:0 has not answered for 0\.2 s"):
        servers.create(0, TableForm((7,), np.dtype(np.float32)), np.ndarray)
    monkeypatch.setenv("RINGLET_TIMEOUT_SECONDS", "20")
    tasks.answer()
    with tasks.answering(count=2):  # the second request frees the table that was created too late
        kept = servers.create(0, FORM, np.ndarray)
    assert tasks.server.keys() == {kept.key}
    tasks.stop()


def test_a_parameter_server_that_takes_long_to_answer_is_named(monkeypatch, caplog):
    monkeypatch.setenv("RINGLET_STALL_SECONDS", "0.05")
    monkeypatch.setenv("RINGLET_TIMEOUT_SECONDS", "0.1")
    tasks = LateTasks()
    with pytest.raises(DeadlineExceededError):
        ParameterServers(tasks).create(0, FORM, np.ndarray)
    assert "/job:ps/task:0 has not answered for 0.05 s: check whether its process is stopped" in caplog.messages
    tasks.stop()


def test_a_request_interrupted_before_it_is_sent_does_not_take_the_next_reply(servers, monkeypatch):
    def interrupted(*message):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(servers.tasks.ps[0], "send", interrupted)
        with pytest.raises(KeyboardInterrupt):
            servers.create(0, FORM, np.ndarray)
    monkeypatch.setenv("RINGLET_TIMEOUT_SECONDS", "5")
    assert servers.create(0, FORM, np.ndarray).shape(0) == (3,)


def test_messages_are_not_interrupted_by_signals(servers, monkeypatch):
    users = set()
    for name in ("send", "poll"):
        method = getattr(servers.tasks.ps[0], name)
        monkeypatch.setattr(
            servers.tasks.ps[0], name, lambda *args, of=method: [users.add(threading.current_thread()), of(*args)][1]
        )
    servers.create(0, FORM, np.ndarray)
    assert users
    assert threading.main_thread() not in users


def test_more_files_are_allowed_when_variables_are_as_many_as_may_be_open(servers):
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_files() + 10, before[1]))
    try:
        made = [servers.create(0, FORM, np.ndarray) for _ in range(20)]
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > open_files()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert len(made) == 20


def test_at_the_limit_of_open_files_the_error_names_it(monkeypatch):
    monkeypatch.setattr(parameter_server_client.resource, "getrlimit", lambda _: (16, 16))
    with pytest.raises(
        OSError, match="each variable on parameter servers is an open file, but this process may open at most 16"
    ):
        parameter_server_client._allow_more_files()


# --- processes --------------------------------------------------------------------------------------------------------


def test_the_loss_of_a_process_is_named_within_a_second_and_its_variables_stay_readable():
    resolver = LocalClusterResolver(workers=1, ps=2)
    try:
        servers = servers_of(resolver)
        assert servers_of(resolver) is servers
        table = servers.create(1, FORM, np.ndarray)
        pid = servers.tasks.pid_of("ps", 1)
        os.kill(pid, signal.SIGKILL)
        begin = time.monotonic()
        with pytest.raises(PSUnavailableError, match=rf"parameter server 1 .*pid {pid}\) was killed by SIGKILL"):
            servers.create(1, FORM, np.ndarray)
        assert time.monotonic() - begin < 1
        assert table.read(0).tolist() == [0.0] * 3
    finally:
        resolver.stop()
    assert ringlet.ParameterServerStrategy(resolver).extended._resolver is resolver
    assert _core.Table(table.fileno()).version() == 0
