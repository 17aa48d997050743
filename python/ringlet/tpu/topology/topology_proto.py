"""Codec of ``TopologyProto`` without protobuf.

The message, in Protocol Buffers' wire format (proto3)::

    1  mesh_shape                 repeated int32, packed
    2  num_tasks                  int32
    3  num_tpu_devices_per_task   int32
    4  device_coordinates         repeated int32, packed
    5  tpu_hardware_feature       a message of int32

The parser accepts packed and separate numbers, and fields in any order. Lists that occur more than once are
concatenated; for a number that occurs more than once, the last value is used. Unknown fields are skipped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ringlet.protobuf_wire import BYTES, VARINT, WireError, fields, number_field, packed_field, unpacked

IntArray = np.ndarray[Any, np.dtype[np.int32]]

_MESH_SHAPE, _NUM_TASKS, _NUM_DEVICES, _COORDINATES, _HARDWARE_FEATURE = 1, 2, 3, 4, 5


@dataclass(frozen=True, eq=False)
class TopologyMessage:
    """The unvalidated fields of a message; hardware feature fields are stored by number and not serialized."""

    mesh_shape: IntArray
    num_tasks: int
    num_devices_per_task: int
    device_coordinates: IntArray
    hardware_feature: Mapping[int, int] = field(default_factory=dict)


def serialize(message: TopologyMessage) -> bytes:
    """Serialize a message, byte for byte as protobuf does."""
    return b"".join(
        (
            packed_field(_MESH_SHAPE, message.mesh_shape.tolist()),
            number_field(_NUM_TASKS, message.num_tasks),
            number_field(_NUM_DEVICES, message.num_devices_per_task),
            packed_field(_COORDINATES, message.device_coordinates.tolist()),
        )
    )


def parse(data: bytes) -> TopologyMessage:
    """Parse a message."""
    lists: dict[int, list[int]] = {_MESH_SHAPE: [], _COORDINATES: []}
    numbers = {_NUM_TASKS: 0, _NUM_DEVICES: 0}
    feature: dict[int, int] = {}
    try:
        for number, wire, value, _ in fields(data):
            if isinstance(value, int) and number in lists:
                lists[number].append(value)
            elif isinstance(value, int):
                numbers[number] = _int32(value)
            elif number in lists and wire == BYTES:
                lists[number] += unpacked(value)
            elif number == _HARDWARE_FEATURE and wire == BYTES:
                feature |= {item.number: _int32(item.value) for item in fields(value, depth=2) if item.wire == VARINT}
    except WireError as error:
        raise ValueError(
            f"these {len(data)} bytes are not a serialized TopologyProto: {error}. Pass the result of "
            "Topology.serialized(), or mesh_shape= and device_coordinates=."
        ) from None
    shape, coordinates = (np.array(values, np.int64).astype(np.int32) for values in lists.values())
    return TopologyMessage(shape, numbers[_NUM_TASKS], numbers[_NUM_DEVICES], coordinates, feature)


def _int32(value: Any) -> int:
    value &= 0xFFFFFFFF
    return int(value - (value >> 31 << 32))
