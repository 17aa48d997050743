"""Workers and parameter servers that TCP connects, as threads of this process."""

from __future__ import annotations

import contextlib
import socket
import threading
from functools import partial

import numpy as np
import pytest

import ringlet
from ringlet.cluster import ClusterSpec, SimpleClusterResolver
from ringlet.coordinator import ClusterCoordinator
from ringlet.coordinator.server import Server
from ringlet.coordinator.task_main import serve_tables
from ringlet.errors import DeadlineExceededError, FailedPreconditionError, InvalidArgumentError, PSUnavailableError
from ringlet.experimental.partitioners import FixedShardsPartitioner
from ringlet.ipc import Message
from ringlet.values.variables.table_server import TableServer
from tests.coordinator.in_threads import status_in_child
from tests.processes.harness import eventually

CALLS = 100


@pytest.fixture
def servers(monkeypatch):
    """Servers of two workers and two parameter servers, by task."""
    monkeypatch.setenv("RINGLET_SECRET", "a secret of these tests")
    with contextlib.ExitStack() as bound:
        ports = [bound.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1] for _ in range(4)]
    addresses = [f"127.0.0.1:{port}" for port in ports]
    spec = ClusterSpec({"worker": addresses[:2], "ps": addresses[2:]})
    started = {task: Server(spec, *task) for task in (("worker", 0), ("worker", 1), ("ps", 0), ("ps", 1))}
    yield started
    for server in started.values():
        server._listener.close()


@pytest.fixture
def clients(servers):
    """The channels of parameter servers to workers and coordinators."""
    channels = []

    def serve(tables, channel):
        channels.append(channel)
        serve_tables(tables, channel)

    for server in servers.values():
        server._listener._serve_client = partial(serve, *server._listener._serve_client.args)
    return channels


@pytest.fixture
def coordinator(servers, clients):
    """Has two workers and two parameter servers, of which each holds a half of a variable with rows."""
    spec = next(iter(servers.values()))._spec
    coordinator = ClusterCoordinator(
        ringlet.ParameterServerStrategy(SimpleClusterResolver(spec), FixedShardsPartitioner(2))
    )
    yield coordinator
    coordinator.shutdown()
    for server in servers.values():
        server.join()


def variable(coordinator, value, **more):
    with coordinator.strategy.scope():
        return ringlet.Variable(value, **more)


def test_functions_of_all_workers_and_the_coordinator_change_the_same_variables(coordinator):
    total, table = variable(coordinator, 0), variable(coordinator, np.zeros((6, 2)))
    values = [coordinator.schedule(Step(total, table, number)) for number in range(CALLS)]
    for _ in range(CALLS):
        total.assign_add(1)
    assert set(coordinator.fetch(values)) == {0, 1}
    assert int(total) == 2 * CALLS
    counts = [sum(number % 3 == row for number in range(CALLS)) for row in range(3)]
    assert table.numpy().tolist() == [[count, count] for count in counts * 2]


class Step:
    """A function without a closure, which needs no cloudpickle."""

    def __init__(self, total, table, number):
        self.total, self.table, self.number = total, table, number

    def __call__(self):
        self.total.assign_add(1)
        self.table.scatter_add(ringlet.IndexedSlices(np.ones((2, 2)), [self.number % 3, 3 + self.number % 3]))
        return ringlet.coordinator.get_current_worker_index()


class Read:
    def __init__(self, number):
        self.number = number

    def __call__(self):
        return int(self.number)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "bool", "complex64", "U5", "datetime64[s]"])
def test_a_variable_is_read_and_assigned_as_on_one_host(coordinator, dtype):
    dtype = np.dtype(pytest.importorskip("ml_dtypes").bfloat16 if dtype == "bfloat16" else dtype)
    values = np.arange(24).reshape(6, 4).astype(dtype)
    sharded = variable(coordinator, values)
    assert np.array_equal(sharded.numpy(), values)
    assert np.array_equal(sharded[2:5, 1], values[2:5, 1])
    assert np.array_equal(sharded.sparse_read([5, 0, 5]), values[[5, 0, 5]])
    sharded.assign(values[::-1])
    assert np.array_equal(np.asarray(sharded), values[::-1])
    sharded.scatter_update(ringlet.IndexedSlices(values[:1], [4]))
    assert np.array_equal(sharded[4], values[0])
    assert not np.asarray(sharded.variables[0].read_value()).flags.writeable
    assert sharded.numpy().flags.writeable
    assert variable(coordinator, np.zeros((6, 0), dtype)).numpy().shape == (6, 0)
    one = variable(coordinator, values[0, 1])
    assert one.numpy() == values[0, 1]


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "min", "max", "update"])
def test_rows_are_changed_as_on_one_host(coordinator, name):
    start, rows = np.arange(1.0, 13.0).reshape(6, 2), ringlet.IndexedSlices(np.full((3, 2), 4.0), [1, 4, 5])
    remote, local = variable(coordinator, start), ringlet.Variable(start)
    for each in (remote, local):
        getattr(each, f"scatter_{name}")(rows)
    assert np.array_equal(remote.numpy(), local.numpy())
    with pytest.raises(InvalidArgumentError, match="6"):
        remote.scatter_add(ringlet.IndexedSlices(np.ones((1, 2)), [6]))


def test_variables_that_are_dropped_are_freed_on_their_servers(coordinator, servers):
    tables = servers["ps", 0]._listener._serve_client.args[0]
    first = variable(coordinator, np.zeros(4))
    assert [shard.server_index for shard in first.variables] == [0, 1]
    assert len(tables.keys()) == 1
    del first
    second = variable(coordinator, np.zeros(4))
    assert tables.keys() == {second.variables[0].table_key}


def test_a_lost_parameter_server_is_named_by_all_calls_and_the_other_one_can_be_read(coordinator, servers):
    numbers = [variable(coordinator, 5), variable(coordinator, 6)]
    assert [number.server_index for number in numbers] == [0, 1]
    call = coordinator.schedule(Read(numbers[1]))
    assert call.fetch() == 6
    servers["ps", 1]._listener._holder[0].shutdown(socket.SHUT_RDWR)
    text = (
        r"parameter server 1 \(/job:ps/task:1 at 127.0.0.1:\d+, pid \d+\) has closed its connection: the job has failed"
    )
    assert eventually(lambda: has_ended(coordinator))
    with pytest.raises(PSUnavailableError, match=text):
        coordinator.join()
    for call in (
        coordinator.join,
        lambda: numbers[1].assign(3),
        lambda: int(numbers[1]),
        lambda: variable(coordinator, 0),
    ):
        with pytest.raises(
            PSUnavailableError, match=r"its variables are lost\. Start the job again, from a checkpoint"
        ):
            call()
    assert int(numbers[0]) == 5


def has_ended(coordinator):
    try:
        coordinator.done()
    except PSUnavailableError:
        return True
    return False


def test_a_worker_that_loses_a_parameter_server_says_so(coordinator, clients):
    number = variable(coordinator, 5)
    assert coordinator.schedule(Read(number)).fetch() == 5
    assert {channel.peer.partition(" ")[0] for channel in clients} <= {"/job:worker/task:0", "/job:worker/task:1"}
    for channel in clients:
        channel.close()
    with pytest.raises(PSUnavailableError, match=r"parameter server 0 \(/job:ps/task:0 at 127.0.0.1"):
        coordinator.schedule(Read(number)).fetch()
    assert int(number) == 5


def test_a_parameter_server_that_does_not_answer_is_named(coordinator, servers, monkeypatch):
    number = variable(coordinator, 5)
    answer, may_answer = TableServer.answer, threading.Event()
    monkeypatch.setattr(TableServer, "answer", lambda *args: may_answer.wait(60) and answer(*args))
    monkeypatch.setenv("RINGLET_TIMEOUT_SECONDS", "0.1")
    with pytest.raises(DeadlineExceededError, match=r"/job:ps/task:0 at .* has not answered for 0.1 s"):
        number.assign_add(1)
    may_answer.set()
    monkeypatch.setenv("RINGLET_TIMEOUT_SECONDS", "60")
    assert int(number) == 6  # the request was sent, and is executed once


def test_after_shutdown_and_in_a_forked_child_variables_cannot_be_read(coordinator):
    number = variable(coordinator, 5)
    locks = coordinator.strategy.extended._servers()._locks
    with contextlib.ExitStack() as held:
        for lock in locks:
            held.enter_context(lock)

        def read():
            with pytest.raises(FailedPreconditionError, match="was stopped"):
                int(number)

        assert status_in_child(read) == 0
    coordinator.shutdown()
    with pytest.raises(FailedPreconditionError, match="was stopped"):
        int(number)


def test_a_failed_request_raises_the_error_of_the_server(coordinator):
    number = variable(coordinator, 5)
    servers = coordinator.strategy.extended._servers()
    with pytest.raises(ValueError, match="unknown request 'nonsense'"):
        servers.ask(0, ("nonsense",))
    assert isinstance(servers._ask(0, ("read", number.table_key))[0], Message)
