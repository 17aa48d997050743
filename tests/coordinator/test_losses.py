"""Processes are killed at any moment: what was scheduled has its effect, and what was lost is named in time."""

from __future__ import annotations

import gc
import importlib
import os
import random
import re
import signal
import sys
import time
import weakref
from typing import Any

import numpy as np
import pytest

import ringlet
from ringlet.coordinator import ClusterCoordinator, get_current_worker_index
from ringlet.errors import FailedPreconditionError, PSUnavailableError
from ringlet.strategy.parameter_server.parameter_server_client import ParameterServers
from tests.coordinator.in_forks import ForkTasks, Spring, coordinator_of
from tests.processes.harness import descriptors_of, eventually, settled, threads_of

pytestmark = pytest.mark.slow

ROUNDS = 500 if os.environ.get("RINGLET_CI_NIGHTLY") else 50
CALLS = 20


@pytest.fixture(scope="module")
def spring():
    made = Spring()
    yield made
    made.close()


def test_every_closure_has_its_effect_and_its_result_however_many_workers_are_killed(spring):
    chance = random.Random(11)
    with coordinator_of(spring, workers=3, ps=2) as coordinator:
        with coordinator.strategy.scope():
            counts = ringlet.Variable(np.zeros((CALLS, 3)))
        tasks = coordinator.strategy.extended._cluster()

        def step(i, seconds):
            time.sleep(seconds)
            counts.scatter_add(ringlet.IndexedSlices(np.ones((1, 3)), np.array([i])))
            return i * i

        for number in range(ROUNDS):
            values = [coordinator.schedule(step, args=(i, chance.choice([0, 0.001]))) for i in range(CALLS)]
            time.sleep(chance.random() * 0.01)
            tasks.kill("worker", chance.randrange(3))
            coordinator.join()
            assert coordinator.fetch(values) == [i * i for i in range(CALLS)]
            found = np.asarray(counts)
            assert found.min() >= number + 1, "a closure has had no effect"
            assert (found == found[:, :1]).all(), "a row is half written"
        # A closure runs again only if it was running, or had run unheard, when its worker was killed.
        assert found[:, 0].sum() <= ROUNDS * CALLS * 1.5


def test_iterators_begin_anew_on_a_worker_that_comes_back(spring):
    with coordinator_of(spring, workers=1, ps=1) as coordinator:
        iterator = iter(coordinator.create_per_worker_dataset(ringlet.data.Dataset.range(100)))
        tasks = coordinator.strategy.extended._cluster()
        for _ in range(3):
            assert [int(coordinator.schedule(next, args=(iterator,)).fetch()) for _ in range(3)] == [0, 1, 2]
            tasks.kill("worker", 0)


def test_a_parameter_server_that_is_killed_is_named_within_a_second_and_the_rest_ends_in_two(spring):
    with coordinator_of(spring, workers=2, ps=2) as coordinator:
        coordinator.schedule(time.sleep, args=(30,))
        value = coordinator.schedule(time.sleep, args=(30,))
        tasks = coordinator.strategy.extended._cluster()
        tasks.kill("ps", 1)
        begin = time.monotonic()
        with pytest.raises(PSUnavailableError, match=r"parameter server 1 .* was killed by SIGKILL") as caught:
            coordinator.join()
        assert time.monotonic() - begin < 1
        assert caught.value.task_index == 1
        with pytest.raises(PSUnavailableError):
            value.fetch()
        coordinator.shutdown()
        assert time.monotonic() - begin < 3


def test_shutdown_takes_two_seconds_at_most_while_workers_come_and_go(spring):
    with coordinator_of(spring, workers=2, ps=1) as coordinator:
        tasks = coordinator.strategy.extended._cluster()
        for _ in range(4):
            coordinator.schedule(time.sleep, args=(30,))
        tasks.kill("worker", 0)
        begin = time.monotonic()
        coordinator.shutdown()
        assert time.monotonic() - begin < 2


def test_a_worker_that_is_killed_while_nothing_runs_is_replaced(spring):
    with coordinator_of(spring, workers=1, ps=1) as coordinator:
        tasks = coordinator.strategy.extended._cluster()
        first = tasks.pid_of("worker", 0)
        assert coordinator.schedule(os.getpid).fetch() == first
        tasks.kill("worker", 0)
        assert coordinator.schedule(os.getpid).fetch() != first
        assert coordinator.schedule(get_current_worker_index).fetch() == 0


def test_a_worker_that_is_stopped_is_lost_when_its_time_is_over(spring, monkeypatch):
    monkeypatch.setenv("RINGLET_TIMEOUT_SECONDS", "0.2")
    with coordinator_of(spring, workers=1, ps=1) as coordinator:
        stopped = coordinator.schedule(os.getpid).fetch()
        os.kill(stopped, signal.SIGSTOP)
        try:
            assert coordinator.schedule(os.getpid).fetch() != stopped
        finally:
            os.kill(stopped, signal.SIGKILL)


def records_of(caplog, count):
    assert eventually(lambda: len(caplog.records) >= count, seconds=10)
    return [record.getMessage() for record in caplog.records]


def test_a_function_that_runs_long_is_named_with_the_lines_that_it_executes(spring, monkeypatch, caplog):
    monkeypatch.setenv("RINGLET_STALL_SECONDS", "0.3")
    with coordinator_of(spring, workers=1, ps=1) as coordinator:

        def load_batch():
            time.sleep(3)

        coordinator.schedule(load_batch)
        coordinator.join()
        named, described = records_of(caplog, 2)
        place = r"the main thread is in test_a_function_\w+ \(\S*test_losses.py:\d+\)"
        assert re.fullmatch(rf".*task:0.* has been running .*load_batch for \d s; in the coordinator, {place}", named)
        assert re.search(r"task:0.*:\n    \S+:\d+ in load_batch", described)
        assert len(caplog.records) == 2


def test_a_worker_that_is_stopped_is_named_as_stopped(spring, monkeypatch, caplog):
    monkeypatch.setenv("RINGLET_STALL_SECONDS", "0.3")
    with coordinator_of(spring, workers=1, ps=1) as coordinator:
        stopped = coordinator.schedule(os.getpid).fetch()
        os.kill(stopped, signal.SIGSTOP)
        value = coordinator.schedule(os.getpid)
        named = records_of(caplog, 1)[0]
        os.kill(stopped, signal.SIGCONT)
        assert value.fetch() == stopped
        assert re.fullmatch(
            r"/job:worker/task:0 has been running getpid for \d+ s; its process is stopped, by a signal or a debugger; "
            r"in the coordinator, the main thread is in eventually \(\S*harness\.py:\d+\)",
            named,
        )


def test_a_function_that_runs_longer_than_an_answer_may_take_is_left_alone(spring, monkeypatch):
    monkeypatch.setenv("RINGLET_TIMEOUT_SECONDS", "0.5")
    with coordinator_of(spring, workers=1, ps=1) as coordinator:
        first = coordinator.schedule(os.getpid).fetch()

        def step():
            time.sleep(0.9)
            return os.getpid()

        assert coordinator.schedule(step).fetch() == first


def test_a_worker_that_comes_back_with_other_code_says_so(tmp_path, monkeypatch):
    module = tmp_path / "step_of_a_job.py"
    module.write_text("def step():\n    return 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    step = importlib.import_module("step_of_a_job").step
    resolver = ringlet.cluster_resolver.LocalClusterResolver(workers=1, ps=1)
    coordinator = ringlet.coordinator.ClusterCoordinator(ringlet.ParameterServerStrategy(resolver))
    try:
        assert coordinator.schedule(step).fetch() == 1
        module.write_text("def step():\n    return 1000\n")
        os.kill(resolver.start().pid_of("worker", 0), signal.SIGKILL)
        coordinator.schedule(step)
        with pytest.raises(FailedPreconditionError, match="step differs between worker 0 and the coordinator"):
            coordinator.join()
    finally:
        coordinator.shutdown()
        del sys.modules["step_of_a_job"]


def test_a_job_that_has_lost_a_parameter_server_leaves_no_memory_and_no_descriptors(spring):
    def lose_one() -> weakref.ref[Any]:
        with coordinator_of(spring, workers=1, ps=1) as coordinator:
            with coordinator.strategy.scope():
                table = ringlet.Variable(np.zeros(1 << 18))
            coordinator.strategy.extended._cluster().kill("ps", 0)
            assert eventually(lambda: has_ended(coordinator))
            for _ in range(3):
                with pytest.raises(PSUnavailableError):
                    coordinator.schedule(table.read_value).fetch()
            with coordinator.strategy.scope(), pytest.raises(PSUnavailableError):
                ringlet.Variable(1.0)
            return weakref.ref(coordinator.strategy)

    lose_one()
    gc.collect()
    before = descriptors_of()
    jobs = [lose_one() for _ in range(3)]
    gc.collect()
    assert [job() for job in jobs] == [None] * 3
    assert eventually(lambda: descriptors_of() == before), f"{before} descriptors before, {descriptors_of()} now"


def test_a_coordinator_that_is_dropped_after_a_loss_ends_with_all_its_threads_and_descriptors(spring):
    def lose_one():
        strategy = ringlet.ParameterServerStrategy(ringlet.cluster_resolver.LocalClusterResolver(1, 1))
        strategy.extended._known_servers = ParameterServers(ForkTasks(spring, 1, 1))
        coordinator = ClusterCoordinator(strategy)
        value = coordinator.schedule(time.sleep, args=(30,))
        strategy.extended._cluster().kill("ps", 0)
        for call in (value.fetch, coordinator.join):
            with pytest.raises(PSUnavailableError):
                call()
        return weakref.ref(coordinator), strategy.extended._cluster()

    first, tasks = lose_one()
    tasks.stop()

    def is_gone(coordinator):
        gc.collect()
        return coordinator() is None

    assert eventually(lambda: is_gone(first))
    descriptors, threads = descriptors_of(), threads_of()
    jobs = [lose_one() for _ in range(3)]
    assert eventually(lambda: all(is_gone(job) for job, _ in jobs))
    for _, tasks in jobs:
        tasks.stop()
    assert eventually(lambda: descriptors_of() <= descriptors and threads_of() <= threads)


def has_ended(coordinator):
    try:
        coordinator.done()
    except (PSUnavailableError, FailedPreconditionError):
        return True
    return False


@pytest.mark.parametrize("kind", ["raised", "lost", "shut down"])
def test_errors_that_are_kept_do_not_keep_the_frames_of_every_raise(spring, kind):
    class Local:
        pass

    def attempt(call):
        local = Local()
        with pytest.raises((ZeroDivisionError, PSUnavailableError, FailedPreconditionError)):
            call()
        return weakref.ref(local)

    with coordinator_of(spring, workers=1, ps=1) as coordinator:
        value = coordinator.schedule(divmod, args=(1, 0))
        with pytest.raises(ZeroDivisionError):
            coordinator.join()
        calls = [value.fetch]
        if kind == "lost":
            coordinator.strategy.extended._cluster().kill("ps", 0)
        elif kind == "shut down":
            coordinator.shutdown()
        if kind != "raised":
            assert eventually(lambda: has_ended(coordinator))
            calls = [coordinator.join, coordinator.done, lambda: coordinator.schedule(os.getpid)]
        for call in calls:
            frames = [attempt(call) for _ in range(5)]
            gc.collect()
            assert sum(frame() is not None for frame in frames) <= 1


def end_by_losing_a_worker(coordinator):
    coordinator.strategy.extended._cluster().kill("worker", 0)
    assert coordinator.schedule(os.getpid).fetch() > 0


def end_by_losing_a_parameter_server(coordinator):
    coordinator.strategy.extended._cluster().kill("ps", 0)
    assert eventually(lambda: has_ended(coordinator))


def end_twice(coordinator):
    coordinator.schedule(time.sleep, args=(30,))
    coordinator.shutdown()
    coordinator.shutdown()


def end_by_an_error(coordinator):
    value = coordinator.schedule(divmod, args=(1, 0))
    for call in (value.fetch, coordinator.join):
        with pytest.raises(ZeroDivisionError):
            call()


@pytest.mark.parametrize("end", [end_by_losing_a_worker, end_by_losing_a_parameter_server, end_twice, end_by_an_error])
def test_no_end_of_a_job_leaves_descriptors_threads_or_objects(spring, end):
    def job():
        with coordinator_of(spring, workers=2, ps=1) as coordinator:
            with coordinator.strategy.scope():
                table = ringlet.Variable(np.zeros(8))
            coordinator.schedule(table.assign_add, args=(np.ones(8),)).fetch()
            end(coordinator)
            return weakref.ref(coordinator), weakref.ref(coordinator.strategy), weakref.ref(table)

    job()
    gc.collect()
    descriptors, threads = settled(lambda: (descriptors_of(), threads_of()))
    left = [reference for _ in range(5) for reference in job()]

    def is_clean():
        gc.collect()
        # Idle threads of the core end by themselves: fewer are not a leak.
        return descriptors_of() <= descriptors and threads_of() <= threads and not any(each() for each in left)

    assert eventually(is_clean), (descriptors, descriptors_of(), threads, threads_of(), [each() for each in left])
