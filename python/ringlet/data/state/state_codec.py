"""Binary encoding of states such as results of `save_element`; decoding runs no code.

A packed state is a JSON header followed by the memory of its arrays and bytes, in the order of the header. Dictionaries
are ``{"d": {...}}``, bytes ``{"b": size}``, arrays ``{"a": [dtype, shape]}`` and NumPy scalars ``{"s": dtype}``;
lists, text, numbers, booleans and None are plain JSON.
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from ringlet.data.graph.element_structure import Array
from ringlet.values.value_conversion import as_dtype


def pack(state: Any) -> tuple[bytes, bytes]:
    """Return the header and the memory of a state."""
    parts: list[bytes] = []
    header = json.dumps(_packed(state, parts)).encode()
    return header, b"".join(parts)


def unpack(header: bytes, memory: bytes) -> Any:
    """Decode the result of `pack`, with read-only arrays; raise ValueError if it is invalid."""
    reader = _Reader(memory)
    try:
        state = reader.value(json.loads(header))
    except (KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
        raise ValueError(f"invalid header of a packed state: {error}") from error
    if reader.at != len(memory):
        raise ValueError(f"a packed state has {len(memory)} bytes of array data, but its header describes {reader.at}")
    return state


def _packed(value: Any, parts: list[bytes]) -> Any:
    if isinstance(value, dict):
        return {"d": {key: _packed(child, parts) for key, child in value.items()}}
    if isinstance(value, list):
        return [_packed(child, parts) for child in value]
    if isinstance(value, bytes):
        parts.append(value)
        return {"b": len(value)}
    if not isinstance(value, (np.ndarray, np.generic)):
        return value
    parts.append(value.tobytes())
    return (
        {"s": _name(value.dtype)} if isinstance(value, np.generic) else {"a": [_name(value.dtype), list(value.shape)]}
    )


def _name(dtype: np.dtype[Any]) -> str:
    # dtypes of other packages (ml_dtypes) have no short name.
    name: str = dtype.name if dtype.kind == "V" else dtype.str
    return name


class _Reader:
    """Decoder that reads consecutive parts of the memory."""

    def __init__(self, memory: bytes) -> None:
        self._memory = memory
        self.at = 0

    def value(self, packed: Any) -> Any:
        if isinstance(packed, list):
            return [self.value(child) for child in packed]
        if not isinstance(packed, dict):
            return packed
        ((kind, content),) = packed.items()
        if kind == "d":
            return {key: self.value(child) for key, child in content.items()}
        if kind == "b":
            return self._take(content)
        if kind == "s":
            return self._array(content, [])[()]
        name, shape = {"a": content}[kind]
        return self._array(name, shape)

    def _array(self, name: str, shape: list[int]) -> Array:
        dtype = as_dtype(name)
        if dtype.hasobject or dtype.itemsize == 0:
            raise ValueError(f"dtype {name!r} has Python objects or items of zero bytes, which no state holds")
        if any(size < 0 for size in shape):
            raise ValueError(f"invalid array shape {shape}")
        memory = self._take(dtype.itemsize * math.prod(shape))
        return np.frombuffer(memory, dtype).reshape(shape)

    def _take(self, size: int) -> bytes:
        start, self.at = self.at, self.at + size
        if size < 0 or self.at > len(self._memory):
            raise ValueError(f"cannot read {size} bytes at offset {start} of {len(self._memory)}")
        return self._memory[start : self.at]
