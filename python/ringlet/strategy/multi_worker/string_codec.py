"""Codec for arrays of text, which collectives do not support: conversion to bytes and back."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringlet.errors import InvalidArgumentError

__all__ = ["text_from_bytes", "text_to_bytes"]


def text_to_bytes(array: NDArray[Any]) -> bytes:
    """Encode an array of strings or bytes, in NumPy's dtypes for them or as Python objects."""
    kinds = {type(item) for item in array.ravel().tolist()}
    if not kinds <= {str, bytes}:
        names = sorted(kind.__name__ for kind in kinds - {str, bytes})
        raise InvalidArgumentError(
            f"cannot exchange an array of {array.dtype} that holds {', '.join(names)} between processes: pass "
            "numbers, strings or bytes"
        )
    items = [item if isinstance(item, str) else {"bytes": item.decode("latin-1")} for item in array.ravel().tolist()]
    return json.dumps([array.dtype.str, array.shape, items]).encode()


def text_from_bytes(data: bytes) -> NDArray[Any]:
    """Decode the output of :func:`text_to_bytes`."""
    dtype, shape, items = json.loads(data)
    array: NDArray[Any] = np.empty(len(items), dtype)
    array[:] = [item if isinstance(item, str) else item["bytes"].encode("latin-1") for item in items]
    shaped: NDArray[Any] = array.reshape(shape)
    return shaped
