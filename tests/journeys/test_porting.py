"""What a program for TensorFlow meets on its way to Ringlet: each error says what to write."""

from __future__ import annotations

import operator
import re

import pytest

import ringlet
from ringlet.compat import tf

Checkpoint = tf.train.Checkpoint


class Model:
    def __init__(self):
        self.w = tf.Variable(tf.ones([2]))


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (
            lambda: ringlet.distribute,
            AttributeError,
            ["from ringlet.compat import tf", "ringlet.X for tf.distribute.X"],
        ),
        (lambda: tf.keras.metrics.AUC, AttributeError, ["tf.metrics.Mean", "tf.equal(labels, predictions)"]),
        (lambda: tf.metrics.AUC, AttributeError, ["tf.metrics.Mean", "tf.equal(labels, predictions)"]),
        (lambda: tf.losses.Huber, AttributeError, ["tf.nn"]),
        (lambda: tf.Module, AttributeError, ["model=vars(model)"]),
        (lambda: Checkpoint(model=Model()), ValueError, ["Write model=vars(model)"]),
        (lambda: tf.matmul(tf.ones([2, 3]), tf.ones([2, 3])), ValueError, ["(2, 3) and (2, 3)", "transpose_b=True"]),
        (
            lambda: tf.nn.sparse_softmax_cross_entropy_with_logits(tf.ones([2]), tf.ones([2, 3])),
            ValueError,
            ["labels must be integers, got float32", "first argument"],
        ),
        (
            lambda: tf.metrics.Mean().update_state([0, 1], tf.ones([2, 3])),
            ValueError,
            ["sample_weight of shape (2, 3)", "values of shape (2,)"],
        ),
    ],
)
def test_the_error_says_what_to_write(call, kind, words):
    with pytest.raises(kind) as caught:
        call()
    assert [word for word in words if word not in str(caught.value)] == []


def test_the_attributes_of_a_model_are_saved_and_restored(tmp_path):
    model = Model()
    checkpoint = Checkpoint(model=vars(model))
    path = checkpoint.save(str(tmp_path / "ckpt"))
    model.w.assign([3.0, 4.0])
    checkpoint.restore(path).assert_consumed()
    assert model.w.numpy().tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("keras.initializers", "tf.random.normal"),
        ("initializers", "tf.random.normal"),
        ("random_normal_initializer", "tf.random.normal"),
        ("zeros_initializer", "use tf.zeros"),
        ("keras.utils", "tf.random.set_seed"),
        ("keras.losses.MSE", "tf.losses.MeanSquaredError(reduction='none')"),
        ("keras.losses.sparse_categorical_crossentropy", "use a class, as in tf.losses."),
        ("compat.v1.ConfigProto", "delete it, and the argument config"),
    ],
)
def test_the_error_of_an_absent_name_of_a_loop_names_the_function(name, instead):
    with pytest.raises(AttributeError, match=re.escape(instead)):
        operator.attrgetter(name)(tf)
