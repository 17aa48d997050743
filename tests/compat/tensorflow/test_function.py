"""tf.function runs eagerly, and answers with tensors."""

from __future__ import annotations

import inspect

import numpy as np

import ringlet
from ringlet.compat import tf


def test_it_takes_what_ringlet_function_takes():
    assert inspect.signature(tf.function).parameters == inspect.signature(ringlet.function).parameters or [
        *inspect.signature(tf.function).parameters
    ] == [*inspect.signature(ringlet.function).parameters]


def test_numbers_and_arrays_of_an_answer_are_tensors():
    @tf.function(jit_compile=True)
    def f():
        return 1.0, [2, np.arange(2)], {"text": "a"}, None

    one, (two, array), texts, nothing = f()
    assert [type(x) for x in (one, two, array, texts["text"])] == [tf.Tensor] * 4
    assert [x.dtype for x in (one, two, array)] == [tf.float32, tf.int32, tf.int64]
    assert nothing is None


def test_objects_of_an_answer_stay_what_they_are():
    variable, marker = tf.Variable(1.0), object()
    assert tf.function(lambda: variable)() is variable
    assert tf.function(lambda: marker)() is marker


def test_arguments_come_as_they_are_given():
    seen = []
    tf.function(lambda x, y: seen.append((x, y)))(2.5, y="text")
    assert seen == [(2.5, "text")]


def test_methods_are_bound():
    class Model:
        @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
        def __call__(self, x):
            return x * 2.0

    assert Model()(tf.constant(1.5)).numpy() == 3.0
