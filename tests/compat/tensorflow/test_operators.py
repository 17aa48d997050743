"""Operators have the dtypes that TensorFlow has them for, and refuse what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.compat import tf
from ringlet.compat.tensorflow.operators import BINARY, UNARY, DtypeError, compute
from ringlet.errors import InvalidArgumentError

# Recorded from TensorFlow 2.21.0, `x op x` of a matrix of one number: what it answers for; for others it raises.
TAKEN = {
    "add": "bfloat16 complex64 float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 string",
    "sub": "bfloat16 complex64 float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64",
    "mul": "bfloat16 bool complex64 float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64",
    "truediv": "bfloat16 complex64 float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64",
    "floordiv": "bfloat16 float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64",
    "mod": "bfloat16 float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64",
    "pow": "bfloat16 complex64 float16 float32 float64 int8 int16 int32 int64",
    "and": "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64",
    "lt": "bfloat16 float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64",
    "neg": "bfloat16 complex64 float16 float32 float64 int8 int16 int32 int64",
    "abs": "bfloat16 complex64 float16 float32 float64 int8 int16 int32 int64",
    "invert": "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64",
}
DTYPES = sorted({dtype for dtypes in TAKEN.values() for dtype in dtypes.split()})


def one(dtype):
    return tf.constant([["a"]]) if dtype == "string" else tf.cast([[1]], dtype)


@pytest.mark.parametrize("name", TAKEN)
@pytest.mark.parametrize("dtype", DTYPES)
def test_an_operator_is_there_for_the_dtypes_that_tensorflow_has_it_for(name, dtype):
    operands = [one(dtype)] * (1 if name in UNARY else 2)
    method = getattr(tf.Tensor, f"__{name}__")
    if dtype in TAKEN[name].split():
        assert type(method(*operands)) is tf.Tensor
    else:
        with pytest.raises(DtypeError, match=f"does not support tensors of {dtype}"):
            method(*operands)


def test_the_remedy_that_is_named_helps():
    with pytest.raises(DtypeError, match=r"tf\.cast\(x, tf\.int32\)"):
        tf.constant([True]) + tf.constant([True])
    assert (tf.cast([True], tf.int32) + tf.cast([True], tf.int32)).numpy().tolist() == [2]


def test_an_error_of_dtypes_is_of_every_class_that_tensorflow_raises():
    for base in (tf.errors.InvalidArgumentError, TypeError, ValueError):
        assert issubclass(DtypeError, base)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: tf.constant([1, 2]) + tf.constant([1, 2, 3]),
        lambda: tf.constant([[1.0, 2.0]]) @ tf.constant([[1.0, 2.0]]),
        lambda: tf.constant([1, 2]) // 0,
        lambda: 1 % tf.constant([1, 0]),
        lambda: tf.constant(2) ** -1,
    ],
)
def test_operands_that_have_no_answer_are_invalid_arguments(wrong):
    with pytest.raises(InvalidArgumentError):
        wrong()


def test_a_product_with_a_tensor_of_bool_is_refused():
    with pytest.raises(InvalidArgumentError, match=r"tf\.cast\(x, tf\.int32\)"):
        tf.constant(3) * tf.constant(True)


def test_floating_numbers_are_divided_by_zero():
    with np.errstate(divide="ignore"):
        assert (tf.constant(1.0) / 0).numpy() == np.inf


def test_a_product_of_matrices_keeps_its_dtype():
    assert (tf.cast([[1.0, 2.0]], tf.bfloat16) @ tf.cast([[1.0], [2.0]], tf.bfloat16)).dtype == tf.bfloat16


def test_what_goes_wrong_names_the_operator():
    with pytest.raises(InvalidArgumentError, match=r"in \*$"):
        compute(*BINARY["mul"], np.zeros(2), np.zeros(3))
