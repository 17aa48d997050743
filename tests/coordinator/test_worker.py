"""A worker does what it is told, in that order, and tells what came of it."""

from __future__ import annotations

import contextlib
import os
import shlex
import threading
import time

import numpy as np
import pytest

import ringlet
from ringlet.cancellation import check_cancelled
from ringlet.coordinator import protocol
from ringlet.coordinator import worker as worker_module
from ringlet.coordinator.argument_codec import pack_value
from ringlet.coordinator.protocol import Batch, Command, Item, Reply, items_of
from ringlet.coordinator.worker import Worker
from ringlet.ipc import ChannelClosed, LocalChannel, pack, unpack
from ringlet.ipc.remote_exception import exception_of
from ringlet.values import ShardedVariable
from ringlet.values.variables import table_variable
from ringlet.values.variables.table_variable import attach_table, forget_tables
from tests.coordinator import in_threads


class Coordinator:
    """The other end of a worker's channel."""

    def __init__(self):
        self.channel, theirs = LocalChannel.pair("the coordinator", "the worker")
        self.thread = threading.Thread(target=Worker(theirs, 1).run, daemon=True)
        self.thread.start()
        self.batch = Batch()

    def define(self, number, function, name="step", digest=""):
        header, buffers = pack(function)
        self.batch.add(Command.DEFINE, number, (name, digest, header), [bytes(buffer) for buffer in buffers])

    def tell(self, order, number=None, content=None):
        self.batch.add(order, number, content)

    def send(self):
        self.channel.send(*self.batch.take())

    def heard(self, count):
        """Wait for so many reports."""
        found = []
        while len(found) < count:
            found.extend(items_of(self.channel.receive()))
        return found


@pytest.fixture
def worker():
    made = Coordinator()
    yield made
    made.channel.close()
    made.thread.join(30)
    assert not made.thread.is_alive(), "a worker ends with its channel"


def error_of(item):
    content = item.content[1] if item.kind == Reply.FAILURE else item.content
    return exception_of(content, "the worker")


def test_results_come_in_the_order_of_calls(worker):
    worker.define(0, lambda: "answer")
    for number in range(3):
        worker.tell(Command.CALL, number, (0, None))
    worker.send()
    items = worker.heard(3)
    assert [(item.kind, item.number) for item in items] == [(Reply.RESULT, number) for number in range(3)]
    assert unpack(items[0].content[1], items[0].buffers) == "answer"
    assert items[0].content[0] >= 0


def test_what_was_not_begun_is_given_back_while_a_function_runs(worker):
    worker.define(0, lambda: time.sleep(0.3))
    for number in range(4):
        worker.tell(Command.CALL, number, (0, None))
    worker.define(1, lambda: "later")
    worker.send()
    time.sleep(0.1)
    worker.tell(Command.RECALL)
    worker.send()
    (returned,) = worker.heard(1)
    assert (returned.kind, returned.content) == (Reply.RETURNED, [1, 2, 3])
    worker.tell(Command.CALL, 7, (1, None))
    worker.send()
    assert [item.number for item in worker.heard(2)] == [0, 7]


def test_the_function_that_runs_ends_at_its_next_check_if_it_is_cancelled(worker):
    def wait():
        while True:
            check_cancelled()
            time.sleep(0.001)

    worker.define(0, wait)
    worker.define(1, check_cancelled)
    worker.tell(Command.CALL, 5, (0, None))
    worker.send()
    time.sleep(0.05)
    worker.tell(Command.CANCEL, None, [4, 5])
    worker.tell(Command.CALL, 6, (1, None))
    worker.send()
    cancelled, result = worker.heard(2)
    assert (cancelled.kind, cancelled.number) == (Reply.CANCELLED, 5)
    assert (result.kind, result.number) == (Reply.RESULT, 6), "one that comes later is not cancelled"


def test_what_a_call_needs_keeps_its_place_when_calls_are_given_back():
    channel, theirs = LocalChannel.pair("the coordinator", "the worker")
    worker = Worker(theirs, 1)  # which is not running: it does not take orders while they are looked through
    for kind, number in (
        (Command.DEFINE, 0),
        (Command.CALL, 1),
        (Command.HOLD, 2),
        (Command.CALL, 3),
        (Command.RECALL, None),
    ):
        worker._take_in(Item(kind, number, None, (), ()))
    assert [item.number for item in items_of(channel.receive())] == [None]
    assert [worker._inbox.get_nowait().number for _ in range(4)] == [0, 1, 2, 3]
    worker._call(Item(Command.CALL, 1, (0, None), (), ()))
    assert not len(worker._reports), "it was given back, and is not run"
    channel.close()
    theirs.close()


def test_a_worker_that_cannot_go_on_tells_its_coordinator(worker, monkeypatch):
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    worker.tell(Command.ENTER, None, b"no pickle")
    worker.send()
    with pytest.raises(ChannelClosed):
        worker.channel.receive()
    worker.thread.join(30)  # which waits for the thread that has failed, and for its hook


def test_a_worker_that_cannot_read_what_it_is_sent_ends_and_says_why(worker, monkeypatch, caplog):
    monkeypatch.setattr(worker_module, "items_of", lambda message: exec("raise MemoryError"))
    worker.tell(Command.RECALL)
    worker.send()
    with pytest.raises(ChannelClosed):
        worker.channel.receive()
    assert "worker 1 exits, because it cannot read its commands: MemoryError" in caplog.text


def test_a_child_that_a_function_has_forked_ends_with_it_and_runs_nothing_more(worker, monkeypatch):
    monkeypatch.setattr(worker_module, "_GATHER_SECONDS", 1e9)  # else reporting to nobody may end it, too
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    mine, its = os.pipe()

    def fork(comes_back):
        child = os.fork()
        if child:
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if comes_back:
            return "child"
        raise KeyError("child")

    worker.define(0, lambda: fork(True))
    worker.define(1, lambda: fork(False))
    worker.define(2, lambda: os.write(its, b"."))
    for number, function in enumerate((2, 0, 1, 2)):
        worker.tell(Command.CALL, number, (function, None))
    worker.send()
    items = worker.heard(4)
    assert [item.kind for item in items] == [Reply.RESULT] * 4
    assert os.read(mine, 100) == b".."
    os.close(mine)
    os.close(its)


def test_a_short_function_is_reported_although_a_long_one_follows(worker):
    begin = time.monotonic()
    worker.define(0, lambda: None)
    worker.define(1, lambda: time.sleep(30))
    for number, function in ((0, 0), (1, 0), (2, 1)):
        worker.tell(Command.CALL, number, (function, None))
    worker.send()
    assert [item.number for item in worker.heard(2)] == [0, 1]
    assert time.monotonic() - begin < 25


def test_a_function_that_runs_does_not_hold_up_the_end(worker):
    worker.define(0, lambda: time.sleep(60))
    worker.tell(Command.CALL, 0, (0, None))
    worker.send()
    time.sleep(0.05)
    begin = time.monotonic()
    worker.channel.close()
    worker.thread.join(30)
    assert time.monotonic() - begin < 2
    assert not worker.thread.is_alive()


def test_a_function_that_cannot_be_loaded_says_so_when_it_is_called(worker):
    worker.tell(Command.DEFINE, 0, ("train.step", "", pack(None)[0][:8] + b"cno_such_module\nstep\n."))
    worker.tell(Command.CALL, 1, (0, None))
    worker.send()
    (item,) = worker.heard(1)
    with pytest.raises(ringlet.errors.FailedPreconditionError, match=r"train\.step cannot be loaded on worker 1"):
        raise error_of(item)


def test_other_code_than_the_coordinator_has_is_not_run(worker):
    worker.define(0, shlex.quote, "quote", "0123")
    worker.tell(Command.CALL, 1, (0, None))
    worker.send()
    (item,) = worker.heard(1)
    with pytest.raises(ringlet.errors.FailedPreconditionError, match="quote differs between worker 1 and"):
        raise error_of(item)


def test_it_is_ready_once_it_has_its_strategy(worker):
    strategy = ringlet.ParameterServerStrategy(ringlet.cluster_resolver.LocalClusterResolver(2, 1))
    payload = pack_value(strategy)
    worker.tell(Command.ENTER, None, payload.header)
    worker.define(0, ringlet.has_strategy)
    worker.tell(Command.CALL, 1, (0, None))
    worker.send()
    ready, result = worker.heard(2)
    assert ready.kind == Reply.READY
    assert unpack(result.content[1], result.buffers) is True


def test_a_value_that_is_forgotten_is_none_of_its_own(worker):
    worker.batch.add(Command.HOLD, 5, pack([1])[0])
    worker.tell(Command.FETCH, 5)
    worker.tell(Command.FORGET, None, [("value", 5), ("function", 9), ("variable", 9)])
    worker.tell(Command.FETCH, 5)
    worker.send()
    fetched, unfetched = worker.heard(2)
    assert unpack(fetched.content, fetched.buffers) == [1]
    assert unfetched.kind == Reply.UNFETCHED
    with pytest.raises(ringlet.errors.ClosureInputError, match="belongs to another worker"):
        raise error_of(unfetched)


def test_a_variable_that_cannot_be_used_is_named_by_what_uses_it(worker, monkeypatch):
    def refuse(key, descriptor):
        raise OSError("no address space left")

    monkeypatch.setattr(worker_module, "attach_table", refuse)
    strategy = in_threads.strategy_of(1, 1, ringlet.ParameterServerStrategy)
    with strategy.scope():
        variable = ringlet.Variable([1.0], name="weights")
    function, argument = pack_value(lambda: variable), pack_value(((variable,), {}))
    worker.batch.add(Command.TABLE, variable.table_key, file=variable)
    worker.batch.add(Command.DEFINE, 0, ("step", "", function.header), function.buffers)
    worker.define(1, len)
    worker.tell(Command.CALL, 2, (0, None))
    worker.batch.add(Command.CALL, 3, (1, argument.header), argument.buffers)
    worker.send()
    for item in worker.heard(2):
        with pytest.raises(
            ringlet.errors.FailedPreconditionError,
            match="variable 'weights:0' is unusable on worker 1: no address space left",
        ):
            raise error_of(item)
    strategy.extended._cluster().stop()


def test_variables_are_let_go_when_they_are_forgotten_and_in_the_end(worker, monkeypatch):
    handed = []

    def attach(key, descriptor):
        handed.append((descriptor, os.fstat(descriptor).st_ino))
        attach_table(key, descriptor)

    def do(*protocol):
        for order, number, content, file in protocol:
            worker.batch.add(order, number, content, file=file)
        worker.tell(Command.CALL, 0, (0, None))
        worker.send()
        worker.heard(1)

    monkeypatch.setattr(worker_module, "attach_table", attach)
    strategy = in_threads.strategy_of(1, 1, ringlet.ParameterServerStrategy)
    with strategy.scope():
        variables = [ringlet.Variable([1.0]) for _ in range(2)]
    one, other = (variable.table_key for variable in variables)
    worker.define(0, list)
    do(*((Command.TABLE, variable.table_key, None, variable) for variable in variables))
    assert {one, other} <= set(table_variable._attached)
    for descriptor, inode in handed:
        with contextlib.suppress(OSError):  # its number may belong to something else by now
            assert os.fstat(descriptor).st_ino != inode
    do((Command.FORGET, None, [("variable", one)], None))
    assert one not in table_variable._attached
    attach_table(one, variables[0].fileno())  # for another worker that is a thread of this process
    worker.channel.close()
    worker.thread.join(30)
    assert other not in table_variable._attached
    assert one in table_variable._attached
    forget_tables([one])
    strategy.extended._cluster().stop()


def test_variables_that_are_returned_go_back_as_their_values(worker):
    worker.define(
        0, lambda: (ringlet.Variable([1, 2]), ShardedVariable([ringlet.Variable([3]), ringlet.Variable([4])]))
    )
    worker.tell(Command.CALL, 1, (0, None))
    worker.send()
    (item,) = worker.heard(1)
    found = unpack(item.content[1], item.buffers, lambda token: token[1])
    assert [(type(each), each.tolist()) for each in found] == [(np.ndarray, [1, 2]), (np.ndarray, [3, 4])]


def test_a_result_that_is_too_much_for_a_message_is_an_error_of_its_function(worker, monkeypatch):
    monkeypatch.setattr(protocol, "_MOST_BUFFERS", 2)
    worker.define(0, lambda: [np.zeros(1) for _ in range(3)])
    worker.tell(Command.CALL, 1, (0, None))
    worker.send()
    (item,) = worker.heard(1)
    with pytest.raises(TypeError, match=r"cannot send the result of .* back: 3 arrays are too many"):
        raise error_of(item)


class Large:
    def __reduce__(self):
        raise MemoryError


def test_a_result_for_which_no_memory_is_left_is_an_error_that_says_so(worker):
    worker.define(0, Large)
    worker.tell(Command.CALL, 1, (0, None))
    worker.send()
    (item,) = worker.heard(1)
    with pytest.raises(TypeError, match=r"cannot send the result of Large back: MemoryError\. Return arrays"):
        raise error_of(item)
