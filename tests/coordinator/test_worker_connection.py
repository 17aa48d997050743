"""A worker is given as much as it can do in a short while, and what it needs for that, once."""

from __future__ import annotations

import dataclasses
import gc
import logging
import threading
import time

import pytest

from ringlet.coordinator import worker_connection as link_module
from ringlet.coordinator.argument_codec import SentFunction, pack_arguments, pack_value
from ringlet.coordinator.closure_queue import ClosureQueue
from ringlet.coordinator.closures import Closure
from ringlet.coordinator.per_worker_values import PerWorkerValues
from ringlet.coordinator.protocol import Batch, Order, Report, items_of
from ringlet.coordinator.remote_value import RemoteValue, RemoteValueStatus
from ringlet.coordinator.worker_connection import Link
from ringlet.coordinator.worker_resource import Resource
from ringlet.errors import CancelledError
from ringlet.ipc import LocalChannel


@pytest.fixture
def ends():
    """A link that is connected, and the worker's end of its channel."""
    link = Link(0, ClosureQueue(lambda: None))
    ours, theirs = LocalChannel.pair("coordinator", "worker")
    link.connect(ours, pack_value(None))
    yield link, theirs
    ours.close()
    theirs.close()


def closures_of(seconds, count=1000):
    function = SentFunction(pack_value(len), "len", "", seconds=seconds)
    values = [RemoteValue() for _ in range(count)]
    return [Closure(number, function, pack_arguments(("",), None, "len"), value) for number, value in enumerate(values)]


def taken(link, closures):
    is_wanted = link.appetite()
    count = 0
    while count < len(closures) and is_wanted(closures[count]):
        count += 1
    return count


# seconds of one call, how many are given at a time
@pytest.mark.parametrize(("seconds", "count"), [(None, 1), (0.1, 1), (0.004, 1), (0.001, 4), (0.00001, 256)])
def test_short_functions_come_in_batches_and_long_or_unknown_ones_alone(ends, seconds, count):
    link, _ = ends
    closures = closures_of(seconds)
    assert taken(link, closures) == count
    link.give(closures[:count])
    assert taken(link, closures[count:]) == 0


def test_a_function_is_sent_once_with_what_it_needs(ends):
    link, theirs = ends
    closures = closures_of(0.0001, 3)
    link.give(closures[:2])
    link.give(closures[2:])
    assert link.post()
    kinds = [item.kind for item in items_of(theirs.receive())]
    assert kinds == [Order.ENTER, Order.DEFINE, Order.CALL, Order.CALL, Order.CALL]


def test_what_a_lost_worker_had_comes_back_in_its_order(ends):
    link, _ = ends
    closures = closures_of(0.0001, 3)
    link.give(closures)
    assert link.lose(OSError("gone")) == closures
    assert link.channel is None
    assert not link.in_flight


def test_behind_a_function_that_runs_long_nothing_is_given_again(ends):
    link, theirs = ends
    closures = closures_of(0.0001, 4)
    link.give(closures[:3])
    link.recall(link.heard_at)
    reports = Batch()
    reports.add(Report.RETURNED, None, [1, 2])
    theirs.send(*reports.take())
    link.hear()
    assert list(link.in_flight) == [0]
    assert taken(link, closures[1:]) == 0
    reports.add(Report.RESULT, 0, (0.0001, None))
    theirs.send(*reports.take())
    link.hear()
    assert taken(link, closures[1:]) == 3


def test_what_is_gone_here_is_forgotten_there(ends):
    link, theirs = ends
    closures = closures_of(0.0001, 1)
    number = closures[0].function.number
    link.give(closures)
    closures.clear()
    assert link.post()
    reports = Batch()
    reports.add(Report.RESULT, 0, (0.0001, None))
    theirs.send(*reports.take())
    link.hear()
    gc.collect()
    assert link.post()
    theirs.receive()
    (forget,) = items_of(theirs.receive())
    assert (forget.kind, forget.content) == (Order.FORGET, [("function", number)])
    assert not link._known


def test_a_function_that_others_wait_behind_is_known_to_take_as_long_as_it_has(ends):
    link, _ = ends
    closures = closures_of(0.0001, 2)
    link.give(closures)
    link.recall(link.heard_at + 0.5)
    assert closures[0].function.seconds == 0.5


def test_time_is_counted_from_when_a_worker_with_nothing_to_do_is_given_something(ends):
    link, _ = ends
    link.heard_at -= 1000
    begin = time.monotonic()
    closures = closures_of(0.0001, 2)
    link.give(closures[:1])
    heard_at = link.heard_at
    assert heard_at >= begin
    link.give(closures[1:])
    assert link.heard_at == heard_at


def test_a_call_whose_arguments_cannot_be_had_fails_alone(ends):
    link, _ = ends
    lost, output, (good,) = RemoteValue._promised(), RemoteValue._promised(), closures_of(0.0001, 1)
    lost._settle(error=OSError("there is no such value"))
    arguments = dataclasses.replace(good.arguments, values=[PerWorkerValues([lost])])
    link.give([Closure(7, good.function, arguments, output), good])
    assert list(link.in_flight.values()) == [good]
    for call in (output.fetch, link._queue.is_done):
        with pytest.raises(OSError, match="no such value"):
            call()


def test_what_a_lost_worker_has_made_is_awaited_again_once_it_is_back(ends):
    link, _ = ends
    resource, copy = Resource(closures_of(None, 1)[0].function, None, lambda _: copy), RemoteValue._promised()
    link.make(resource)
    link.lose(OSError("gone"))
    assert resource._status is RemoteValueStatus.ABORTED
    link.request(resource, copy)
    with pytest.raises(CancelledError, match="aborted"):
        copy.fetch()
    one, other = LocalChannel.pair("coordinator", "worker")
    link.connect(one, pack_value(None))
    assert resource._status is RemoteValueStatus.NOT_READY
    for channel in (one, other):
        channel.close()


def test_what_is_asked_of_a_worker_that_was_given_up_fails(ends):
    link, _ = ends
    link.end(OSError("it cannot be started"))
    resource, copy = Resource(closures_of(None, 1)[0].function, None, lambda _: copy), RemoteValue()
    link.make(resource)
    link.request(resource, copy)
    for value in (resource, copy):
        with pytest.raises(OSError, match="cannot be started"):
            value.fetch()


def test_a_function_that_runs_very_long_is_named_once(ends, caplog, monkeypatch):
    monkeypatch.setattr(link_module, "_SLOW_SECONDS", 5.0)
    link, _ = ends
    link.give(closures_of(None, 1))
    with caplog.at_level(logging.WARNING):
        for later in (1, 7, 8):
            link.tell_if_slow(time.monotonic() + later)
    assert [record.getMessage() for record in caplog.records] == ["worker has run len for 7 s"]


def test_a_worker_that_says_nothing_is_asked_for_an_answer_whatever_it_runs(ends, caplog):
    link, theirs = ends
    link.give(closures_of(None, 1))
    with caplog.at_level(logging.WARNING):
        for later in (30, 60, 90):
            link.ask(link.heard_at + later, 600)
    assert [record.getMessage() for record in caplog.records] == [
        "worker has not answered for 30 s: its process is stopped, or what it runs lets no other thread run. It counts "
        "as lost after 600 s (RINGLET_TIMEOUT_SECONDS)"
    ]
    assert link.post()
    assert [item.kind for item in items_of(theirs.receive())][-3:] == [Order.RECALL] * 3
    assert link.num_unanswered == 3
    heard_at = link.heard_at
    reports = Batch()
    reports.add(Report.RETURNED, None, [])
    theirs.send(*reports.take())
    link.hear()
    assert link.num_unanswered == 0
    assert link.heard_at == heard_at, "what it runs has not moved on"


def test_a_message_is_sent_before_another_thing_would_be_too_much(ends):
    link, theirs = ends
    function = SentFunction(pack_value(len), "len", "", seconds=0.0)
    arguments = pack_arguments((bytes(1 << 19),), None, "len")
    closures = [Closure(number, function, arguments, RemoteValue()) for number in range(5)]
    received = []
    reader = threading.Thread(target=lambda: received.extend(theirs.receive() for _ in range(3)))
    reader.start()
    link.give(closures)
    while not link.post():
        time.sleep(0.001)
    reader.join(30)
    counts = [sum(item.kind == Order.CALL for item in items_of(message)) for message in received]
    assert counts == [2, 2, 1]
