"""Serialization of arrays as examples (``tf.train.Example``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ringlet import _core
from ringlet.data.readers.example_features import BYTES, FLOAT, INT64, NONE
from ringlet.errors import InvalidArgumentError


def serialize_example(features: Mapping[str, Any]) -> bytes:
    """Serialize named values as a ``tf.train.Example``, for `TFRecordWriter`.

    Parameters
    ----------
    features : dict
        For each name, a value, or an array, list or tuple of values: integers and bools become int64, floats become
        float32, ``bytes`` are unchanged, and text is encoded as UTF-8. Arrays lose their shape, which examples cannot
        hold. None and empty lists become a feature without a kind, which is treated as missing; an empty array has the
        kind of its dtype.

    Returns
    -------
    bytes
        The features in order.

    Raises
    ------
    TypeError
        If a value is of an unsupported type.
    InvalidArgumentError
        If an integer does not fit into int64.

    Notes
    -----
    float64 values lose digits. To keep all digits, write ``array.tobytes()``.

    Examples
    --------
    >>> from ringlet.data import decode_example
    >>> decode_example(serialize_example({"image": b"...", "size": np.array([[2, 3]]), "weight": 0.5}))
    {'image': [b'...'], 'size': array([2, 3]), 'weight': array([0.5], dtype=float32)}
    """
    return _core.write_example([(name, *_kind_and_values(name, value)) for name, value in features.items()])


def _kind_and_values(name: str, value: Any) -> tuple[int, Any]:
    if isinstance(value, (bytes, str)):
        return BYTES, (_text(value),)
    if value is None or (isinstance(value, (list, tuple)) and not value):
        return NONE, ()
    if isinstance(value, (list, tuple)) and isinstance(value[0], (bytes, str)):
        return BYTES, tuple(_text(item, name) for item in value)
    array = np.asarray(value)
    if array.dtype.kind in "US":
        array = np.asarray(value, object)  # NumPy has converted numbers among the text to text
    if array.dtype.kind == "O" and any(isinstance(item, (bytes, str)) for item in array.flat):
        return BYTES, tuple(_text(item, name) for item in array.ravel().tolist())
    if array.dtype.kind in "biu":
        if array.dtype.kind == "u" and array.size and int(array.max()) >= 2**63:
            raise InvalidArgumentError(
                f"features[{name!r}] holds {int(array.max())}, but the maximum of int64 is {2**63 - 1}"
            )
        return INT64, np.ascontiguousarray(array.ravel(), np.int64)
    if array.dtype.kind == "f" or array.dtype.name == "bfloat16":
        return FLOAT, np.ascontiguousarray(array.ravel(), np.float32)
    raise TypeError(
        f"the values of an example must be integers, floats, bytes or text, but features[{name!r}] is {value!r}. "
        "Convert it to bytes."
    )


def _text(value: Any, name: str = "") -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    raise TypeError(f"features[{name!r}] must not mix text with other values, got {value!r}")
