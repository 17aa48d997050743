"""Values become arrays of the dtypes that TensorFlow 2.21 makes tensors of."""

from __future__ import annotations

import numpy as np
import pytest

import ringlet
from ringlet.compat import tf
from ringlet.compat.tensorflow.conversion import as_array
from ringlet.errors import InvalidArgumentError

# value, dtype and list that TensorFlow's constant gives
CONSTANTS = [
    (3.0, "float32", 3.0),
    (1, "int32", 1),
    (2**40, "int64", 2**40),
    (-(2**31), "int32", -(2**31)),
    (True, "bool", True),
    (1j, "complex128", 1j),
    ([1, 2.5], "float32", [1.0, 2.5]),
    ([[1, 2], [3, 4]], "int32", [[1, 2], [3, 4]]),
    ((1, 2), "int32", [1, 2]),
    (range(3), "int32", [0, 1, 2]),
    ([], "float32", []),
    ([1, True], "int32", [1, 1]),
    (np.float64(3), "float64", 3.0),
    ([np.float64(3)], "float64", [3.0]),
    ([np.float32(3), 1.0], "float32", [3.0, 1.0]),
    ([np.int64(3), 1], "int32", [3, 1]),
    (np.array([1, 2]), "int64", [1, 2]),
    (np.arange(2.0), "float64", [0.0, 1.0]),
    (np.array([1.5], ">f4"), "float32", [1.5]),
    ("text", "object", b"text"),
    (["a", b"bc"], "object", [b"a", b"bc"]),
    (b"ends in zero\0", "object", b"ends in zero\0"),
    ([b"ends in zero\0", b""], "object", [b"ends in zero\0", b""]),
    (np.array(["a", "b"]), "object", [b"a", b"b"]),
    ([np.int8(1), np.int8(2)], "int32", [1, 2]),
    ([np.arange(2), [2, 3]], "int32", [[0, 1], [2, 3]]),
    ([tf.constant(1), 2], "int32", [1, 2]),
    ([tf.constant(1, tf.int64), 2], "int64", [1, 2]),
    ([ringlet.Variable(1.5), 2], "float64", [1.5, 2.0]),
]


@pytest.mark.parametrize(("value", "dtype", "expected"), CONSTANTS)
def test_values_have_tensorflow_s_dtypes(value, dtype, expected):
    array = as_array(value)
    assert (array.dtype, array.tolist()) == (np.dtype(dtype), expected)
    assert array.dtype.isnative


# value, dtype asked for, list
CONVERTED = [
    ([1, 2], "float32", [1.0, 2.0]),
    (3, "float64", 3.0),
    (1, "complex64", 1 + 0j),
    (np.array([1, 2]), "float32", [1.0, 2.0]),
    (np.array([1.5, 2]), "int32", [1, 2]),
    (True, "bool", True),
    (True, "int32", 1),
    ([True, False], "float32", [1.0, 0.0]),
    # what holds nothing holds no numbers and no text
    ([], "object", []),
    ([[], []], "object", [[], []]),
    (np.zeros((2, 0)), "object", [[], []]),
    (np.array([], object), "float32", []),
    (np.array([], "U1"), "int32", []),
]


@pytest.mark.parametrize(("value", "dtype", "expected"), CONVERTED)
def test_values_are_converted_where_a_dtype_is_asked_for(value, dtype, expected):
    array = as_array(value, dtype)
    assert (array.dtype, array.tolist()) == (np.dtype(dtype), expected)


@pytest.mark.parametrize(
    ("value", "dtype"), [(1.5, "int32"), ([1.0], "int32"), (1, "bool"), ("1", "int32"), (1.5, object)]
)
def test_a_number_that_does_not_fit_is_refused(value, dtype):
    with pytest.raises(TypeError, match=r"Cannot convert .* to EagerTensor of dtype"):
        as_array(value, dtype)


@pytest.mark.parametrize("value", [None, {"a": 1}, object(), [None], np.array(["a", 1], object)])
def test_what_is_no_tensor_is_refused(value):
    with pytest.raises(ValueError, match="unsupported type"):
        as_array(value)


@pytest.mark.parametrize("value", [2**63, [2**63, 1], 1e40, [1.0, -1e40]])
def test_a_number_that_no_default_dtype_holds_is_refused(value):
    with pytest.raises(ValueError, match="range"):
        as_array(value)


def test_what_is_infinite_and_what_a_wider_dtype_is_asked_for_is_in_range():
    assert as_array(1e40, "float64") == 1e40
    assert as_array(float("inf")) == np.inf


def test_tensors_of_a_list_are_of_one_dtype_which_the_rest_takes():
    with pytest.raises(TypeError, match="int32 and float32 cannot be combined"):
        as_array([tf.constant(1), tf.constant(1.5)])
    with pytest.raises(TypeError, match="dtype int32"):
        as_array([tf.constant(1), 2.5])


def test_the_remedy_is_one_that_helps():
    with pytest.raises(TypeError, match=r"use tf\.cast\(value, tf\.int32\)"):
        as_array(1.5, "int32")
    with pytest.raises(TypeError, match="dtype string: convert text to numbers"):
        as_array(1, object)


def test_rows_of_different_lengths_are_refused():
    with pytest.raises(InvalidArgumentError, match="non-rectangular"):
        as_array([[1], [2, 3]])


def test_a_variable_is_read():
    assert as_array(ringlet.Variable([1.5, 2.5])).tolist() == [1.5, 2.5]


@pytest.mark.parametrize("convert", [tf.constant, tf.convert_to_tensor])
def test_tensors_without_elements_keep_their_dtype(convert):
    assert convert([], tf.string).dtype == tf.string
    with pytest.raises((TypeError, ValueError), match="float32"):
        convert(tf.constant([]), tf.string)
    with pytest.raises((TypeError, ValueError), match="string"):
        convert(tf.constant([], tf.string), tf.float32)
