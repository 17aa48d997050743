"""Length-prefixed framing of byte strings, so that several can be concatenated and separated again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_LENGTH_BYTES = 8


def join_frames(parts: Iterable[Any]) -> bytes:
    """Concatenate buffers of bytes, each preceded by its length."""
    return b"".join(piece for part in parts for piece in (len(part).to_bytes(_LENGTH_BYTES, "little"), part))


def split_frames(joined: Any) -> list[bytes]:
    """Return the parts of one output of :func:`join_frames`, or of several concatenated outputs."""
    data = memoryview(joined)
    parts = []
    begin = 0
    while begin < len(data):
        begin += _LENGTH_BYTES
        end = begin + int.from_bytes(data[begin - _LENGTH_BYTES : begin], "little")
        parts.append(bytes(data[begin:end]))
        begin = end
    return parts
