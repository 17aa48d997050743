"""A worker is given as much as it can do in a short while, and what it needs for that, once."""

from __future__ import annotations

import dataclasses
import gc
import logging
import threading
import time

import pytest

from ringlet.coordinator.argument_codec import SentFunction, pack_arguments, pack_value
from ringlet.coordinator.closure_queue import ClosureQueue
from ringlet.coordinator.closures import Closure
from ringlet.coordinator.per_worker_values import PerWorkerValues
from ringlet.coordinator.protocol import Batch, Command, Reply, items_of
from ringlet.coordinator.remote_value import RemoteValue, RemoteValueStatus
from ringlet.coordinator.worker_connection import WorkerConnection
from ringlet.coordinator.worker_resource import Resource
from ringlet.errors import CancelledError
from ringlet.ipc import LocalChannel


@pytest.fixture
def ends():
    """A connection that is connected, and the worker's end of its channel."""
    connection = WorkerConnection(0, ClosureQueue(lambda: None))
    ours, theirs = LocalChannel.pair("coordinator", "worker")
    connection.connect(ours, pack_value(None))
    yield connection, theirs
    ours.close()
    theirs.close()


def closures_of(seconds, count=1000):
    function = SentFunction(pack_value(len), "len", "", seconds=seconds)
    values = [RemoteValue() for _ in range(count)]
    return [Closure(number, function, pack_arguments(("",), None, "len"), value) for number, value in enumerate(values)]


def taken(connection, closures):
    is_wanted = connection.acceptor()
    count = 0
    while count < len(closures) and is_wanted(closures[count]):
        count += 1
    return count


# seconds of one call, how many are given at a time
@pytest.mark.parametrize(("seconds", "count"), [(None, 1), (0.1, 1), (0.004, 1), (0.001, 4), (0.00001, 256)])
def test_short_functions_come_in_batches_and_long_or_unknown_ones_alone(ends, seconds, count):
    connection, _ = ends
    closures = closures_of(seconds)
    assert taken(connection, closures) == count
    connection.give(closures[:count])
    assert taken(connection, closures[count:]) == 0


def test_a_call_that_a_worker_may_have_been_lost_by_is_given_alone(ends):
    connection, _ = ends
    closures = closures_of(0.00001, count=4)
    closures[1].num_losses = 1
    assert taken(connection, closures) == 1
    assert taken(connection, closures[1:]) == 1
    connection.give(closures[1:2])
    assert taken(connection, closures[2:]) == 0


def test_a_function_is_sent_once_with_what_it_needs(ends):
    connection, theirs = ends
    closures = closures_of(0.0001, 3)
    connection.give(closures[:2])
    connection.give(closures[2:])
    assert connection.post()
    kinds = [item.kind for item in items_of(theirs.receive())]
    assert kinds == [Command.ENTER, Command.DEFINE, Command.CALL, Command.CALL, Command.CALL]


def test_what_a_lost_worker_had_comes_back_in_its_order(ends):
    connection, _ = ends
    closures = closures_of(0.0001, 3)
    connection.give(closures)
    assert connection.lose(OSError("gone")) == closures
    assert connection.channel is None
    assert not connection.in_flight


def test_behind_a_function_that_runs_long_nothing_is_given_again(ends):
    connection, theirs = ends
    closures = closures_of(0.0001, 4)
    connection.give(closures[:3])
    connection.recall(connection.replied_at)
    reports = Batch()
    reports.add(Reply.RETURNED, None, [1, 2])
    theirs.send(*reports.take())
    connection.receive()
    assert list(connection.in_flight) == [0]
    assert taken(connection, closures[1:]) == 0
    reports.add(Reply.RESULT, 0, (0.0001, None))
    theirs.send(*reports.take())
    connection.receive()
    assert taken(connection, closures[1:]) == 3


def test_what_is_gone_here_is_forgotten_there(ends):
    connection, theirs = ends
    closures = closures_of(0.0001, 1)
    number = closures[0].function.number
    connection.give(closures)
    closures.clear()
    assert connection.post()
    reports = Batch()
    reports.add(Reply.RESULT, 0, (0.0001, None))
    theirs.send(*reports.take())
    connection.receive()
    gc.collect()
    assert connection.post()
    theirs.receive()
    (forget,) = items_of(theirs.receive())
    assert (forget.kind, forget.content) == (Command.FORGET, [("function", number)])
    assert not connection._held


def test_a_function_that_others_wait_behind_is_known_to_take_as_long_as_it_has(ends):
    connection, _ = ends
    closures = closures_of(0.0001, 2)
    connection.give(closures)
    connection.recall(connection.replied_at + 0.5)
    assert closures[0].function.seconds == 0.5


def test_what_runs_is_cancelled_once_and_its_value_says_so(ends):
    connection, worker = ends
    value = RemoteValue()
    closure = Closure(
        7, SentFunction(pack_value(len), "len", "", seconds=1.0), pack_arguments(("",), None, "len"), value
    )
    connection.cancel()
    connection.give([closure])
    for _ in range(2):
        connection.cancel()
    connection.post()
    assert [item.content for item in items_of(worker.receive()) if item.kind == Command.CANCEL] == [[7]]
    batch = Batch()
    batch.add(Reply.CANCELLED, 7)
    worker.send(*batch.take())
    connection.receive()
    assert not connection.in_flight
    with pytest.raises(CancelledError, match="reschedule"):
        value.fetch()


def test_time_is_counted_from_when_a_worker_with_nothing_to_do_is_given_something(ends):
    connection, _ = ends
    connection.replied_at -= 1000
    begin = time.monotonic()
    closures = closures_of(0.0001, 2)
    connection.give(closures[:1])
    replied_at = connection.replied_at
    assert replied_at >= begin
    connection.give(closures[1:])
    assert connection.replied_at == replied_at


def test_a_call_whose_arguments_cannot_be_had_fails_alone(ends):
    connection, _ = ends
    lost, output, (good,) = RemoteValue._promised(), RemoteValue._promised(), closures_of(0.0001, 1)
    lost._settle(error=OSError("there is no such value"))
    arguments = dataclasses.replace(good.arguments, values=[PerWorkerValues([lost])])
    connection.give([Closure(7, good.function, arguments, output), good])
    assert list(connection.in_flight.values()) == [good]
    for call in (output.fetch, connection._queue.is_done):
        with pytest.raises(OSError, match="no such value"):
            call()


def test_what_a_lost_worker_has_made_is_awaited_again_once_it_is_back(ends):
    connection, _ = ends
    resource, copy = Resource(closures_of(None, 1)[0].function, None, lambda _: copy), RemoteValue._promised()
    connection.make(resource)
    connection.lose(OSError("gone"))
    assert resource._status is RemoteValueStatus.ABORTED
    connection.request(resource, copy)
    with pytest.raises(CancelledError, match="aborted"):
        copy.fetch()
    one, other = LocalChannel.pair("coordinator", "worker")
    connection.connect(one, pack_value(None))
    assert resource._status is RemoteValueStatus.NOT_READY
    for channel in (one, other):
        channel.close()


def test_what_is_asked_of_a_worker_that_was_given_up_fails(ends):
    connection, _ = ends
    connection.end(OSError("it cannot be started"))
    resource, copy = Resource(closures_of(None, 1)[0].function, None, lambda _: copy), RemoteValue()
    connection.make(resource)
    connection.request(resource, copy)
    for value in (resource, copy):
        with pytest.raises(OSError, match="cannot be started"):
            value.fetch()


def test_a_function_that_runs_very_long_is_named_once(ends, caplog):
    connection, _ = ends
    connection.give(closures_of(None, 1))
    with caplog.at_level(logging.WARNING):
        for later in (1, 7, 8):
            now = time.monotonic() + later
            if connection.is_slow(now, 5.0):
                connection.report(now, is_stopped=False)
    (text,) = [record.getMessage() for record in caplog.records]
    assert text.startswith("worker has been running len for 7 s; ")


def test_a_worker_that_says_nothing_is_asked_for_an_answer_whatever_it_runs(ends, caplog):
    connection, theirs = ends
    connection.give(closures_of(None, 1))
    with caplog.at_level(logging.WARNING):
        for later in (30, 60, 90):
            connection.ask(connection.replied_at + later, 600)
    assert [record.getMessage() for record in caplog.records] == [
        "worker has not answered for 30 s: its process is stopped, or its function blocks all other threads. The "
        "worker counts as lost after 600 s (RINGLET_TIMEOUT_SECONDS)"
    ]
    assert connection.post()
    assert [item.kind for item in items_of(theirs.receive())][-3:] == [Command.RECALL] * 3
    assert connection.num_unanswered == 3
    replied_at = connection.replied_at
    reports = Batch()
    reports.add(Reply.RETURNED, None, [])
    theirs.send(*reports.take())
    connection.receive()
    assert connection.num_unanswered == 0
    assert connection.replied_at == replied_at, "what it runs has not moved on"


def test_a_message_is_sent_before_another_thing_would_be_too_much(ends):
    connection, theirs = ends
    function = SentFunction(pack_value(len), "len", "", seconds=0.0)
    arguments = pack_arguments((bytes(1 << 19),), None, "len")
    closures = [Closure(number, function, arguments, RemoteValue()) for number in range(5)]
    received = []
    reader = threading.Thread(target=lambda: received.extend(theirs.receive() for _ in range(3)))
    reader.start()
    connection.give(closures)
    while not connection.post():
        time.sleep(0.001)
    reader.join(30)
    counts = [sum(item.kind == Command.CALL for item in items_of(message)) for message in received]
    assert counts == [2, 2, 1]
