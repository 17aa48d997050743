"""Bytes of several workers, one behind the other in an array, and apart again."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["pack", "unpack"]

_HEAD_BYTES = 8


def pack(data: bytes) -> NDArray[np.uint8]:
    """Give bytes as an array that tells how many they are.

    Examples
    --------
    >>> unpack(np.concatenate([pack(b"one"), pack(b"")]))
    [b'one', b'']
    """
    return np.frombuffer(len(data).to_bytes(_HEAD_BYTES, "little") + data, np.uint8)


def unpack(joined: NDArray[Any]) -> list[bytes]:
    """Give the bytes that are one behind the other in an array, as :func:`pack` made its parts.

    Examples
    --------
    >>> unpack(pack(b"alone"))
    [b'alone']
    """
    data = joined.tobytes()
    parts = []
    begin = 0
    while begin < len(data):
        begin += _HEAD_BYTES
        end = begin + int.from_bytes(data[begin - _HEAD_BYTES : begin], "little")
        parts.append(data[begin:end])
        begin = end
    return parts
