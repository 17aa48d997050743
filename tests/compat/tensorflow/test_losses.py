"""Losses: values, weights, reductions, and the share of each replica, as in Keras 3."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ringlet.compat import tf

LABELS, PROBABILITIES = [1, 2], [[0.05, 0.95, 0.0], [0.1, 0.8, 0.1]]
OF_ROWS = [-math.log(0.95), -math.log(0.1)]
ONE_HOT = [[0, 1, 0], [0, 0, 1]]
LOGITS = [[2.0, 0.0, -1.0], [0.0, 0.0, 0.0]]
BITS, SCORES = [[0.0, 1.0], [0.0, 0.0]], [[0.6, 0.4], [0.4, 0.6]]
OF_BITS = [-(math.log(0.4) + math.log(0.4)) / 2, -(math.log(0.6) + math.log(0.4)) / 2]


def softplus(x):
    return math.log1p(math.exp(x))


@pytest.mark.parametrize(
    ("loss", "labels", "predictions", "expected"),
    [
        (tf.losses.SparseCategoricalCrossentropy, LABELS, PROBABILITIES, OF_ROWS),
        (tf.losses.SparseCategoricalCrossentropy, [[1], [2]], PROBABILITIES, OF_ROWS),
        (tf.losses.SparseCategoricalCrossentropy, [0.0, 1.0], [[1.0, 0.0], [1.0, 0.0]], [0, -math.log(1e-7)]),
        (tf.losses.CategoricalCrossentropy, ONE_HOT, PROBABILITIES, OF_ROWS),
        (tf.losses.CategoricalCrossentropy, ONE_HOT, np.float32(PROBABILITIES) * 3, OF_ROWS),
        (tf.losses.BinaryCrossentropy, BITS, SCORES, OF_BITS),
        (tf.losses.MeanSquaredError, [[0.0, 1.0], [0.0, 0.0]], [[1.0, 1.0], [3.0, 1.0]], [0.5, 5]),
        (tf.losses.MeanSquaredError, [1, 2], [[1], [4]], [0, 4]),
    ],
)
def test_the_loss_of_each_row(loss, labels, predictions, expected):
    values = loss(reduction="none")(labels, predictions)
    assert values.dtype == tf.float32
    np.testing.assert_allclose(values, expected, rtol=1e-5, atol=1e-6)
    assert loss(reduction="sum")(labels, predictions).numpy() == pytest.approx(sum(expected), rel=1e-5)
    for mean in (loss(), loss(reduction="mean"), loss(reduction=tf.keras.losses.Reduction.SUM_OVER_BATCH_SIZE)):
        assert mean(labels, predictions).numpy() == pytest.approx(sum(expected) / 2, rel=1e-5)


def test_losses_of_logits():
    bits, logits = [[0.0, 1.0]], [[3.0, -200.0]]
    sparse = tf.losses.SparseCategoricalCrossentropy(from_logits=True, reduction=None)
    normalizer = math.log(sum(math.exp(x) for x in LOGITS[0]))
    np.testing.assert_allclose(sparse([0, 1], LOGITS), [normalizer - 2, math.log(3)], rtol=1e-6)
    dense = tf.losses.CategoricalCrossentropy(from_logits=True, reduction="none")
    np.testing.assert_allclose(dense([[1, 0, 0], [0, 1, 0]], LOGITS), sparse([0, 1], LOGITS), rtol=1e-6)
    binary = tf.losses.BinaryCrossentropy(from_logits=True)
    assert binary(bits, logits).numpy() == pytest.approx((softplus(3) + 200) / 2, rel=1e-6)


def test_labels_are_smoothed():
    loss = tf.losses.CategoricalCrossentropy(label_smoothing=0.3)
    expected = -(0.8 * math.log(0.5) + 0.1 * math.log(0.25) * 2)
    assert loss([[1.0, 0.0, 0.0]], [[0.5, 0.25, 0.25]]).numpy() == pytest.approx(expected, rel=1e-6)
    loss = tf.losses.BinaryCrossentropy(label_smoothing=0.5)
    expected = -(0.75 * math.log(0.8) + 0.25 * math.log(0.2))
    assert loss([[1.0]], [[0.8]]).numpy() == pytest.approx(expected, rel=1e-5)


def test_weights_and_reductions():
    def loss(reduction, weights):
        return tf.losses.MeanSquaredError(reduction)([[0.0], [0.0]], [[1.0], [2.0]], sample_weight=weights)

    assert loss("none", [[3], [0.5]]).numpy().tolist() == [[3], [2]]  # as in Keras, a column stays one
    assert loss("none", [3, 0.5]).numpy().tolist() == [3, 2]
    assert loss("sum", 2.0).numpy() == 10
    assert loss("sum_over_batch_size", [3, 0.5]).numpy() == 2.5
    assert loss("mean_with_sample_weight", [3, 1]).numpy() == 7 / 4
    assert loss("mean_with_sample_weight", [0, 0]).numpy() == 0


@pytest.mark.parametrize(
    ("loss", "labels", "predictions", "weights", "expected"),
    [  # values of Keras 3.15.1; its backends clip probabilities at 1e-7
        (tf.losses.CategoricalCrossentropy(reduction="mean_with_sample_weight"), [[1.0, 0]], [[0.0, 0]], [0.0], 0.0),
        (tf.losses.BinaryCrossentropy(), [[1.0, 0.0]], [[0.0, 0.0]], None, 8.0590477),
        (tf.losses.BinaryCrossentropy(from_logits=True), [[1.0, 0.0]], [[2.0, -3.0]], None, 0.0877577),
        (
            tf.losses.CategoricalCrossentropy(axis=0),
            [[1.0, 0.0], [0.0, 1.0]],
            [[1.0, 3.0], [3.0, 2.0]],
            None,
            1.1512926,
        ),
        (tf.losses.SparseCategoricalCrossentropy(reduction="sum"), [1], [[0.25, 0.75]], 2.0, 0.5753642),
    ],
)
def test_values_agree_with_keras(loss, labels, predictions, weights, expected):
    with np.errstate(invalid="ignore"):
        assert loss(labels, predictions, sample_weight=weights).numpy() == pytest.approx(expected, rel=1e-5)


def test_a_smoothed_label_is_spread_over_the_classes_of_its_axis():
    loss = tf.losses.CategoricalCrossentropy(label_smoothing=0.5, axis=0, reduction="none")
    values = loss([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]], [[0.5] * 3] * 2)
    np.testing.assert_allclose(values, [0.6931472] * 3, rtol=1e-6)  # labels of 0.75 and 0.25


def test_the_mean_is_the_share_of_a_replica():
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

    def step():
        predictions = [[1.0], [3.0]]
        losses = [tf.losses.MeanSquaredError(how)([[0.0], [0.0]], predictions) for how in ("mean", "sum", "none")]
        return tf.nn.compute_average_loss(losses.pop()), *losses

    average, mean, total = strategy.run(step)
    for loss in (average, mean):
        assert strategy.reduce("SUM", loss, axis=None).numpy() == 5
    assert strategy.reduce("SUM", total, axis=None).numpy() == 20


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: tf.losses.MeanSquaredError("auto"), ValueError, ["'auto'", "'sum_over_batch_size'", "'none'"]),
        (lambda: tf.losses.MeanSquaredError(reduction=1), ValueError, ["got 1"]),
        (lambda: tf.losses.MeanSquaredError()([1.0, 2.0], [1.0, 2.0, 3.0]), ValueError, ["(2,)", "(3,)", "first"]),
        (
            lambda: tf.losses.SparseCategoricalCrossentropy()(ONE_HOT, PROBABILITIES),
            ValueError,
            ["(2, 3)", "CategoricalCrossentropy"],
        ),
        (lambda: tf.losses.SparseCategoricalCrossentropy()([1, 3], PROBABILITIES), ValueError, ["[0, 3)", "[1, 3]"]),
        (
            lambda: tf.losses.SparseCategoricalCrossentropy()([1], [0.5]),
            ValueError,
            ["y_pred of shape (1,) must have the shape of y_true, (1,), and a last axis of classes"],
        ),
        (
            lambda: tf.losses.SparseCategoricalCrossentropy(axis=0)(LABELS, PROBABILITIES),
            ValueError,
            ["last axis", "got axis=0"],
        ),
        (
            lambda: tf.losses.SparseCategoricalCrossentropy(ignore_class=-1),
            NotImplementedError,
            ["ignore_class", "sample_weight"],
        ),
        (
            lambda: tf.losses.CategoricalCrossentropy()(LABELS, PROBABILITIES),
            ValueError,
            ["(2,)", "(2, 3)", "SparseCategoricalCrossentropy"],
        ),
        (lambda: tf.losses.BinaryCrossentropy()([[1.0]], SCORES), ValueError, ["(1, 1)", "(2, 2)"]),
        (
            lambda: tf.losses.MeanSquaredError()([[1.0]], [[2.0]], sample_weight=[1.0, 2.0, 3.0]),
            ValueError,
            ["sample_weight of shape (3,)", "one weight for each example"],
        ),
        (
            lambda: tf.losses.MeanSquaredError()([1.0, 2.0], [2.0, 2.0], sample_weight=[1.0, 2.0]),
            ValueError,
            ["sample_weight of shape (2,)", "one example", "y_pred[:, None]"],
        ),
        (lambda: tf.losses.BinaryCrossentropy()(1.0, [0.5]), ValueError, ["y_pred has shape ()", "[prediction]"]),
        (lambda: tf.losses.CategoricalCrossentropy()(1.0, 0.5), ValueError, ["y_pred has shape ()", "[prediction]"]),
        (lambda: tf.losses.MeanSquaredError()("a", [1.0]), ValueError, ["'a'"]),
        (lambda: tf.losses.Huber, AttributeError, ["ringlet has no tf.losses.Huber", "tf.nn"]),
        (lambda: tf.keras.losses.mse, AttributeError, ["tf.nn"]),
        (lambda: tf.losses.MeanSqaredError, AttributeError, ["MeanSquaredError"]),
    ],
)
def test_wrong_uses_say_what_to_write(call, kind, words):
    with pytest.raises(kind) as caught:
        call()
    assert [word for word in words if word not in str(caught.value)] == []
