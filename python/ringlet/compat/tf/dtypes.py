"""``tf.dtypes``: TensorFlow's dtypes as NumPy dtypes."""

from __future__ import annotations

from ringlet.compat.tensorflow.absent import namespace_getter
from ringlet.compat.tensorflow.basics import cast
from ringlet.compat.tensorflow.dtypes import DTYPES, DType, as_dtype
from ringlet.module_names import list_public

_NAMES = {"DType": DType, "as_dtype": as_dtype, "cast": cast}

__all__ = list(_NAMES | DTYPES)

_get = namespace_getter("tf.dtypes", _NAMES)


def __getattr__(name: str) -> object:
    return as_dtype(DTYPES[name]) if name in DTYPES else _get(name)


__dir__ = list_public(__name__)
