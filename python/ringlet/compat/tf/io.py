"""``tf.io``: files of records, and the examples in such files."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from ringlet.compat.tensorflow.absent import absent_getter
from ringlet.compat.tensorflow.elements import as_tensors
from ringlet.compat.tensorflow.tensor import Tensor
from ringlet.data import FixedLenFeature, FixedLenSequenceFeature, TFRecordWriter, VarLenFeature
from ringlet.data import parse_example as _parse_example
from ringlet.data import parse_single_example as _parse_single_example
from ringlet.module_names import list_public

__all__ = [
    "FixedLenFeature",
    "FixedLenSequenceFeature",
    "TFRecordWriter",
    "VarLenFeature",
    "parse_example",
    "parse_single_example",
]


def _parser(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a parser that takes tensors and returns a dictionary of tensors, ordered by name as in TensorFlow."""

    @wraps(original)
    def parse(serialized: Any, *args: Any, **kwargs: Any) -> Any:
        found = original(serialized.numpy() if isinstance(serialized, Tensor) else serialized, *args, **kwargs)
        return as_tensors({name: found[name] for name in sorted(found)})

    return parse


parse_example = _parser(_parse_example)
parse_single_example = _parser(_parse_single_example)

__getattr__ = absent_getter("tf.io", __all__)
__dir__ = list_public(__name__)
