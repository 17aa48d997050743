"""What workers make and keep is theirs; a copy of it can be asked for."""

from __future__ import annotations

import gc
import threading

import pytest

from ringlet.errors import CancelledError, ClosureInputError
from ringlet.ipc.pickle_codec import Unsendable
from tests.coordinator.in_threads import coordinator_of, tasks_of, wait_for


@pytest.fixture
def coordinator():
    with coordinator_of(workers=2) as made:
        yield made


def test_a_function_finds_what_its_worker_has_made(coordinator):
    lists = coordinator.create_per_worker_resource(list)

    def append(mine):
        mine.append(len(mine))

    for _ in range(10):
        coordinator.schedule(append, args=(lists,))
    coordinator.join()
    found = coordinator.fetch(list(lists._values))
    assert sum(map(len, found)) == 10
    assert all(each == list(range(len(each))) for each in found)


def test_what_cannot_travel_cannot_be_fetched(coordinator):
    locks = coordinator.create_per_worker_resource(threading.Lock)
    with pytest.raises(Unsendable, match="lock"):
        coordinator.fetch(locks._values[0])


def test_a_resource_that_cannot_be_made_fails_the_functions_that_take_it(coordinator):
    broken = coordinator.create_per_worker_resource(int, ("text",))
    with pytest.raises(ValueError, match="invalid literal"):
        broken._values[1].fetch()
    coordinator.schedule(len, args=(broken,))
    with pytest.raises(ClosureInputError, match="invalid literal") as caught:
        coordinator.join()
    assert isinstance(caught.value.original_exception, ValueError)


def test_a_worker_that_comes_back_makes_it_again(coordinator):
    tasks = tasks_of(coordinator)
    lists = coordinator.create_per_worker_resource(list, ("ab",))
    first = lists._values[0]
    assert first.fetch() == ["a", "b"]
    tasks.may_restart.clear()
    tasks.lose("worker", 0)
    coordinator.join()
    wait_for(lambda: first._status.name == "ABORTED")
    with pytest.raises(CancelledError, match="The corresponding function is aborted"):
        first.fetch()
    tasks.may_restart.set()
    wait_for(lambda: first._status.name != "ABORTED")
    assert first.fetch() == ["a", "b"]


def test_workers_forget_what_is_gone_here(coordinator):
    from ringlet.coordinator import worker

    class Tracked(list):
        alive = 0

    worker.tracked = Tracked
    try:

        def make():
            from ringlet.coordinator import worker

            worker.tracked.alive += 1
            made = worker.tracked()
            import weakref

            weakref.finalize(made, lambda: setattr(worker.tracked, "alive", worker.tracked.alive - 1))
            return made

        lists = coordinator.create_per_worker_resource(make)
        assert [coordinator.schedule(len, args=(lists,)).fetch() for _ in range(2)] == [0, 0]
        for value in lists._values:
            value._wait()
        assert Tracked.alive == 2
        del lists, value
        gc.collect()
        wait_for(lambda: coordinator.schedule(len, args=("",)).fetch() == 0 and Tracked.alive == 0)
    finally:
        del worker.tracked
