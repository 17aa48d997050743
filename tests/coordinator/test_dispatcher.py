"""The dispatcher shares work out, and brings workers back."""

from __future__ import annotations

import threading
import time

import pytest

from ringlet.coordinator import get_current_worker_index
from ringlet.engine import LocalChannel
from ringlet.errors import CancelledError, DeadlineExceededError, FailedPreconditionError, WorkerLostError
from tests.coordinator.in_threads import coordinator_of, status_in_child, tasks_of, wait_for


def test_long_functions_are_given_out_one_by_one():
    with coordinator_of(workers=2) as coordinator:
        for _ in range(2):
            coordinator.schedule(time.sleep, args=(0.05,))
        coordinator.join()
        begin = time.monotonic()
        for _ in range(6):
            coordinator.schedule(time.sleep, args=(0.05,))
        coordinator.join()
        assert 0.15 <= time.monotonic() - begin < 0.29


def test_short_functions_do_not_stay_behind_one_that_turns_out_long():
    with coordinator_of(workers=2) as coordinator:
        for _ in range(20):
            coordinator.schedule(time.sleep, args=(0,))
        coordinator.join()
        long = coordinator.schedule(time.sleep, args=(1,))
        short = [coordinator.schedule(time.sleep, args=(0,)) for _ in range(20)]
        begin = time.monotonic()
        coordinator.fetch(short)
        assert time.monotonic() - begin < 0.8
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
        value = coordinator.schedule(time.sleep, args=(0.2,))
        tasks.lose("worker", 0)
        with pytest.raises(WorkerLostError, match="no worker is left"):
            value.fetch()


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
        wait_for(lambda: coordinator._dispatcher.links[0].channel is not None)


def test_the_thread_ends_with_the_coordinator():
    with coordinator_of(workers=1) as coordinator:
        thread = coordinator._dispatcher._thread
        assert thread.is_alive()
    assert not thread.is_alive()


def test_what_comes_too_late_for_the_thread_is_called_by_who_brings_it():
    with coordinator_of(workers=1) as coordinator:
        dispatcher = coordinator._dispatcher
    called = []
    dispatcher.call_soon(lambda: called.append("late"))
    assert called == ["late"]


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
        dispatcher._thread.join(5)
        assert not dispatcher._thread.is_alive()


def test_a_process_that_comes_after_the_end_is_let_go():
    with coordinator_of(workers=1, ps=2) as coordinator:
        dispatcher = coordinator._dispatcher
        tasks_of(coordinator).lose("ps", 1)
        wait_for(lambda: dispatcher.links[0].has_ended)
        one, other = LocalChannel.pair("one", "other")
        dispatcher.call_soon(lambda: dispatcher._connect(dispatcher.links[0], one))
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
                with pytest.raises(FailedPreconditionError, match=r"belongs to process \d+, which has forked this one"):
                    call()
            coordinator.shutdown()

        with coordinator._dispatcher.queue._lock:
            assert status_in_child(use) == 0
        assert coordinator.schedule(len, args=("ab",)).fetch() == 2
