"""tf.errors has the classes that ringlet raises, so that a program's handlers see them."""

from __future__ import annotations

import pytest

import ringlet
from ringlet.compat import tf


def test_the_end_of_a_dataset_is_an_error_of_tensorflow_s_name():
    with pytest.raises(tf.errors.OutOfRangeError):
        iter(tf.data.Dataset.range(0)).get_next()


def test_a_wrong_argument_is_an_error_of_tensorflow_s_name():
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.constant([1.0]) + tf.constant([1])


def test_every_class_of_a_common_name_is_there():
    for name in ringlet.errors.__all__:
        if name in dir(tf.errors):
            assert getattr(tf.errors, name) is getattr(ringlet.errors, name)


def test_the_loss_of_any_process_is_unavailable():
    assert issubclass(ringlet.errors.WorkerLostError, tf.errors.UnavailableError)
    assert issubclass(ringlet.errors.PSUnavailableError, tf.errors.UnavailableError)
