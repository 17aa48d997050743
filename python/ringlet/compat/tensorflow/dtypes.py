"""TensorFlow's dtypes as NumPy dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringlet.values.value_conversion import as_dtype as ringlet_dtype

DType = np.dtype

# TensorFlow's dtype names -> names in NumPy or ml_dtypes. Text is stored as bytes objects.
DTYPES = {
    **{name: name for name in ("bfloat16", "bool", "complex64", "complex128", "float16", "float32", "float64")},
    **{name: name for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")},
    "double": "float64",
    "half": "float16",
    "string": "object",
}


def as_dtype(type_value: Any) -> np.dtype[Any]:
    """Return the NumPy dtype for a dtype, type or name.

    Parameters
    ----------
    type_value : dtype-like
        A dtype, a type (`float` is float32, as in TensorFlow) or a name.

    Returns
    -------
    dtype

    Raises
    ------
    TypeError
        If `type_value` is not a dtype, or is `int`, `str` or `bytes`.

    Examples
    --------
    >>> as_dtype("half"), as_dtype(float)
    (dtype('float16'), dtype('float32'))
    """
    if type_value is float:
        return np.dtype(np.float32)
    if type_value is int:
        raise TypeError("Cannot convert the type int to a TensorFlow DType. Use tf.int32 or tf.int64.")
    if type_value is None or type_value in (str, bytes):
        raise TypeError(f"Cannot convert {type_value!r} to a TensorFlow DType. Use tf.string for text.")
    return ringlet_dtype(DTYPES.get(type_value, type_value) if isinstance(type_value, str) else type_value)


def dtype_name(dtype: np.dtype[Any]) -> str:
    """Return TensorFlow's name for a dtype."""
    return "string" if dtype.kind == "O" else dtype.name
