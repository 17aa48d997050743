"""Windows of elements of one key."""

from __future__ import annotations

import numpy as np
import pytest

import ringlet
from ringlet.compat import tf
from ringlet.data import UNKNOWN_CARDINALITY, Dataset, TensorSpec
from ringlet.data.distribution.auto_shard import Sharding, auto_shard
from ringlet.data.graph.node import IterationContext
from ringlet.errors import InvalidArgumentError
from tests.data.state_cases import Point, through_a_file


def batched(size):
    return lambda key, window: window.batch(size)


# key of x, size of batches, size of windows: batches of range(10), as TensorFlow 2.21 gives them
CASES = [
    (lambda x: x % 2, 3, 3, [[0, 2, 4], [1, 3, 5], [6, 8], [7, 9]]),
    (lambda x: x % 3, 4, 4, [[0, 3, 6, 9], [1, 4, 7], [2, 5, 8]]),
    (lambda x: x % 2, 2, 5, [[0, 2], [4, 6], [8], [1, 3], [5, 7], [9]]),
    (lambda x: x % 2, 10, lambda key: key + 2, [[0, 2], [1, 3, 5], [4, 6], [8], [7, 9]]),
    (lambda x: (6 - x) % 4 - 2, 9, 9, [[2, 6], [1, 5, 9], [0, 4, 8], [3, 7]]),
    (lambda x: 1, 2, 4, [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]),
]


def grouped(dataset, key, batch, size):
    sizes = {"window_size_func" if callable(size) else "window_size": size}
    return dataset.group_by_window(key, batched(batch), **sizes)


@pytest.mark.parametrize(("key", "batch", "size", "expected"), CASES)
def test_windows_come_as_tensorflow_s(key, batch, size, expected):
    dataset = grouped(Dataset.range(10), key, batch, size)
    assert dataset.cardinality() == UNKNOWN_CARDINALITY
    assert dataset.element_spec == TensorSpec([None], np.int64)
    assert [x.tolist() for x in dataset] == expected


@pytest.mark.parametrize(("key", "batch", "size", "expected"), CASES)
@pytest.mark.parametrize("taken", range(5))
def test_an_iterator_continues_where_its_state_was_taken(key, batch, size, expected, taken):
    dataset = grouped(Dataset.range(10), key, batch, size)
    iterator, other = iter(dataset), iter(dataset)
    for _ in range(min(taken, len(expected))):
        next(iterator)
    other.set_state(through_a_file(iterator.get_state()))
    assert [x.tolist() for x in other] == [x.tolist() for x in iterator]


def test_windows_hold_elements_of_any_structure():
    pairs = Dataset.zip((Dataset.range(6), Dataset.range(6)))
    dataset = pairs.group_by_window(lambda x, y: x % 2, batched(2), 2)
    assert [x.tolist() for x, _ in dataset] == [[0, 2], [1, 3], [4], [5]]


@pytest.mark.parametrize("taken", range(7))
def test_a_window_of_named_tuples_continues_where_its_state_was_taken(taken):
    points = Dataset.range(7).map(lambda x: Point(x, -x))
    dataset = points.group_by_window(lambda point: point.x % 2, lambda key, window: window, 3)
    iterator, other = iter(dataset), iter(dataset)
    for _ in range(taken):
        next(iterator)
    other.set_state(through_a_file(iterator.get_state()))
    assert list(other) == list(iterator)


def test_the_reducing_function_gets_the_key():
    with_key = Dataset.range(4).group_by_window(
        lambda x: x % 2, lambda key, window: Dataset.zip((Dataset.from_tensors(key).repeat(), window)), 2
    )
    assert list(with_key) == [(0, 0), (0, 2), (1, 1), (1, 3)]


def test_the_size_is_asked_for_once_for_a_key():
    keys = []
    dataset = Dataset.range(9).group_by_window(
        lambda x: x % 2, batched(9), window_size_func=lambda key: keys.append(int(key)) or 2
    )
    list(dataset)
    assert keys == [0, 1]


@pytest.mark.parametrize("sizes", [{}, {"window_size": 3, "window_size_func": lambda key: 3}])
def test_one_of_two_sizes_is_needed(sizes):
    with pytest.raises(InvalidArgumentError, match="window_size_func"):
        Dataset.range(3).group_by_window(lambda x: x, batched(1), **sizes)


@pytest.mark.parametrize("size", [0, -1, lambda key: 0])
def test_sizes_must_be_positive(size):
    with pytest.raises(InvalidArgumentError, match="greater than zero"):
        list(grouped(Dataset.range(3), lambda x: x, 2, size))


@pytest.mark.parametrize("key", [1.5, True, "a", [1, 2]])
def test_a_key_is_an_integer(key):
    with pytest.raises(InvalidArgumentError, match="key_func must return one integer"):
        list(Dataset.range(3).group_by_window(lambda x: key, batched(1), 2))


def test_the_reducing_function_must_give_a_dataset():
    with pytest.raises(TypeError, match="reduce_func must return a Dataset"):
        list(Dataset.range(3).group_by_window(lambda x: x, lambda key, window: key, 2))


def test_tensors_are_grouped():
    dataset = tf.data.Dataset.range(6).group_by_window(
        lambda x: x % 2, lambda key, window: window.batch(2).map(lambda batch: batch * 10), 2
    )
    assert [x.numpy().tolist() for x in dataset] == [[0, 20], [10, 30], [40], [50]]


def test_batches_of_windows_are_distributed_to_replicas():
    strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
    dataset = Dataset.range(8).group_by_window(lambda x: x % 2, batched(4), 4)
    steps = [strategy.experimental_local_results(x) for x in strategy.experimental_distribute_dataset(dataset)]
    assert [[part.tolist() for part in parts] for parts in steps] == [[[0, 2], [4, 6]], [[1, 3], [5, 7]]]


def test_workers_read_elements_of_their_own():
    dataset = Dataset.range(8).group_by_window(lambda x: x % 2, batched(4), 4)
    parts = [auto_shard(dataset.node, Sharding(2, index, 2)).node.open(IterationContext()) for index in range(2)]
    assert sorted(int(x) for part in parts for batch in part for x in batch) == list(range(8))
