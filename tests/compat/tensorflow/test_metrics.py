"""Metrics: means and sums over steps and replicas, as in Keras 3."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.compat import tf


def test_values_are_weighted():
    mean = tf.metrics.Mean()
    assert mean.result().numpy() == 0
    mean.update_state([1.0, 3.0])
    assert mean(5.0, sample_weight=2.0).numpy() == 3.5
    mean.update_state([[1, 2], [3, 4]], sample_weight=[[0], [1]])
    assert mean.result().numpy() == pytest.approx((4 + 10 + 7) / 6)
    assert mean.result().dtype == tf.float32
    mean.reset_state()
    assert [variable.numpy() for variable in mean.variables] == [0, 0]


def test_the_result_is_that_of_all_replicas():
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        loss = tf.metrics.Mean(name="loss", dtype=tf.float64)

    def step():
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        loss.update_state([float(replica)] * (int(replica) + 1))
        return loss.result()

    seen = strategy.experimental_local_results(strategy.run(step))
    assert [float(x) for x in seen] == [0.0, 1.0]  # of the replica
    assert loss.result().numpy() == pytest.approx(2 / 3)
    with strategy.scope():
        loss.reset_state()
    assert loss.result().numpy() == 0


def test_they_have_their_names_of_keras_too():
    assert tf.keras.metrics.Mean is tf.metrics.Mean
    assert [tf.metrics.Mean().name, tf.metrics.RootMeanSquaredError().name] == ["mean", "root_mean_squared_error"]
    assert tf.metrics.BinaryAccuracy(name="hits", dtype=tf.float64).result().dtype == tf.float64


def test_a_row_counts_once():
    mean = tf.metrics.Mean()
    mean.update_state([[1.0, 3.0, 5.0, 7.0], [0.0, 0.0, 0.0, 0.0]])
    assert mean(10.0).numpy() == pytest.approx((4 + 0 + 10) / 3)
    mean.reset_state()
    assert mean([[1.0, 3.0], [5.0, 7.0]], sample_weight=[1.0, 3.0]).numpy() == pytest.approx((2 + 3 * 6) / 4)
    total = tf.metrics.Sum()
    assert total([1, 3, 5, 7], sample_weight=[1, 1, 0, 0]).numpy() == 4
    assert total([[1.0, 2.0], [3.0, 4.0]], sample_weight=[1.0, 2.0]).numpy() == 4 + 3 + 14
    assert [variable.numpy() for variable in total.variables] == [21]
    total.reset_state()
    assert (total.result().numpy(), total.result().dtype) == (0, tf.float32)


COLUMNS = [[1], [2], [3], [4]], [[0], [2], [3], [4]]
BITS = [[1], [1], [0], [0]], [[0.98], [1], [0], [0.6]]
ROWS = [[0.1, 0.9, 0.8], [0.05, 0.95, 0]]
ERRORS = [[0, 1], [0, 0]], [[1, 1], [0, 0]]


@pytest.mark.parametrize(
    ("name", "values", "weights", "expected", "weighted"),
    [  # the examples of Keras' documentation, and other shapes of the same values
        ("Accuracy", COLUMNS, [1, 1, 0, 0], 0.75, 0.5),
        ("Accuracy", ([1, 2, 3, 4], [0, 2, 3, 4]), [1, 1, 0, 0], 0.75, 0.5),
        ("Accuracy", ([1, 2, 3, 4], COLUMNS[1]), [[1], [1], [0], [0]], 0.75, 0.5),
        ("BinaryAccuracy", BITS, [1, 0, 0, 1], 0.75, 0.5),
        ("CategoricalAccuracy", ([[0, 0, 1], [0, 1, 0]], ROWS), [0.7, 0.3], 0.5, 0.3),
        ("SparseCategoricalAccuracy", ([[2], [1]], ROWS), [0.7, 0.3], 0.5, 0.3),
        ("SparseCategoricalAccuracy", ([2.0, 1.0], ROWS), [0.7, 0.3], 0.5, 0.3),
        ("MeanSquaredError", ERRORS, [1, 0], 0.25, 0.5),
        ("MeanAbsoluteError", ERRORS, [1, 0], 0.25, 0.5),
        ("RootMeanSquaredError", ERRORS, [1, 0], 0.5, 0.5**0.5),
    ],
)
def test_labels_and_predictions(name, values, weights, expected, weighted):
    metric = getattr(tf.metrics, name)()
    assert metric(*map(tf.constant, values)).numpy() == pytest.approx(expected)
    assert metric.result().dtype == tf.float32
    metric.reset_state()
    metric.update_state(*values, sample_weight=weights)
    assert metric.result().numpy() == pytest.approx(weighted)


def test_each_label_of_a_vector_counts():
    accuracy = tf.metrics.Accuracy()
    accuracy.update_state([1, 2, 3], [1, 2, 3])
    assert accuracy([1], [0]).numpy() == 0.75


def test_integers_do_not_overflow():
    assert tf.metrics.MeanSquaredError()(np.uint8([[0]]), np.uint8([[255]])).numpy() == 255**2


def test_the_threshold_of_a_binary_accuracy():
    assert tf.metrics.BinaryAccuracy(threshold=0.7)([[1], [0]], [[0.98], [0.6]]).numpy() == 1


def test_a_metric_of_predictions_combines_replicas():
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        metric = tf.keras.metrics.SparseCategoricalAccuracy()
        total = tf.metrics.Sum()

    def step():
        replica = int(tf.distribute.get_replica_context().replica_id_in_sync_group)
        metric.update_state([2, 1][replica:], ROWS[replica:])
        total.update_state(replica + 1.0)

    strategy.run(step)
    assert metric.result().numpy() == pytest.approx(2 / 3)
    assert total.result().numpy() == 3


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: tf.metrics.Accuracy()([1, 2], [1, 2, 3]), ValueError, ["(2,)", "(3,)", "first"]),
        (lambda: tf.metrics.Accuracy().update_state([1, 2]), TypeError, ["y_pred"]),
        (lambda: tf.metrics.MeanSquaredError()(1.0, 2.0), ValueError, ["()", "dimension"]),
        (lambda: tf.metrics.SparseCategoricalAccuracy()([[0, 1]], [[0.5, 0.5]]), ValueError, ["CategoricalAccuracy"]),
        (lambda: tf.metrics.CategoricalAccuracy()([0], [[0.5, 0.5]]), ValueError, ["SparseCategoricalAccuracy"]),
        (lambda: tf.metrics.BinaryAccuracy(threshold=1), ValueError, ["between 0 and 1, got 1"]),
        (
            lambda: tf.metrics.Accuracy()([1, 2], [1, 2], sample_weight=[1, 2, 3]),
            ValueError,
            ["sample_weight of shape (3,)", "values of shape (2,)"],
        ),
        (lambda: tf.metrics.AUC, AttributeError, ["tf.metrics.Mean"]),
        (lambda: tf.metrics.Acuracy, AttributeError, ["nearest available names: Accuracy"]),
    ],
)
def test_wrong_uses_say_what_to_write(call, kind, words):
    with pytest.raises(kind) as caught:
        call()
    assert [word for word in words if word not in str(caught.value)] == []
