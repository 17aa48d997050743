"""tf.function runs eagerly, and answers with tensors."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import ringlet
from ringlet.compat import tf


def test_it_takes_what_ringlet_function_takes():
    assert [*inspect.signature(tf.function).parameters] == [*inspect.signature(ringlet.function).parameters]


def test_numbers_and_arrays_of_an_answer_are_tensors():
    @tf.function(jit_compile=True)
    def f():
        return 1.0, [2, np.arange(2)], {"text": "a"}, None

    one, (two, array), texts, nothing = f()
    assert [type(x) for x in (one, two, array, texts["text"])] == [tf.Tensor] * 4
    assert [x.dtype for x in (one, two, array)] == [tf.float32, tf.int32, tf.int64]
    assert nothing is None


def test_objects_of_an_answer_stay_what_they_are():
    marker = object()
    assert tf.function(lambda: marker)() is marker


@pytest.mark.parametrize("kind", ["plain", "mirrored", "on read", "written"])
def test_a_variable_that_is_returned_is_a_tensor_of_its_value(kind):
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        mirrored = tf.Variable(1.0)
        on_read = tf.Variable(
            0.5, synchronization=tf.VariableSynchronization.ON_READ, aggregation=tf.VariableAggregation.SUM
        )
    variable = {"plain": tf.Variable(1.0), "mirrored": mirrored, "on read": on_read}.get(kind)
    give = (lambda: mirrored.assign(1.0)) if variable is None else lambda: variable
    alone, nested = tf.function(give)(), tf.function(lambda: {"a": [give()]})()
    assert [type(value) for value in (alone, nested["a"][0])] == [tf.Tensor, tf.Tensor]
    assert alone.numpy() == nested["a"][0].numpy() == 1.0
    if variable is not None:
        variable.assign(3.0)
    assert alone.numpy() == 1.0


def test_a_per_replica_comes_back_as_another_one_of_tensors():
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    given = strategy.run(lambda: tf.distribute.get_replica_context().replica_id_in_sync_group)
    values, three = tf.function(lambda x: [x, 3])(given)
    assert type(values) is type(given)
    assert values is not given
    assert [type(part) for part in values.values] == [tf.Tensor, tf.Tensor]
    assert ([part.numpy() for part in values.values], three.numpy()) == ([0, 1], 3)


def test_arguments_come_as_they_are_given():
    seen = []
    tf.function(lambda x, y: seen.append((x, y)))(2.5, y="text")
    assert seen == [(2.5, "text")]


@tf.function(input_signature=[tf.TensorSpec([None], tf.float32), tf.TensorSpec([], tf.int32)])
def scaled(x, factor):
    return x, factor


@pytest.mark.parametrize("call", [lambda: scaled([1, 2], 3), lambda: scaled(factor=3, x=np.array([1, 2]))])
def test_arguments_become_the_tensors_of_the_signature(call):
    x, factor = call()
    assert (x.dtype, x.numpy().tolist(), factor.dtype) == (tf.float32, [1.0, 2.0], tf.int32)


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (([1.0], 1.5), "Can not cast 1.5"),
        ((tf.constant([1]), 1), "tf.cast"),
        (([[1.0]], 1), "of the input_signature"),
        (([1.0], 1, 2), "takes 2 arguments"),
    ],
)
def test_arguments_that_are_not_of_the_signature_are_refused(args, told):
    with pytest.raises(TypeError, match=told):
        scaled(*args)


def test_nests_of_a_signature_are_followed():
    @tf.function(input_signature=[{"x": tf.TensorSpec(2), "rest": [tf.TensorSpec([])]}])
    def f(batch):
        return batch

    found = f({"x": [1, 2], "rest": (5,)})
    assert (found["x"].dtype, found["rest"][0].dtype) == (tf.float32, tf.float32)


def test_the_end_of_an_iterator_that_it_reads_is_out_of_range():
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    iterator = iter(strategy.experimental_distribute_dataset(tf.data.Dataset.range(2).batch(2)))

    @tf.function
    def step(iterator):
        return strategy.run(lambda x: x, args=(next(iterator),))

    step(iterator)
    with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence"):
        step(iterator)


def test_methods_are_bound():
    class Model:
        @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
        def __call__(self, x):
            return x * 2.0

    assert Model()(tf.constant(1.5)).numpy() == 3.0
