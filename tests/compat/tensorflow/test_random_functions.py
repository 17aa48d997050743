"""Random tensors: TensorFlow's arguments, NumPy's numbers."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.compat import tf


def test_shapes_and_dtypes_are_as_requested():
    assert tf.random.normal([2, 3]).shape == (2, 3)
    assert tf.random.normal([2], dtype=tf.float64).dtype == tf.float64
    assert tf.random.uniform([4], maxval=3, dtype=tf.int32).dtype == tf.int32
    assert tf.random.uniform([]).shape == ()
    assert tf.random.truncated_normal([3]).dtype == tf.float32
    with pytest.raises(ValueError, match="Must specify maxval"):
        tf.random.uniform([2], dtype=tf.int32)


def test_numbers_are_in_their_range():
    numbers = tf.random.uniform([1000], -2.0, 3.0).numpy()
    assert -2 <= numbers.min() < numbers.max() < 3
    whole = tf.random.uniform([1000], 1, 4, tf.int64).numpy()
    assert set(whole.tolist()) == {1, 2, 3}
    near = tf.random.truncated_normal([1000], mean=10.0, stddev=2.0).numpy()
    assert 6 <= near.min() < near.max() <= 14
    assert abs(tf.random.normal([10000], 5.0).numpy().mean() - 5) < 0.1


def test_a_seed_repeats_the_sequence_and_calls_continue_it():
    tf.random.set_seed(3)
    first, second = tf.random.normal([2]), tf.random.normal([2])
    assert first.numpy().tolist() != second.numpy().tolist()
    tf.random.set_seed(3)
    assert tf.random.normal([2]).numpy().tolist() == first.numpy().tolist()
    tf.random.set_seed(3)
    seeded = [tf.random.uniform([2], seed=seed).numpy().tolist() for seed in (1, 2, -1)]
    assert len({tuple(numbers) for numbers in seeded}) == 3
    tf.random.set_seed(3)
    assert tf.random.uniform([2], seed=1).numpy().tolist() == seeded[0]


def test_rows_are_shuffled_together():
    rows = tf.random.shuffle([[1, 2], [3, 4], [5, 6]], seed=1).numpy()
    assert sorted(rows.tolist()) == [[1, 2], [3, 4], [5, 6]]


def test_each_replica_has_numbers_of_its_own_whatever_the_order_of_threads():
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

    def draw():
        tf.random.set_seed(5)
        results = [strategy.run(lambda: tf.random.normal([3])) for _ in range(2)]
        return [np.asarray(x).tolist() for result in results for x in strategy.experimental_local_results(result)]

    once = draw()
    assert len(set(map(tuple, once))) == 4
    assert draw() == once
