"""Calls in threads."""

from __future__ import annotations

import contextvars
import gc
import os
import threading
import time

import pytest

from ringlet.data import AUTOTUNE, Dataset, DistributedDataset
from ringlet.data.graph.thread_map import ThreadMap, count_calls
from ringlet.devices import visible_cores
from ringlet.errors import FailedPreconditionError, InvalidArgumentError

DEADLINE_SECONDS = 30


def wait_until(condition):
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.001)


def threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith(("ringlet-calls", "ringlet-map"))]


@pytest.fixture(autouse=True)
def _no_thread_is_left():
    yield
    if threads():  # which the iterators end that a reference cycle keeps
        gc.collect()
    wait_until(lambda: not threads())


def test_autotune_is_the_number_of_cores_of_the_process():
    assert count_calls(AUTOTUNE) == visible_cores().count
    assert (count_calls(None), count_calls(1), count_calls(7)) == (1, 1, 7)


def test_results_come_in_the_order_of_their_items():
    releases = [threading.Event() for _ in range(3)]
    with ThreadMap(lambda n: releases[n].wait(DEADLINE_SECONDS) and n, 3) as calls:
        for number in range(3):
            calls.put(number)
        for event in reversed(releases):
            event.set()
        assert [calls.take() for _ in range(3)] == [0, 1, 2]


def test_results_come_as_they_are_done_where_order_was_given_up():
    release = threading.Event()
    with ThreadMap(lambda n: n or (release.wait(DEADLINE_SECONDS) and n), 2, is_ordered=False) as calls:
        calls.put(0)
        calls.put(1)
        assert calls.take() == 1
        assert calls.items() == [0]
        release.set()
        assert calls.take() == 0


def test_no_more_calls_run_at_once_than_were_asked_for():
    running, most = [], []

    def function(x):
        running.append(x)
        most.append(len(running))
        time.sleep(0.002)
        running.remove(x)
        return x

    assert [int(x) for x in Dataset.range(40).map(function, num_parallel_calls=3)] == list(range(40))
    assert max(most) == 3


def test_calls_run_at_once():
    barrier = threading.Barrier(3, timeout=DEADLINE_SECONDS)
    dataset = Dataset.range(6).map(lambda x: barrier.wait() * 0 + x, num_parallel_calls=3)
    assert [int(x) for x in dataset] == list(range(6))


def test_an_exception_comes_in_the_place_of_its_result_with_the_number_of_the_element():
    def function(x):
        if x in (1, 4):
            raise KeyError(int(x))
        return x

    iterator = iter(Dataset.range(6).map(function, num_parallel_calls=3))
    assert next(iterator) == 0
    with pytest.raises(KeyError) as caught:
        next(iterator)
    assert "for element 1 of this iteration" in caught.value.__notes__[0]
    assert [int(next(iterator)) for _ in range(2)] == [2, 3]
    with pytest.raises(KeyError, match="4"):
        next(iterator)
    assert [int(x) for x in iterator] == [5]


def test_an_exception_of_the_input_comes_behind_the_results_before_it():
    def function(x):
        if x == 2:
            raise KeyError("input")
        return x

    iterator = iter(Dataset.range(4).map(function).map(lambda x: x, num_parallel_calls=8))
    assert [int(next(iterator)) for _ in range(2)] == [0, 1]
    with pytest.raises(KeyError, match="input"):
        next(iterator)
    assert [int(x) for x in iterator] == [3]


def test_stop_iteration_of_the_function_is_not_the_end():
    iterator = iter(Dataset.range(2).map(lambda x: next(iter(())), num_parallel_calls=2))
    with pytest.raises(InvalidArgumentError, match="raised StopIteration for element 0"):
        next(iterator)


@pytest.mark.parametrize("end", ["close", "drop", "exhaust", "with", "error"])
def test_no_thread_is_left_behind(end):
    def function(x):
        if end == "error" and x == 3:
            raise KeyError
        return x

    iterator = iter(Dataset.range(20).map(function, num_parallel_calls=2))
    next(iterator)
    assert threads()
    if end == "close":
        iterator.close()
        assert not threads()
    elif end == "exhaust":
        list(iterator)
        assert not threads()
    elif end == "with":
        with iterator:
            pass
        assert not threads()
    elif end == "error":
        with pytest.raises(KeyError):
            list(iterator)
    del iterator


def test_a_closed_iterator_has_no_more_elements():
    iterator = iter(Dataset.range(20).map(lambda x: x, num_parallel_calls=2))
    next(iterator)
    iterator.close()
    iterator.close()
    assert list(iterator) == []


def test_the_function_sees_the_context_of_who_asks():
    variable = contextvars.ContextVar("variable", default="unset")
    variable.set("set")
    assert list(Dataset.range(3).map(lambda x: variable.get(), num_parallel_calls=2)) == ["set"] * 3


def test_a_forked_child_is_told_to_make_an_iterator_of_its_own():
    iterator = iter(Dataset.range(20).map(lambda x: x, num_parallel_calls=2))
    next(iterator)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            next(iterator)
        except FailedPreconditionError:
            os.write(write, b"refused")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    assert os.read(read, 100) == b"refused"
    os.close(read)
    iterator.close()


def test_one_order_for_any_number_of_threads():
    def chain(threads_):
        dataset = Dataset.range(50).shuffle(10, seed=3).map(lambda x: x * 2, num_parallel_calls=threads_)
        return [x.tolist() for x in dataset.batch(4, num_parallel_calls=threads_)]

    assert chain(None) == chain(2) == chain(7)


def test_large_batches_of_rows_are_gathered_in_threads():
    from ringlet.data.graph.thread_map import WORTH_A_THREAD_BYTES

    rows = WORTH_A_THREAD_BYTES // 8
    dataset = Dataset.range(3 * rows + 1).shuffle(100, seed=1)
    plain, parallel = dataset.batch(rows), dataset.batch(rows, num_parallel_calls=2)
    expected = [x.sum() for x in Dataset.range(3 * rows + 1).shuffle(100, seed=1).batch(rows)]
    assert [x.sum() for x in parallel] == expected
    assert len(list(plain)) == 4


def _fails(x):
    raise ZeroDivisionError


@pytest.mark.parametrize(
    "make",
    [
        lambda: Dataset.range(9).map(_fails, num_parallel_calls=2),
        lambda: Dataset.range(9).interleave(_fails, num_parallel_calls=2),
        lambda: Dataset.range(9).map(_fails).map(abs, num_parallel_calls=2).interleave(_fails),
        lambda: Dataset.zip((Dataset.range(9).map(_fails), Dataset.range(9).map(abs, num_parallel_calls=2))),
        lambda: DistributedDataset(Dataset.range(9).map(_fails, num_parallel_calls=2).batch(2), 2, uneven="keep"),
    ],
)
def test_an_iterator_dropped_behind_an_exception_leaves_no_thread_to_the_garbage_collector(make):
    before = threading.active_count()
    gc.disable()
    try:
        iterator = iter(make())
        with pytest.raises(ZeroDivisionError):
            next(iterator)
        del iterator
        assert threading.active_count() == before
    finally:
        gc.enable()
