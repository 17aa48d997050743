"""Conversion of Python numbers, lists and text to arrays with TensorFlow's dtypes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringlet.compat.tensorflow.dtypes import as_dtype, dtype_name
from ringlet.compat.tensorflow.operators import DtypeError
from ringlet.errors import InvalidArgumentError
from ringlet.values import IndexedSlices, PerReplica
from ringlet.values.indexed_slices import dense_of

Array = NDArray[Any]

# Types of plain Python values, which have no dtype.
WRITTEN_OUT = (bool, int, float, complex, str, bytes, list, tuple, range)
# Kind of an array built from Python values -> kinds of dtypes to which it can be converted.
_TAKEN = {"b": "biufcV", "i": "iufcV", "u": "iufcV", "f": "fcV", "c": "c", "O": "O", "V": "V"}
_INT32 = np.iinfo(np.int32)


def as_array(value: Any, dtype: Any = None) -> Array:
    """Convert a value to an array with TensorFlow's dtypes; the array may share the memory of the value.

    Python floats become float32, ints become int32 (int64 if too large) and text becomes bytes, in lists too. Arrays
    keep their dtype. Array-like objects, such as a variable or an IndexedSlices, are read.
    """
    wanted = None if dtype is None else as_dtype(dtype)
    if isinstance(value, IndexedSlices):
        return _dense(value, wanted)
    has_array = isinstance(value, (*WRITTEN_OUT, np.generic, np.ndarray)) or hasattr(value, "__array__")
    if not has_array or isinstance(value, PerReplica):
        raise no_tensor(value)
    is_written = isinstance(value, WRITTEN_OUT) and not isinstance(value, np.generic)
    array = _native(_plain(value), value)
    if wanted is None and is_written:
        wanted = _common_dtype(value)
    if wanted is None:
        return _narrowed(array, value) if is_written else array
    if array.dtype == wanted:
        return array
    # An empty array fits any dtype, but an empty tensor of text does not become numbers, nor one of numbers text.
    is_tensor = hasattr(value, "numpy")
    if (is_written or "O" in (array.dtype.kind, wanted.kind)) and (array.size or is_tensor):
        _check_fit(value, array, wanted)
    return array.astype(wanted)


def _dense(slices: IndexedSlices, wanted: np.dtype[Any] | None) -> Array:
    rows = as_array(slices.values)
    if wanted is not None and wanted != rows.dtype:
        raise ValueError(
            f"Incompatible tensor conversion requested to `dtype` {dtype_name(wanted)} for IndexedSlices ({slices!r}) "
            f"with dtype {dtype_name(rows.dtype)}. Convert its values with tf.cast."
        )
    dense: Array = dense_of(IndexedSlices(rows, as_array(slices.indices), slices.dense_shape))
    return dense


def _plain(value: Any) -> Array:
    try:
        return np.asarray(value)
    except ValueError as error:
        raise InvalidArgumentError(f"Can't convert non-rectangular Python sequence to Tensor: {value!r}") from error


def _native(array: Array, value: Any) -> Array:
    """Convert an array to native byte order, and text to bytes objects: NumPy's text dtypes drop trailing nulls."""
    if array.dtype.kind in "OSU":
        return _texts(np.array(value, object) if isinstance(value, WRITTEN_OUT) else array, value)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _texts(source: Array, value: Any) -> Array:
    texts = np.empty(source.size, object)
    texts[:] = [_bytes(item, value) for item in source.ravel().tolist()]
    return texts.reshape(source.shape)


def _bytes(item: Any, value: Any) -> bytes:
    if isinstance(item, str):
        return item.encode()
    if not isinstance(item, bytes):
        raise no_tensor(value if item is value else item)
    return item


def _common_dtype(value: Any) -> np.dtype[Any] | None:
    """Return the common dtype of the tensors and variables in a list; None if the list has none."""
    dtypes = dict.fromkeys(leaf.dtype for leaf in _leaves(value) if hasattr(leaf, "numpy"))
    if len(dtypes) > 1:
        raise DtypeError(
            f"tensors of {' and '.join(map(dtype_name, dtypes))} cannot be combined. Convert them with tf.cast."
        )
    return next(iter(dtypes), None)


def _narrowed(array: Array, value: Any) -> Array:
    """Convert an array of Python numbers to the dtype that TensorFlow gives them."""
    if array.dtype.kind in "iu":
        fits = not array.size or (array.min() >= _INT32.min and array.max() <= _INT32.max)
        if not fits and array.max() > np.iinfo(np.int64).max:
            raise _out_of_range(value, "int64")
        return array.astype(np.int32 if fits else np.int64)
    if array.dtype == np.float64:
        dtypes = [leaf.dtype for leaf in _leaves(value) if hasattr(leaf, "dtype")]
        if not dtypes and array.size and not any(isinstance(leaf, float) for leaf in _leaves(value)):
            raise _out_of_range(value, "int64")  # NumPy returns objects for integers beyond all integer dtypes
        found = np.result_type(*dtypes) if dtypes else np.dtype(np.float32)
        return _as_float32(array, value) if found.kind != "f" or found == np.float32 else array.astype(found)
    return array


def _as_float32(array: Array, value: Any) -> Array:
    with np.errstate(over="ignore"):
        narrow = array.astype(np.float32)
    if np.any(np.isinf(narrow) & ~np.isinf(array)):
        raise _out_of_range(value, "float32")
    return narrow


def _out_of_range(value: Any, dtype: str) -> ValueError:
    return ValueError(
        f"Can't convert Python sequence with a number out of range for {dtype} to Tensor: {value!r}. Pass "
        f"dtype=tf.float64{' if rounding is acceptable' if dtype == 'int64' else ''}"
    )


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def _check_fit(value: Any, array: Array, wanted: np.dtype[Any]) -> None:
    kind = "i" if array.dtype.kind == "u" else array.dtype.kind
    if wanted.kind not in _TAKEN.get(kind, ""):
        name = dtype_name(wanted)
        is_text = "O" in kind + wanted.kind
        remedy = "convert text to numbers first, or numbers to text" if is_text else f"use tf.cast(value, tf.{name})"
        raise DtypeError(f"Cannot convert {value!r} to EagerTensor of dtype {name}: {remedy}")


def no_tensor(value: Any) -> ValueError:
    """Return the error about a value that cannot be converted to a tensor."""
    return ValueError(
        f"Attempt to convert a value ({value!r}) with an unsupported type ({type(value)}) to a Tensor. Pass a number, "
        "text, an array or a list of these."
    )
