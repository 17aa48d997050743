"""The queue of asynchronous calls: order, callbacks, and calls after its end."""

from __future__ import annotations

import threading

import pytest

from ringlet.collectives import Group
from ringlet.collectives.operation_queue import OperationQueue
from ringlet.errors import FailedPreconditionError


@pytest.fixture
def operations():
    made = OperationQueue(Group(1)._core, 0)
    yield made
    made.close()


def test_a_call_that_is_waited_for_runs_in_the_calling_thread_unless_others_are_unfinished(operations):
    here = threading.get_ident()
    assert operations.run(threading.get_ident, "first", is_async=False).result() == here
    begins = threading.Event()
    first = operations.run(lambda: begins.wait(5), "first")
    threading.Timer(0.05, begins.set).start()
    assert operations.run(threading.get_ident, "second", is_async=False).result() != here
    assert first.done()


def test_calls_in_callbacks_run_before_later_ones(operations):
    order, begins = [], threading.Event()
    first = operations.run(lambda: begins.wait(5), "first")
    first.add_done_callback(lambda _: operations.run(lambda: order.append("callback"), "callback", is_async=False))
    last = operations.run(lambda: order.append("last"), "last")
    begins.set()
    last.result(5)
    assert order == ["callback", "last"]


def test_an_exception_that_is_not_an_error_ends_the_call_and_not_the_queue(operations):
    with pytest.raises(SystemExit):
        operations.run(lambda: exec("raise SystemExit(3)"), "exit").result(5)
    assert operations.run(lambda: 5, "five").result(5) == 5


def test_a_queue_finishes_its_calls_and_accepts_no_more(operations):
    done = operations.run(lambda: 5, "five")
    assert operations.drain(5)
    assert done.done()
    with pytest.raises(FailedPreconditionError, match="rank 0 has closed its group: call wait"):
        operations.run(lambda: None, "late").result(5)


def test_a_call_that_does_not_end_is_named(operations):
    ends = threading.Event()
    operations.run(ends.wait, "endless")
    operations.run(ends.wait, "queued")
    assert not operations.drain(0.05)
    assert operations.close() == ["endless", "queued"]
    ends.set()
