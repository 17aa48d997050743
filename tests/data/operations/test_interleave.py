"""Datasets that a function makes, in turn."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from ringlet.data import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Dataset
from ringlet.errors import InvalidArgumentError

SIZES = Dataset.from_tensor_slices(np.array([3, 1, 0, 4, 2, 5]))


def tens(n):
    return Dataset.range(10 * n, 11 * n)


# cycle_length, block_length: what TensorFlow 2.21 gives, with threads and without
ORDERS = {
    (1, 1): [30, 31, 32, 10, 40, 41, 42, 43, 20, 21, 50, 51, 52, 53, 54],
    (1, 2): [30, 31, 32, 10, 40, 41, 42, 43, 20, 21, 50, 51, 52, 53, 54],
    (2, 1): [30, 10, 31, 32, 40, 20, 41, 21, 42, 43, 50, 51, 52, 53, 54],
    (2, 2): [30, 31, 10, 32, 40, 41, 20, 21, 42, 43, 50, 51, 52, 53, 54],
    (3, 1): [30, 10, 31, 40, 32, 20, 41, 21, 42, 50, 43, 51, 52, 53, 54],
    (3, 2): [30, 31, 10, 32, 40, 41, 20, 21, 50, 51, 42, 43, 52, 53, 54],
}


@pytest.mark.parametrize(
    ("cycle", "block", "calls"),
    [(cycle, block, calls) for cycle, block in ORDERS for calls in (None, -1, *range(1, cycle + 1))],
)
def test_the_order_is_tensorflow_s_for_any_number_of_threads(cycle, block, calls):
    dataset = SIZES.interleave(tens, cycle, block, num_parallel_calls=calls)
    assert [int(x) for x in dataset] == ORDERS[cycle, block]


def test_without_an_order_all_elements_come_once():
    dataset = SIZES.interleave(tens, 3, 2, num_parallel_calls=3, deterministic=False)
    assert sorted(int(x) for x in dataset) == sorted(ORDERS[3, 2])


def test_without_an_order_a_slow_dataset_does_not_hold_up_the_others():
    go = threading.Event()

    def inner(n):
        return Dataset.range(3).map(lambda x: (n == 0 and not go.wait(20)) or 10 * n + x)

    dataset = Dataset.range(2).interleave(inner, 2, num_parallel_calls=2, deterministic=False)
    with iter(dataset) as iterator:
        assert [int(next(iterator)) for _ in range(3)] == [10, 11, 12]
        go.set()
        assert len(list(iterator)) == 3


def test_open_datasets_are_read_at_the_same_time():
    barrier = threading.Barrier(2, timeout=20)

    def inner(n):
        return Dataset.range(2).map(lambda x: barrier.wait() * 0 + n)

    assert [int(x) for x in Dataset.range(2).interleave(inner, 2, num_parallel_calls=2)] == [0, 1, 0, 1]


def test_an_exception_surfaces_in_its_place_for_any_number_of_threads():
    def inner(n):
        if n == 1:
            raise KeyError("one")
        return Dataset.range(3).map(lambda x: 6 // int(x - 1) + n)

    def seen(**keywords):
        iterator, found = iter(Dataset.range(4).interleave(inner, 2, 2, **keywords)), []
        while True:
            try:
                found.append(int(next(iterator)))
            except StopIteration:
                return found
            except (KeyError, ZeroDivisionError) as error:
                found.append(type(error).__name__)

    assert seen() == seen(num_parallel_calls=2)
    assert seen().count("ZeroDivisionError") == 3
    assert seen().count("KeyError") == 1


def test_an_exception_of_the_input_takes_one_turn():
    dataset = Dataset.range(4).map(lambda x: 6 // int(x - 1)).interleave(Dataset.from_tensors, 2)
    iterator = iter(dataset)
    assert next(iterator) == -6
    with pytest.raises(ZeroDivisionError):
        next(iterator)
    assert [int(x) for x in iterator] == [6, 3]


def test_no_thread_is_left_behind():
    def names():
        return [t.name for t in threading.enumerate() if t.name.startswith("ringlet-interleave")]

    dataset = Dataset.range(100).interleave(lambda x: Dataset.range(100), 4, num_parallel_calls=4)
    with iter(dataset) as iterator:
        next(iterator)
    assert names() == []
    dropped = iter(dataset)
    next(dropped)
    del dropped
    deadline = time.monotonic() + 20
    while names() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert names() == []


def test_without_a_cycle_length_the_order_does_not_depend_on_the_machine():
    def threes(x):
        return Dataset.from_tensors(x).repeat(2)

    for calls in (None, 2, -1):
        dataset = Dataset.range(6).interleave(threes, num_parallel_calls=calls)
        assert [int(x) for x in dataset] == [0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 4, 5]


def test_the_cardinality_of_threads_over_an_endless_input_is_infinite():
    endless = Dataset.range(3).repeat()
    assert endless.interleave(Dataset.range, 2, num_parallel_calls=2).cardinality() == INFINITE_CARDINALITY
    assert endless.interleave(Dataset.range, 2).cardinality() == UNKNOWN_CARDINALITY


@pytest.mark.parametrize(
    "keywords",
    [
        {"cycle_length": 0},
        {"cycle_length": -2},
        {"cycle_length": 2, "block_length": 0},
        {"cycle_length": 2, "num_parallel_calls": 0},
        {"cycle_length": 2, "num_parallel_calls": 5},
    ],
)
def test_lengths_and_numbers_of_calls_are_checked(keywords):
    with pytest.raises(InvalidArgumentError):
        Dataset.range(4).interleave(Dataset.range, **keywords)
