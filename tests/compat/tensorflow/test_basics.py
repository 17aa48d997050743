"""Functions of TensorFlow's top level; test_answers.py has more of them."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from ringlet.compat import tf
from ringlet.values import ShardedVariable


def test_identity_gives_another_object_of_the_same_value():
    x = tf.constant([1.0])
    assert tf.identity(x) is not x
    assert tf.convert_to_tensor(x) is x


def test_a_tensor_of_another_dtype_is_refused():
    with pytest.raises(TypeError, match=r"tf\.cast"):
        tf.constant(tf.constant(1.0), tf.int32)
    for value in (tf.constant(1.0), tf.Variable(1.0), ShardedVariable([tf.Variable([1.0])])):
        with pytest.raises(ValueError, match=r"requested dtype int32 for Tensor with dtype float32: .*tf\.cast"):
            tf.convert_to_tensor(value, tf.int32)


def test_variables_are_tensors_to_check_for_and_sharded_ones_are_not():
    assert tf.is_tensor(tf.Variable([1.0]))
    sharded = ShardedVariable([tf.Variable([1.0])])
    assert not tf.is_tensor(sharded)
    assert tf.is_tensor(tf.identity(sharded))


def test_a_cast_to_unsigned_wraps_as_tensorflow_s_does():
    assert tf.cast(-1.5, tf.uint8).numpy() == 255
    wide = tf.cast(np.array([1e19, -1.5, 3.7]), tf.uint64).numpy()
    assert wide.tolist() == [10000000000000000000, 18446744073709551615, 3]


def test_a_constant_is_given_a_shape():
    assert tf.constant([1, 2, 3, 4], shape=[2, 2]).numpy().tolist() == [[1, 2], [3, 4]]
    with pytest.raises(TypeError, match=r"2 elements.*3 elements"):
        tf.constant([1, 2], shape=(3,))


def test_a_shape_may_be_a_number_and_has_no_size_below_zero():
    assert tf.constant(1, shape=2).numpy().tolist() == [1, 1]
    assert tf.reshape([[1, 2]], -1).numpy().tolist() == [1, 2]
    with pytest.raises(ValueError, match=r"tf\.reshape"):
        tf.constant([1, 2], shape=(1, -1))


@pytest.mark.parametrize("shape", [[4, -1], [2, 2], [-1, -1], [2.0, 3.0]])
def test_a_shape_that_elements_do_not_have_is_an_invalid_argument(shape):
    with pytest.raises(tf.errors.InvalidArgumentError, match="shape"):
        tf.reshape(tf.range(6), shape)


@pytest.mark.parametrize("numbers", [(5, 0), (-3,), (0, 3, 0), (0.0, 1.0, -0.5)])
def test_a_range_that_never_arrives_is_an_invalid_argument(numbers):
    with pytest.raises(tf.errors.InvalidArgumentError, match="never reaches"):
        tf.range(*numbers)


def test_a_range_of_nothing_is_empty():
    assert tf.range(5, 5).shape == tf.range(0).shape == (0,)


@pytest.mark.parametrize(("value", "dtype"), [("1", tf.float32), (1, tf.string)])
def test_text_and_numbers_are_not_cast_into_each_other(value, dtype):
    with pytest.raises(tf.errors.UnimplementedError, match=r"x\.numpy\(\)"):
        tf.cast(value, dtype)


def test_a_square_is_one_where_there_is_a_product():
    assert tf.square(tf.constant(200, tf.uint8)).dtype == tf.uint8
    with pytest.raises(tf.errors.InvalidArgumentError, match="strings"):
        tf.square("a")


def test_a_new_axis_is_one():
    assert tf.constant([1, 2])[tf.newaxis].shape == (1, 2)


def test_a_device_is_a_name():
    with tf.device("/cpu:0"), tf.device(None), tf.device(tf.config.LogicalDevice("/device:CPU:1", "CPU")):
        assert tf.constant(1).numpy() == 1
    with pytest.raises(ValueError, match="nonsense"), tf.device("nonsense?"):
        pass


def test_print_writes_values_to_the_standard_error(capsys):
    tf.print("loss", tf.constant(0.5), {"a": [tf.constant([1, 2])], "b": (tf.Variable(3),)})
    tf.print(np.float32(1.5), "x", sep="-", end="!", output_stream=sys.stdout)
    captured = capsys.readouterr()
    assert captured.err == "loss 0.5 {'a': [[1 2]], 'b': (3)}\n"
    assert captured.out == "1.5-x!"


def test_print_shortens_what_is_long(capsys):
    tf.print(tf.range(100), output_stream=sys.stdout)
    tf.print(tf.range(20), summarize=-1, output_stream=sys.stdout)
    short, whole = capsys.readouterr().out.splitlines()
    assert short == "[ 0  1  2 ... 97 98 99]"
    assert "..." not in whole


def test_print_needs_something_to_write_to():
    with pytest.raises(ValueError, match=r"sys\.stdout"):
        tf.print("x", output_stream="file:///tmp/x")


def slices(values=(1.0, 2.0), indices=(0, 2), shape=(4,)):
    return tf.IndexedSlices(tf.constant(values), tf.constant(indices), shape and tf.constant(shape))


@pytest.mark.parametrize(
    "give",
    [
        tf.convert_to_tensor,
        lambda rows: tf.convert_to_tensor(rows, tf.float32),
        lambda rows: tf.convert_to_tensor(rows, dtype_hint=tf.float64),
        lambda rows: tf.Variable(rows).read_value(),
        lambda rows: tf.Variable([0.0] * 4).assign(rows).read_value(),
        lambda rows: tf.constant([0.0] * 4) + rows,
        lambda rows: tf.reshape(rows, [4]),
    ],
)
def test_indexed_slices_become_the_whole_tensor(give):
    tensor = give(slices())
    assert (tensor.dtype, tensor.numpy().tolist()) == (tf.float32, [1.0, 0.0, 2.0, 0.0])


def test_rows_of_one_index_are_added():
    assert tf.convert_to_tensor(slices(indices=(0, 0))).numpy().tolist() == [3.0, 0.0, 0.0, 0.0]
    assert tf.convert_to_tensor(tf.IndexedSlices([1, 2], [0, 0], [2])).dtype == tf.int32


def test_indexed_slices_stay_rows_where_tensorflow_keeps_them():
    rows = tf.cast(slices(), tf.float64)
    assert (type(rows), rows.values.dtype) == (tf.IndexedSlices, tf.float64)
    with pytest.raises(ValueError, match="unsupported type"):
        tf.constant(slices())


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: tf.convert_to_tensor(slices(shape=None)), "IndexedSlices without dense_shape"),
        (
            lambda: tf.convert_to_tensor(slices(), tf.float64),
            "Incompatible tensor conversion requested to `dtype` float64",
        ),
        (lambda: tf.convert_to_tensor(slices(indices=(0, 7))), "= 7 is not in"),
        (lambda: tf.convert_to_tensor(slices(values=(1.0, 2.0, 3.0))), "need values of shape"),
    ],
)
def test_rows_without_a_place_are_refused(call, text):
    with pytest.raises(ValueError, match=text):
        call()
