"""Wire format of Protocol Buffers (proto3), written and read without protobuf.

Fields may appear in any order, and more than once. Zeros and empty lists are not written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

__all__ = ["BYTES", "VARINT", "Field", "WireError", "bytes_field", "fields", "number_field", "packed_field", "unpacked"]

# Wire types: the three lowest bits of a field's tag.
VARINT, FIXED64, BYTES, GROUP, GROUP_END, FIXED32 = range(6)

_SIZES = {FIXED64: 8, FIXED32: 4}
_LONGEST_VARINT, _LONGEST_TAG = 10, 5
_BITS_64 = 2**64 - 1
# Maximum nesting of groups, as in protobuf.
_DEEPEST = 100


class WireError(ValueError):
    """The bytes are not in the wire format; the message gives the position."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(f"at byte {position} {reason}")


class Field(NamedTuple):
    """A field of a message.

    `value` is an int64 for a varint, else bytes. `written` is the encoded field, with its tag.
    """

    number: int
    wire: int
    value: int | bytes
    written: bytes


def number_field(number: int, value: int) -> bytes:
    """Encode an integer; zero is not written."""
    return _varint(number << 3 | VARINT) + _varint(value) if value else b""


def bytes_field(number: int, content: bytes) -> bytes:
    """Encode a string or a message."""
    return _varint(number << 3 | BYTES) + _varint(len(content)) + content


def packed_field(number: int, values: Iterable[int]) -> bytes:
    """Encode a list of integers; an empty list is not written."""
    numbers = list(values)
    try:
        data = bytes(numbers)
    except ValueError:  # some numbers do not fit in a byte
        data = b"\xff"
    if not data.isascii():  # ASCII bytes are one-byte varints
        data = b"".join(map(_varint, numbers))
    return bytes_field(number, data) if data else b""


def _varint(value: int) -> bytes:
    """Encode the low 64 bits: seven bits per byte, lowest first; each byte but the last has the top bit set."""
    value &= _BITS_64
    octets = bytearray()
    while value >= 0x80:
        octets.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*octets, value])


def fields(data: bytes, depth: int = 1) -> Iterator[Field]:
    """Yield the fields of a message at nesting level `depth`; the value of a group is empty. Raises WireError."""
    position = 0
    while position < len(data):
        start = position
        number, wire, position = _tag(data, position)
        value, position = _value(data, position, number, wire, depth)
        yield Field(number, wire, value, data[start:position])


def unpacked(data: bytes) -> list[int]:
    """Decode the integers of a packed list."""
    if data.isascii():
        return list(data)  # each byte is a one-byte varint
    numbers, position = [], 0
    while position < len(data):
        value, position = _read_varint(data, position)
        numbers.append(value)
    return numbers


def _tag(data: bytes, position: int, lowest: int = 1) -> tuple[int, int, int]:
    value, after = _read_varint(data, position, _LONGEST_TAG)
    if value > 0xFFFFFFFF or value >> 3 < lowest:
        raise WireError(after, f"the field number {value >> 3} is invalid")
    return value >> 3, value & 7, after


def _value(data: bytes, position: int, number: int, wire: int, depth: int) -> tuple[int | bytes, int]:
    if wire == VARINT:
        return _read_varint(data, position)
    if wire == BYTES or wire in _SIZES:
        size, position = (_SIZES[wire], position) if wire in _SIZES else _read_varint(data, position, _LONGEST_TAG)
        if size > len(data) - position:
            raise WireError(position, f"a field is truncated: {len(data) - position} of {size} bytes are present")
        return data[position : position + size], position + size
    if wire != GROUP or depth > _DEEPEST:
        raise WireError(position, f"field {number} has the invalid wire type {wire}")
    # The contents of a group are not validated, not even the field numbers.
    while True:
        inner, kind, position = _tag(data, position, lowest=0)
        if (inner, kind) == (number, GROUP_END):
            return b"", position
        _, position = _value(data, position, inner, kind, depth + 1)


def _read_varint(data: bytes, position: int, longest: int = _LONGEST_VARINT) -> tuple[int, int]:
    """Return the int64 in the low 64 bits of a varint, and the position after it."""
    value = 0
    for i, byte in enumerate(data[position : position + longest]):
        value |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            value &= _BITS_64
            return value - (value >> 63 << 64), position + i + 1
    if position + longest > len(data):
        raise WireError(position, "a number is truncated")
    raise WireError(position, f"a number has more than {longest} bytes")
