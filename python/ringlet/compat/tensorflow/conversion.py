"""What TensorFlow makes of Python's numbers, lists and text: their dtypes are other than NumPy's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringlet.compat.tensorflow.dtypes import as_dtype
from ringlet.errors import InvalidArgumentError

__all__ = ["as_array"]

Array = NDArray[Any]

# Values that are converted as the numbers in them are.
WRITTEN_OUT = (bool, int, float, complex, str, bytes, list, tuple, range)
# Kind of an array that was written out: kinds of dtypes that it may be asked for in.
_TAKEN = {"b": "b", "i": "iufcV", "u": "iufcV", "f": "fcV", "c": "c", "O": "O", "V": "V"}
_INT32 = np.iinfo(np.int32)


def as_array(value: Any, dtype: Any = None) -> Array:
    """Give the array that TensorFlow makes of a value.

    Parameters
    ----------
    value : array-like
        Python's floats become float32, ints int32 (int64 if they do not fit), text bytes; lists of them, too. Arrays
        keep their dtype. What stands for an array, such as a variable, is read.
    dtype : dtype-like, optional
        What to convert to.

    Returns
    -------
    ndarray
        May share the memory of `value`.

    Raises
    ------
    TypeError
        If a number does not fit the dtype, as 1.5 does not fit an integer.
    ValueError
        If there is no array of the value: None, a dictionary, rows of different lengths.

    Examples
    --------
    >>> as_array(3.0), as_array([1, 2]), as_array(3, "float32")
    (array(3., dtype=float32), array([1, 2], dtype=int32), array(3., dtype=float32))
    >>> as_array(["text"])
    array([b'text'], dtype=object)
    """
    wanted = None if dtype is None else as_dtype(dtype)
    if not isinstance(value, (*WRITTEN_OUT, np.generic, np.ndarray)) and not hasattr(value, "__array__"):
        raise _no_tensor(value)
    is_written = isinstance(value, WRITTEN_OUT) and not isinstance(value, np.generic)
    array = _native(_plain(value), value)
    if wanted is None:
        return _narrowed(array, value) if is_written else array
    if array.dtype == wanted:
        return array
    if (is_written and array.size) or "O" in (array.dtype.kind, wanted.kind):
        _check_fit(value, array, wanted)
    return array.astype(wanted)


def _plain(value: Any) -> Array:
    try:
        return np.asarray(value)
    except ValueError as error:
        raise InvalidArgumentError(f"Can't convert non-rectangular Python sequence to Tensor: {value!r}") from error


def _native(array: Array, value: Any) -> Array:
    """The array in native byte order; text as objects that are bytes, because NumPy's own dtype loses zeros."""
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
        raise _no_tensor(value if item is value else item)
    return item


def _narrowed(array: Array, value: Any) -> Array:
    """The array in the dtype of Python's numbers."""
    dtype = array.dtype
    if dtype == np.int64:
        fits = not array.size or (array.min() >= _INT32.min and array.max() <= _INT32.max)
        return array.astype(np.int32) if fits and not any(_has_axes(leaf) for leaf in _leaves(value)) else array
    if dtype == np.float64:
        dtypes = [leaf.dtype for leaf in _leaves(value) if hasattr(leaf, "dtype")]
        found = np.result_type(*dtypes) if dtypes else np.dtype(np.float32)
        return array.astype(found if found.kind == "f" else np.float32)
    return array


def _has_axes(leaf: Any) -> bool:
    return isinstance(leaf, np.ndarray)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def _check_fit(value: Any, array: Array, wanted: np.dtype[Any]) -> None:
    kind = "i" if array.dtype.kind == "u" else array.dtype.kind
    if wanted.kind not in _TAKEN.get(kind, ""):
        raise TypeError(
            f"Cannot convert {value!r} to EagerTensor of dtype {wanted.name}: tf.cast(value, tf.{wanted.name}) "
            "converts numbers that lose something"
        )


def _no_tensor(value: Any) -> ValueError:
    return ValueError(
        f"Attempt to convert a value ({value!r}) with an unsupported type ({type(value)}) to a Tensor: give a number, "
        "text, an array or a list of those"
    )
