"""TensorFlow's dtypes are NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.compat import tf
from ringlet.compat.tensorflow.dtypes import dtype_name


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("float32", "float32"), ("half", "float16"), ("double", "float64"), ("bool", "bool"), ("string", "object")],
)
def test_a_dtype_is_found_by_its_name(name, dtype):
    for found in (getattr(tf, name), getattr(tf.dtypes, name), tf.as_dtype(name)):
        assert found == np.dtype(dtype)
        assert isinstance(found, tf.DType)


def test_bfloat16_is_that_of_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    assert tf.bfloat16 == ml_dtypes.bfloat16
    assert tf.constant(1.5, tf.bfloat16).numpy() == 1.5


def test_the_type_float_is_float32_and_int_is_refused():
    assert tf.as_dtype(float) == np.float32
    assert tf.constant(1, dtype=float).dtype == np.float32
    with pytest.raises(TypeError, match=r"tf\.int32 or tf\.int64"):
        tf.as_dtype(int)


@pytest.mark.parametrize("nothing", [None, str, bytes])
def test_what_stands_for_no_dtype_is_refused(nothing):
    with pytest.raises(TypeError, match=r"tf\.string"):
        tf.as_dtype(nothing)


def test_a_dtype_is_called_by_tensorflow_s_name():
    assert [dtype_name(tf.as_dtype(name)) for name in ("half", "string")] == ["float16", "string"]
