"""The dispatcher shares work out, and brings workers back."""

from __future__ import annotations

import gc
import os
import threading
import time
import weakref

import pytest

from ringlet.coordinator import get_current_worker_index
from ringlet.coordinator import worker_connection as connection_module
from ringlet.coordinator.argument_codec import SentFunction, pack_arguments, pack_value
from ringlet.coordinator.closures import Closure
from ringlet.coordinator.dispatcher import Dispatcher
from ringlet.coordinator.protocol import Batch, Command, Reply, items_of
from ringlet.coordinator.remote_value import RemoteValue
from ringlet.coordinator.worker_resource import Resource
from ringlet.errors import CancelledError, DeadlineExceededError, FailedPreconditionError, WorkerLostError
from ringlet.ipc import LocalChannel
from tests.coordinator.in_threads import ThreadTasks, coordinator_of, status_in_child, tasks_of, wait_for


class HeldTasks(ThreadTasks):
    """Workers that say nothing but what a test says for them, by `worker`."""

    def _serve(self, channel, task_type, task_id):
        pass

    def worker(self, index):
        return self._far_ends["worker", index]

    def stop(self, timeout_seconds=2.0):
        super().stop(timeout_seconds)
        for channel in self._far_ends.values():
            channel.close()


@pytest.fixture
def held(monkeypatch):
    """A dispatcher of two workers that run nothing, which it does not notice, and its tasks."""
    monkeypatch.setattr(connection_module, "_STUCK_SECONDS", 1e9)
    tasks = HeldTasks(2)
    dispatcher = Dispatcher(tasks, pack_value(None), lambda index: OSError("a server is lost"))
    dispatcher._ask_seconds = 1000.0
    dispatcher.start()
    yield dispatcher, tasks
    dispatcher.stop(OSError("the end"), 2.0)


def closures_of(seconds, count):
    function = SentFunction(pack_value(len), "len", "", seconds=seconds)
    values = [RemoteValue._promised() for _ in range(count)]
    return [Closure(number, function, None, value) for number, value in enumerate(values)], values


def put_at_once(dispatcher, closures):
    """Queue closures while the thread of the dispatcher looks at none of them."""
    may_go = threading.Event()
    dispatcher.call_soon(may_go.wait)
    for closure in closures:
        dispatcher.queue.put(closure)
    may_go.set()


def heard(worker, orders):
    """Give all orders that a worker was given, with those that have come since."""
    while (message := worker.poll()) is not None:
        orders += [item.kind for item in items_of(message)]
    return orders


def counts_of(dispatcher):
    return [len(connection.in_flight) for connection in dispatcher.connections]


def test_long_functions_are_given_out_one_by_one(held):
    dispatcher, _ = held
    closures, _ = closures_of(0.05, 6)
    put_at_once(dispatcher, closures)
    wait_for(lambda: sum(counts_of(dispatcher)) == 2)
    assert counts_of(dispatcher) == [1, 1]
    assert len(dispatcher.queue) == 4


def test_short_functions_that_wait_are_shared_out(held):
    dispatcher, _ = held
    closures, _ = closures_of(0.00001, 40)
    put_at_once(dispatcher, closures)
    wait_for(lambda: sum(counts_of(dispatcher)) == 40)
    assert min(counts_of(dispatcher)) >= 10


def test_who_has_least_to_do_is_given_the_next_function(held):
    dispatcher, _ = held
    closures, _ = closures_of(0.00001, 6)
    for number, closure in enumerate(closures):
        dispatcher.queue.put(closure)
        wait_for(lambda number=number: sum(counts_of(dispatcher)) == number + 1)
    assert counts_of(dispatcher) == [3, 3]


def test_after_an_error_what_no_worker_has_begun_is_called_back_and_cancelled(held):
    dispatcher, tasks = held
    closures, values = closures_of(0.00001, 6)
    put_at_once(dispatcher, closures)
    wait_for(lambda: sum(counts_of(dispatcher)) == 6)
    first, *others = dispatcher.connections[0].in_flight
    failing, *rest = dispatcher.connections[1].in_flight
    error = ValueError("wrong")
    dispatcher.call_soon(lambda: dispatcher.queue.fail(error))
    raised = []

    def join():
        with pytest.raises(ValueError, match="wrong") as caught:
            dispatcher.queue.join()
        raised.append(caught.value)

    threading.Thread(target=join, daemon=True).start()
    for index, running, waiting in ((0, first, others), (1, failing, rest)):
        worker, orders = tasks.worker(index), []
        wait_for(lambda worker=worker, orders=orders: Command.RECALL in heard(worker, orders))
        reports = Batch()
        reports.add(Reply.RETURNED, None, waiting)
        reports.add(Reply.RESULT, running, (0.0, None))
        worker.send(*reports.take())
    wait_for(lambda: raised == [error])
    for number, value in enumerate(values):
        if number in others + rest:
            with pytest.raises(CancelledError):
                value.fetch()
        else:
            assert value.fetch() is None


def test_what_is_more_than_a_connection_holds_is_sent_as_soon_as_the_worker_reads(held):
    dispatcher, tasks = held
    function = SentFunction(pack_value(len), "len", "")
    resource = Resource(function, pack_arguments((bytes(20_000_000),), None, "len"), lambda _: RemoteValue())
    dispatcher.call_soon(lambda: dispatcher.connections[0].make(resource))
    orders = []
    wait_for(lambda: Command.MAKE in heard(tasks.worker(0), orders))


def test_short_functions_do_not_stay_behind_one_that_turns_out_long():
    with coordinator_of(workers=2) as coordinator:
        for _ in range(20):
            coordinator.schedule(time.sleep, args=(0,))
        coordinator.join()
        long = coordinator.schedule(time.sleep, args=(20,))
        short = [coordinator.schedule(time.sleep, args=(0,)) for _ in range(20)]
        coordinator.fetch(short)
        assert long._status.name == "NOT_READY"


def test_a_worker_that_cannot_start_is_done_without():
    with coordinator_of(workers=2) as coordinator:
        tasks = tasks_of(coordinator)

        def refuse(task_type, task_id):
            raise OSError("no more processes")

        tasks.restart = refuse
        tasks.lose("worker", 0)
        wait_for(lambda: coordinator._dispatcher._num_given_up == 1)
        assert coordinator.schedule(get_current_worker_index).fetch() == 1
        value = coordinator.schedule(time.sleep, args=(0.3,))
        tasks.lose("worker", 1)
        for call in (value.fetch, coordinator.join, coordinator.join):
            with pytest.raises(
                WorkerLostError, match=r"no worker is left\. The last one cannot be started: no more processes"
            ):
                call()


def test_a_worker_whose_processes_end_at_once_is_not_started_for_ever():
    with coordinator_of(workers=1) as coordinator:
        tasks = tasks_of(coordinator)
        restart = tasks.restart

        def fail(task_type, task_id):
            channel = restart(task_type, task_id)
            tasks.lose(task_type, task_id)
            return channel

        tasks.restart = fail
        assert coordinator.schedule(get_current_worker_index).fetch() == 0
        value = coordinator.schedule(time.sleep, args=(0.2,))
        tasks.lose("worker", 0)
        with pytest.raises(WorkerLostError, match="no worker is left"):
            value.fetch()
        assert tasks.num_restarts == 5


def test_the_last_worker_is_waited_for_once():
    with coordinator_of(workers=1) as coordinator:
        tasks = tasks_of(coordinator)

        def late(task_type, task_id):
            raise DeadlineExceededError("nobody came")

        tasks.restart = late
        tasks.lose("worker", 0)
        with pytest.raises(WorkerLostError, match=r"no worker is left\. The last one cannot be started: nobody came"):
            coordinator.schedule(time.sleep, args=(0.2,)).fetch()


def test_a_worker_that_stays_away_is_waited_for_while_others_work():
    with coordinator_of(workers=2) as coordinator:
        tasks = tasks_of(coordinator)
        restart, is_back = tasks.restart, threading.Event()

        def late(task_type, task_id):
            if not is_back.wait(0.05):
                raise DeadlineExceededError("nobody came")
            return restart(task_type, task_id)

        tasks.restart = late
        tasks.lose("worker", 0)
        for _ in range(10):
            assert coordinator.schedule(get_current_worker_index).fetch() == 1
            time.sleep(0.01)
        is_back.set()
        wait_for(lambda: coordinator._dispatcher.connections[0].channel is not None)


def test_a_worker_that_cannot_be_understood_is_replaced_and_that_is_said(caplog):
    with coordinator_of(workers=1) as coordinator:
        coordinator.schedule(time.sleep, args=(0,)).fetch()
        os.write(tasks_of(coordinator)._far_ends["worker", 0].fileno(), b"no message" * 10)
        wait_for(lambda: tasks_of(coordinator).num_restarts == 1)
        coordinator.schedule(time.sleep, args=(0,)).fetch()
    assert (
        "/job:worker/task:0 has sent data that is not a ringlet message: waiting until its process is restarted"
        in caplog.text
    )


def test_the_thread_ends_with_the_coordinator():
    with coordinator_of(workers=1) as coordinator:
        thread = coordinator._dispatcher._thread
        assert thread.is_alive()
    assert not thread.is_alive()


def test_nothing_that_has_ended_waits_for_the_collector_and_so_its_processes_end_with_it():
    with coordinator_of(workers=1) as coordinator:
        dispatcher = coordinator._dispatcher
    reference = weakref.ref(dispatcher)
    coordinator._dispatcher = None
    gc.disable()
    try:
        del dispatcher
        wait_for(lambda: reference() is None)
    finally:
        gc.enable()


def test_what_comes_too_late_for_the_thread_is_called_by_who_brings_it():
    with coordinator_of(workers=1) as coordinator:
        dispatcher = coordinator._dispatcher
    called = []
    dispatcher.call_soon(lambda: called.append("late"))
    assert called == ["late"]


def test_what_comes_while_the_thread_ends_is_called():
    called = []
    with coordinator_of(workers=1) as coordinator:
        dispatcher = coordinator._dispatcher
        end = dispatcher._end

        def end_slowly(*errors):
            end(*errors)
            dispatcher.call_soon(lambda: called.append("while it ends"))

        dispatcher._end = end_slowly
    wait_for(lambda: called == ["while it ends"])


def test_a_coordinator_that_its_own_thread_lets_go_ends_after_the_turn():
    with coordinator_of(workers=1) as coordinator:
        dispatcher = coordinator._dispatcher
        value = coordinator.schedule(time.sleep, args=(0.2,))

        def collect():
            with dispatcher.queue._lock:
                dispatcher.leave(OSError("gone"), 1.0)

        dispatcher.call_soon(collect)
        with pytest.raises(CancelledError):
            value.fetch()
        with pytest.raises(OSError, match="gone"):
            coordinator.join()
        dispatcher._thread.join(30)
        assert not dispatcher._thread.is_alive()


def test_a_process_that_comes_after_the_end_is_let_go():
    with coordinator_of(workers=1, ps=2) as coordinator:
        dispatcher = coordinator._dispatcher
        tasks_of(coordinator).lose("ps", 1)
        wait_for(lambda: dispatcher.connections[0].has_ended)
        one, other = LocalChannel.pair("one", "other")
        dispatcher.call_soon(lambda: dispatcher._connect(dispatcher.connections[0], one))
        wait_for(lambda: other.is_closed)
        other.close()


def test_shutdown_of_who_holds_the_queue_ends_it_later():
    with coordinator_of(workers=1) as coordinator:
        value = coordinator.schedule(time.sleep, args=(0.5,))
        with coordinator._dispatcher.queue._lock:  # as where a handler of signals calls
            begin = time.monotonic()
            coordinator.shutdown(0.4)
            assert time.monotonic() - begin < 2
        with pytest.raises(CancelledError):
            value.fetch()
        with pytest.raises(FailedPreconditionError, match="was shut down"):
            coordinator.join()


def test_a_cluster_that_was_stopped_is_no_loss(caplog):
    with coordinator_of(workers=2) as coordinator:
        value = coordinator.schedule(time.sleep, args=(0.5,))
        tasks = tasks_of(coordinator)
        tasks.ending_of = lambda *task: time.sleep(0.1) or "has left"  # as processes take their time
        tasks.stop()
        for call in (coordinator.join, value.fetch, lambda: coordinator.schedule(len, args=("",))):
            with pytest.raises(FailedPreconditionError, match="the cluster of this strategy was stopped"):
                call()
    assert not caplog.records


def test_a_worker_that_goes_with_its_cluster_is_not_replaced(caplog):
    with coordinator_of(workers=1) as coordinator:
        tasks, dispatcher = tasks_of(coordinator), coordinator._dispatcher
        dispatcher.call_soon(lambda: (tasks.stop(), dispatcher._lose(dispatcher.connections[0])))
        wait_for(lambda: dispatcher.connections[0].has_ended)
        with pytest.raises(FailedPreconditionError, match="the cluster of this strategy was stopped"):
            coordinator.join()
    assert not caplog.records


def test_a_forked_child_can_do_nothing_with_a_coordinator():
    with coordinator_of(workers=1) as coordinator:
        resources = coordinator.create_per_worker_resource(list)
        assert resources._values[0].fetch() == []

        def use():
            calls = (
                coordinator.join,
                coordinator.done,
                resources._values[0].fetch,
                lambda: coordinator.schedule(len, args=("",)),
                lambda: coordinator.create_per_worker_resource(list),
            )
            for call in calls:
                with pytest.raises(
                    FailedPreconditionError, match=r"belongs to process \d+, the parent of this process"
                ):
                    call()
            coordinator.shutdown()

        with coordinator._dispatcher.queue._lock:
            assert status_in_child(use) == 0
        assert coordinator.schedule(len, args=("ab",)).fetch() == 2
