"""Codec of ``TopologyProto`` without protobuf.

The message, in Protocol Buffers' wire format (proto3)::

    1  mesh_shape                 repeated int32, packed
    2  num_tasks                  int32
    3  num_tpu_devices_per_task   int32
    4  device_coordinates         repeated int32, packed

Numbers may be packed or not, and fields in any order and repeated: lists are concatenated, single numbers replaced.
Unknown fields are skipped. Zeros and empty lists are not written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["TopologyMessage", "parse", "serialize", "single_numbers"]

IntArray = np.ndarray[Any, np.dtype[np.int32]]

_VARINT, _FIXED64, _BYTES, _GROUP, _GROUP_END, _FIXED32 = range(6)
_MESH_SHAPE, _NUM_TASKS, _NUM_DEVICES, _COORDINATES, _HARDWARE_FEATURE = 1, 2, 3, 4, 5
_LONGEST_VARINT = 10
# Maximum nesting of groups, as in protobuf.
_DEEPEST = 100


@dataclass(frozen=True, eq=False)
class TopologyMessage:
    """The fields of a message, not validated."""

    mesh_shape: IntArray
    num_tasks: int
    num_devices_per_task: int
    device_coordinates: IntArray


def serialize(message: TopologyMessage) -> bytes:
    """Serialize a message, byte for byte as protobuf does."""
    return b"".join(
        (
            _packed(_MESH_SHAPE, message.mesh_shape),
            _single(_NUM_TASKS, message.num_tasks),
            _single(_NUM_DEVICES, message.num_devices_per_task),
            _packed(_COORDINATES, message.device_coordinates),
        )
    )


def _packed(field: int, values: IntArray) -> bytes:
    if not values.size:
        return b""
    data = _varints(values)
    return bytes([field << 3 | _BYTES]) + _varints(np.array([len(data)])) + data


def _single(field: int, value: int) -> bytes:
    return bytes([field << 3 | _VARINT]) + _varints(np.array([value])) if value else b""


def _varints(values: np.ndarray[Any, np.dtype[Any]]) -> bytes:
    """Return varints: seven bits a byte, the lowest first; the top bit marks all bytes of a number but the last."""
    if values.min() >= 0 and values.max() < 0x80:
        return values.astype(np.uint8).tobytes()
    # Negative numbers have 64 bits: ten bytes.
    whole = values.astype(np.int64).astype(np.uint64)
    parts = whole[:, None] >> (7 * np.arange(_LONGEST_VARINT, dtype=np.uint64))
    is_written = parts != 0
    is_written[:, 0] = True
    follows = np.concatenate([is_written[:, 1:], np.zeros((len(parts), 1), np.bool_)], 1)
    octets = (parts & np.uint64(0x7F)).astype(np.uint8) | follows * np.uint8(0x80)
    return bytes(octets[is_written])


def parse(data: bytes) -> TopologyMessage:
    """Parse a message."""
    lists: dict[int, list[IntArray]] = {_MESH_SHAPE: [], _COORDINATES: []}
    numbers = {_NUM_TASKS: 0, _NUM_DEVICES: 0}
    reader = _Reader(data)
    while reader.position < len(data):
        field, kind = reader.tag()
        if field in lists and kind == _BYTES:
            lists[field].append(reader.packed())
        elif field in lists and kind == _VARINT:
            lists[field].append(np.array([_signed(reader.varint())], np.int32))
        elif field in numbers and kind == _VARINT:
            numbers[field] = _signed(reader.varint())
        elif field == _HARDWARE_FEATURE and kind == _BYTES:
            _Reader(reader.take(reader.size())).pass_over()
        else:
            reader.skip(field, kind)
    shape, coordinates = (np.concatenate([np.empty(0, np.int32), *parts]) for parts in lists.values())
    return TopologyMessage(shape, numbers[_NUM_TASKS], numbers[_NUM_DEVICES], coordinates)


def single_numbers(data: bytes, field: int) -> dict[int, int]:
    """Parse the single numbers of a nested message, by field; none if the message is absent."""
    numbers: dict[int, int] = {}
    reader = _Reader(data)
    while reader.position < len(data):
        number, kind = reader.tag()
        if number != field or kind != _BYTES:
            reader.skip(number, kind)
            continue
        inner = _Reader(reader.take(reader.size()))
        while inner.position < len(inner._data):
            number, kind = inner.tag()
            if kind == _VARINT:
                numbers[number] = _signed(inner.varint())
            else:
                inner.skip(number, kind)
    return numbers


def _signed(value: int) -> int:
    """Return the low 32 bits as an int32."""
    value &= 0xFFFFFFFF
    return value - (value >> 31 << 32)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self.position = 0

    def fail(self, reason: str) -> ValueError:
        return ValueError(
            f"these {len(self._data)} bytes are not a serialized TopologyProto: at byte {self.position} {reason}. Pass "
            "the result of Topology.serialized(), or mesh_shape= and device_coordinates=."
        )

    def varint(self, longest: int = _LONGEST_VARINT) -> int:
        value = 0
        for i in range(longest):
            if self.position + i >= len(self._data):
                raise self.fail("a number is truncated")
            byte = self._data[self.position + i]
            value |= (byte & 0x7F) << 7 * i
            if byte < 0x80:
                self.position += i + 1
                return value & 0xFFFFFFFFFFFFFFFF
        raise self.fail(f"a number has more than {longest} bytes")

    def tag(self, lowest: int = 1) -> tuple[int, int]:
        """Return the next field's number and wire type."""
        value = self.varint(5)
        if value > 0xFFFFFFFF or value >> 3 < lowest:
            raise self.fail(f"there is no field {value >> 3}")
        return value >> 3, value & 7

    def size(self) -> int:
        """Return the size in bytes of a list or a text."""
        size = self.varint(5)
        if size > len(self._data) - self.position:
            raise self.fail(f"a field is truncated: {len(self._data) - self.position} of {size} bytes are present")
        return size

    def take(self, size: int) -> bytes:
        if size > len(self._data) - self.position:
            raise self.fail("a number is truncated")
        self.position += size
        return self._data[self.position - size : self.position]

    def packed(self) -> IntArray:
        octets = np.frombuffer(self.take(self.size()), np.uint8)
        if not octets.size or octets.max() < 0x80:
            return octets.astype(np.int32)
        ends = np.flatnonzero(octets < 0x80)
        if not ends.size or ends[-1] != octets.size - 1:
            raise self.fail("the last number of a list is truncated")
        starts = np.concatenate([np.zeros(1, ends.dtype), ends[:-1] + 1])
        lengths = ends - starts + 1
        if lengths.max() > _LONGEST_VARINT:
            raise self.fail(f"a number of a list has more than {_LONGEST_VARINT} bytes")
        place = np.arange(octets.size) - np.repeat(starts, lengths)
        parts = (octets & 0x7F).astype(np.uint64) << (7 * place).astype(np.uint64)
        # An int32 is the low 32 bits of the varint.
        return np.bitwise_or.reduceat(parts, starts).astype(np.uint32).view(np.int32)

    def pass_over(self) -> None:
        while self.position < len(self._data):
            self.skip(*self.tag(), depth=2)

    def skip(self, field: int, kind: int, depth: int = 1) -> None:
        """Skip a field that is unknown or has another wire type."""
        if kind == _VARINT:
            self.varint()
        elif kind in (_FIXED64, _FIXED32):
            self.take(8 if kind == _FIXED64 else 4)
        elif kind == _BYTES:
            self.take(self.size())
        elif kind == _GROUP and depth <= _DEEPEST:
            # The contents of a skipped group are not validated, not even the field numbers.
            while (inner := self.tag(lowest=0)) != (field, _GROUP_END):
                self.skip(*inner, depth + 1)
        else:
            raise self.fail(f"field {field} has the invalid wire type {kind}")
