"""tf.Variable makes ringlet's variables, with TensorFlow's dtypes, whose values are tensors."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import ringlet
from ringlet.compat import tf


def strategy():
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def test_every_read_gives_a_tensor():
    v = tf.Variable([1.0, 2.0])
    for found in (v.read_value(), v.value(), v + 1, v[0], v @ v, -v, v == 1.0, next(iter(v))):
        assert isinstance(found, tf.Tensor)
    assert type(v.numpy()) is np.ndarray
    assert type(np.array(v)) is np.ndarray
    assert np.array(v).flags.writeable


def test_a_value_that_was_read_never_changes():
    v = tf.Variable([1.0, 2.0])
    before = v.read_value()
    part = before[1:]
    v.assign([3.0, 4.0])
    del before
    v.assign([5.0, 6.0])
    assert part.tolist() == [2.0]
    assert v.read_value().tolist() == [5.0, 6.0]


def test_a_write_goes_into_the_same_memory_where_nobody_holds_the_value():
    v = tf.Variable(np.zeros(1000))
    address = v.read_value().ctypes.data
    v.assign_add(np.ones(1000))
    assert v.read_value().ctypes.data == address


@pytest.mark.parametrize("synchronization", ["ON_WRITE", "ON_READ"])
def test_mirrored_variables_give_tensors_everywhere(synchronization):
    s = strategy()
    with s.scope():
        v = tf.Variable(
            1.0,
            synchronization=tf.VariableSynchronization[synchronization],
            aggregation=tf.VariableAggregation.SUM,
        )
    inside = s.run(lambda: (v.assign_add(tf.identity(2.0)), v.read_value(), v * 2))
    assert all(isinstance(component, tf.Tensor) for value in inside for component in value.values)
    assert isinstance(v.read_value(), tf.Tensor)
    assert isinstance(s.reduce("MEAN", v, axis=None), tf.Tensor)


def test_every_variable_is_an_instance_under_both_names():
    with strategy().scope():
        mirrored = tf.Variable(1.0)
    for variable in (mirrored, *mirrored.values, tf.Variable(1), ringlet.Variable(1)):
        assert isinstance(variable, tf.Variable)
        assert isinstance(variable, ringlet.Variable)
    assert not isinstance(tf.constant(1.0), tf.Variable)
    assert issubclass(type(mirrored), tf.Variable)


def test_arguments_are_where_tensorflow_has_them():
    v = tf.Variable(1, False, True, None, "step", None, tf.int64)
    assert (v.name, v.dtype, v.trainable) == ("step:0", np.int64, False)
    assert tf.Variable(1.0, dtype=float).dtype == np.float32
    assert tf.Variable(initial_value=lambda: 3).dtype == np.int32
    with pytest.raises(NotImplementedError, match="variable_def"):
        tf.Variable(variable_def=object())
    with pytest.raises(ValueError, match="initial_value"):
        tf.Variable()


@pytest.mark.parametrize("value", [tf.constant(1.5), tf.Variable(1.5), lambda: tf.constant(1.5)])
def test_it_does_not_begin_with_a_tensor_of_another_dtype(value):
    with pytest.raises(ValueError, match=r"requested dtype float64 for Tensor with dtype float32: .*tf\.cast"):
        tf.Variable(value, dtype=tf.float64)
    assert tf.Variable(lambda: np.float32(1.5), dtype=tf.float64).dtype == np.float64


def test_a_callable_that_gives_nothing_is_refused():
    with pytest.raises(ValueError, match=r"convert a value \(None\)"):
        tf.Variable(lambda: None)


def test_text_is_no_value_of_a_variable():
    with pytest.raises(TypeError, match="numbers, bools"):
        tf.Variable("text")


def test_a_copy_gives_tensors_too():
    v = tf.Variable([1.0, 2.0])
    twin = copy.deepcopy(v)
    v.assign([3.0, 4.0])
    assert isinstance(twin.read_value(), tf.Tensor)
    assert twin.read_value().tolist() == [1.0, 2.0]


def test_a_checkpoint_keeps_it(tmp_path):
    v = tf.Variable([1.0, 2.0])
    checkpoint = tf.train.Checkpoint(v=v)
    path = checkpoint.save(str(tmp_path / "ckpt"))
    v.assign([0.0, 0.0])
    checkpoint.restore(path)
    assert isinstance(v.read_value(), tf.Tensor)
    assert v.numpy().tolist() == [1.0, 2.0]
    assert tf.train.latest_checkpoint(str(tmp_path)) == path
