"""ClusterCoordinator: functions that are scheduled run on workers; what goes wrong is told once."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import ringlet
from ringlet.coordinator import RemoteValue
from ringlet.errors import CancelledError, FailedPreconditionError, PSUnavailableError
from ringlet.ipc.pickle_codec import Unsendable
from tests.coordinator.in_threads import coordinator_of, tasks_of, wait_for


@pytest.fixture
def coordinator():
    with coordinator_of(workers=2) as made:
        yield made


def refuse():
    raise KeyError("weights")


def outcome_of(value):
    try:
        return str(value.fetch())
    except CancelledError as error:
        return f"CancelledError: {error}"


# --- what functions give ----------------------------------------------------------------------------------------------


def test_a_function_gives_a_value_later(coordinator):
    value = coordinator.schedule(lambda x, y=1: {"sum": x + y, "pair": (x, [y])}, args=(3,), kwargs={"y": 4})
    assert isinstance(value, RemoteValue)
    assert value.fetch() == value.get() == {"sum": 7, "pair": (3, [4])}
    coordinator.join()
    assert coordinator.done()


def test_values_are_fetched_from_any_structure(coordinator):
    value = coordinator.schedule(lambda: (1, None))
    assert coordinator.fetch({"a": [value, 5]}) == {"a": [(1, None), 5]}
    assert coordinator.fetch("text") == "text"


def test_arrays_that_come_back_are_read_only_and_the_same_every_time(coordinator):
    value = coordinator.schedule(np.arange, args=(5,))
    fetched = value.fetch()
    np.testing.assert_array_equal(fetched, np.arange(5))
    assert fetched is value.fetch()
    assert not fetched.flags.writeable


def test_an_argument_counts_as_it_was_when_it_was_scheduled(coordinator):
    x = np.zeros(1000)
    values = []
    for i in range(20):
        x[:] = i
        values.append(coordinator.schedule(np.sum, args=(x,)))
    assert [float(value.fetch()) for value in values] == [1000.0 * i for i in range(20)]


def test_a_function_is_sent_as_it_was_when_it_was_scheduled_first(coordinator):
    rate = [0.5]

    def step():
        return rate[0]

    assert coordinator.schedule(step).fetch() == 0.5
    rate[0] = 0.25
    assert coordinator.schedule(step).fetch() == 0.5


def test_methods_and_marked_functions_are_functions_like_others(coordinator):
    class Model:
        def __init__(self, scale):
            self.scale = scale

        @ringlet.function
        def step(self, x):
            return self.scale * x

    models = [Model(2), Model(3)]
    assert [coordinator.schedule(model.step, args=(5,)).fetch() for model in models for _ in range(2)] == [
        10,
        10,
        15,
        15,
    ]


def test_closures_without_number_are_run_once_each_in_any_order(coordinator):
    values = [coordinator.schedule(lambda i: i, args=(i,)) for i in range(2000)]
    coordinator.join()
    assert [value.fetch() for value in values] == list(range(2000))


def test_functions_that_wait_for_each_other_run_at_the_same_time(coordinator):
    # Both are threads of this process, so they may meet; neither may stand behind the other for long.
    meeting = {"barrier": threading.Barrier(2)}
    ringlet.coordinator.worker_meeting = meeting
    try:

        def short():
            return None

        def meet():
            from ringlet import coordinator as module

            module.worker_meeting["barrier"].wait(5)

        for _ in range(50):
            coordinator.schedule(short)
        coordinator.join()
        coordinator.schedule(meet)
        coordinator.schedule(short)
        coordinator.schedule(meet)
        coordinator.join()
    finally:
        del ringlet.coordinator.worker_meeting


def test_a_function_may_ask_which_worker_runs_it(coordinator):
    index = ringlet.coordinator.experimental_get_current_worker_index
    values = [coordinator.schedule(index) for _ in range(50)]
    assert {value.fetch() for value in values} <= {0, 1}
    with pytest.raises(RuntimeError, match="Cannot retrieve the worker index"):
        index()


def test_the_strategy_is_current_and_usable_inside(coordinator):
    strategy = coordinator.strategy

    def step():
        replicas = strategy.run(lambda: ringlet.get_replica_context().num_replicas_in_sync * 10)
        return strategy.reduce("SUM", replicas, axis=None), ringlet.get_strategy() is strategy

    assert coordinator.schedule(step).fetch() == (10, True)


# --- errors -----------------------------------------------------------------------------------------------------------


def test_the_first_error_is_raised_once_with_the_traceback_of_its_worker(coordinator):
    coordinator.schedule(refuse)
    with pytest.raises(KeyError, match="weights") as caught:
        coordinator.join()
    assert "in refuse" in str(caught.value.__cause__)
    assert "/job:worker/task:" in str(caught.value.__cause__)
    coordinator.join()
    assert coordinator.schedule(lambda: 2).fetch() == 2


def test_fetch_raises_the_error_of_its_function_and_leaves_it_to_join(coordinator):
    value = coordinator.schedule(refuse)
    with pytest.raises(KeyError):
        value.fetch()
    with pytest.raises(KeyError):
        coordinator.join()


def test_done_raises_an_error_once(coordinator):
    value = coordinator.schedule(refuse)
    with pytest.raises(KeyError):
        value.fetch()
    with pytest.raises(KeyError):
        coordinator.done()
    assert coordinator.done()


def test_what_waits_behind_a_failure_has_run_or_is_cancelled(coordinator):
    values = []

    def schedule_more():
        for _ in range(100):
            values.append(coordinator.schedule(lambda: 2))
        coordinator.join()

    coordinator.schedule(refuse)
    with pytest.raises(KeyError):
        schedule_more()
    cancelled = "CancelledError: The corresponding function is cancelled. Please reschedule the function."
    assert {outcome_of(value) for value in values} <= {"2", cancelled}


@pytest.mark.parametrize("uses", ["reads", "writes", "rows", "elements"])
def test_a_function_that_runs_is_cancelled_where_it_uses_a_variable_or_a_dataset(coordinator, uses):
    with coordinator.strategy.scope():
        v = ringlet.Variable(np.zeros(3))

    def run(uses):
        elements = iter(ringlet.data.Dataset.range(1).repeat())
        v.assign_add(np.ones(3))
        while True:
            if uses == "elements":
                next(elements)
            elif uses == "reads":
                v.read_value()
            elif uses == "writes":
                v.assign_add(np.zeros(3))
            else:
                v[1:]
            time.sleep(0.001)

    value = coordinator.schedule(run, args=(uses,))
    wait_for(lambda: v.numpy()[0] == 1.0)
    coordinator.schedule(refuse)
    with pytest.raises(KeyError):
        coordinator.join()
    assert outcome_of(value).startswith("CancelledError: The corresponding function is cancelled.")
    coordinator.schedule(lambda: v.assign_add(np.ones(3)))
    coordinator.join()
    assert v.numpy()[0] == 2.0


def test_a_function_that_ends_before_it_hears_of_an_error_keeps_its_value(coordinator):
    value = coordinator.schedule(lambda: time.sleep(0.2) or "done")
    coordinator.schedule(refuse)
    with pytest.raises(KeyError):
        coordinator.join()
    assert value.fetch() == "done"


def test_the_end_of_an_iterator_is_out_of_range(coordinator):
    value = coordinator.schedule(lambda: next(iter([])))
    with pytest.raises(ringlet.errors.OutOfRangeError):
        value.fetch()
    with pytest.raises(ringlet.errors.OutOfRangeError):
        coordinator.join()


def test_a_function_that_exits_ends_neither_its_worker_nor_the_program(coordinator):
    def interrupt():
        raise KeyboardInterrupt

    for function, args, told in ((exit, (3,), r"SystemExit\(3\)"), (interrupt, (), "KeyboardInterrupt")):
        coordinator.schedule(function, args=args)
        with pytest.raises(RuntimeError, match=told):
            coordinator.join()
    assert tasks_of(coordinator).num_restarts == 0


def test_an_exception_that_cannot_be_unpickled_is_told_by_its_name(coordinator):
    class Odd(Exception):
        def __init__(self, a, b):
            super().__init__(f"{a} and {b}")

    def step():
        raise Odd(1, 2)

    coordinator.schedule(step)
    with pytest.raises(RuntimeError, match=r"worker/task:\d raised .*Odd: 1 and 2") as caught:
        coordinator.join()
    assert (
        "Odd cannot be pickled, usually because its __init__ does not pass its arguments to super().__init__"
        in caught.value.__notes__[0]
    )


def test_what_cannot_be_sent_is_refused_and_named_when_it_is_scheduled(coordinator):
    lock = threading.Lock()

    def step():
        return lock

    with pytest.raises(Unsendable, match=r"'lock' of .*step"):
        coordinator.schedule(step)
    with pytest.raises(Unsendable, match=r"argument 1 of .*: .*lock"):
        coordinator.schedule(max, args=(0, {"weights": [lock]}))
    coordinator.join()


def test_a_result_that_cannot_travel_is_an_error_of_its_function(coordinator):
    coordinator.schedule(lambda: {"locks": [threading.Lock()]})
    with pytest.raises(Unsendable, match=r"cannot send the result of .*lambda> back: .*lock.* Return arrays"):
        coordinator.join()


def test_what_cannot_be_called_is_refused(coordinator):
    with pytest.raises(TypeError, match="schedule takes a function, got 3"):
        coordinator.schedule(3)


def test_a_remote_value_is_no_argument(coordinator):
    value = coordinator.schedule(lambda: 1)
    with pytest.raises(ValueError, match=r"`tf\.distribute\.experimental\.coordinator\.RemoteValue` used as an input"):
        coordinator.schedule(len, args=([value],))
    with pytest.raises(Unsendable, match="RemoteValue"):
        coordinator.schedule(value.fetch)


def test_a_coordinator_is_not_sent_to_workers_with_what_refers_to_it(coordinator):
    with pytest.raises(Unsendable, match=r"cannot send a ClusterCoordinator to workers: .* schedule the next call"):
        coordinator.schedule(lambda: coordinator.schedule(len))


# --- loss and return --------------------------------------------------------------------------------------------------


def test_what_a_lost_worker_had_runs_on_another_one(coordinator):
    started = threading.Event()
    ringlet.coordinator.worker_meeting = started
    try:

        def step():
            from ringlet import coordinator as module

            if not module.worker_meeting.is_set():
                module.worker_meeting.set()
                threading.Event().wait(1)
            return "done"

        value = coordinator.schedule(step)
        assert started.wait(5)
        for index in range(2):
            tasks_of(coordinator).lose("worker", index)
        assert value.fetch() == "done"
    finally:
        del ringlet.coordinator.worker_meeting


def test_the_others_go_on_while_a_worker_is_away(coordinator):
    tasks = tasks_of(coordinator)
    tasks.may_restart.clear()
    tasks.lose("worker", 0)
    index = ringlet.coordinator.experimental_get_current_worker_index
    assert {coordinator.schedule(index).fetch() for _ in range(20)} == {1}
    tasks.may_restart.set()
    wait_for(lambda: tasks.num_restarts == 1)


def test_a_function_that_ends_every_worker_is_given_up():
    with coordinator_of(workers=2) as coordinator:
        tasks = tasks_of(coordinator)
        ringlet.coordinator.worker_meeting = tasks
        try:

            def step():
                from ringlet import coordinator as module

                module.worker_meeting.lose("worker", module.get_current_worker_index())

            coordinator.schedule(step)
            with pytest.raises(ringlet.errors.WorkerLostError, match=r"step was running on 8 workers when they exited"):
                coordinator.join()
            assert coordinator.schedule(lambda: 1).fetch() == 1
        finally:
            del ringlet.coordinator.worker_meeting


def test_the_loss_of_a_parameter_server_ends_the_job():
    with coordinator_of(workers=1, ps=2) as coordinator:
        value = coordinator.schedule(lambda: 1)
        assert value.fetch() == 1
        running = coordinator.schedule(time.sleep, args=(1,))
        tasks_of(coordinator).lose("ps", 1)
        with pytest.raises(PSUnavailableError, match="parameter server 1"):
            running.fetch()
        for call in (
            coordinator.join,
            coordinator.done,
            coordinator.join,
            lambda: coordinator.schedule(len, args=("",)),
        ):
            with pytest.raises(PSUnavailableError, match="parameter server 1"):
                call()
        assert value.fetch() == 1


# --- the end ----------------------------------------------------------------------------------------------------------


def test_after_shutdown_nothing_is_scheduled_and_nobody_waits(coordinator):
    running = coordinator.schedule(time.sleep, args=(0.5,))
    values = [coordinator.schedule(lambda: 1) for _ in range(10)]
    begin = time.monotonic()
    coordinator.shutdown()
    coordinator.shutdown()
    assert time.monotonic() - begin < 2
    for value in [running, *values[5:]]:
        with pytest.raises(CancelledError):
            value.fetch()
    calls = (
        coordinator.join,
        coordinator.done,
        lambda: coordinator.schedule(len, args=("",)),
        lambda: coordinator.create_per_worker_resource(list),
        lambda: iter(coordinator.create_per_worker_dataset(lambda: [1])),
    )
    for call in calls:
        with pytest.raises(FailedPreconditionError, match="was shut down"):
            call()
