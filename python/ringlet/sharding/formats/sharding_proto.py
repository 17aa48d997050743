"""OpSharding codec: parses and writes the bytes of XLA's message without protobuf.

The message, in Protocol Buffers' wire format (proto3)::

    1   type                         enum: REPLICATED, MAXIMAL, TUPLE, OTHER, MANUAL, UNKNOWN, UNREDUCED
    3   tile_assignment_dimensions   repeated int64, packed
    4   tile_assignment_devices      repeated int64, packed
    5   tuple_shardings              repeated OpSharding
    6   replicate_on_last_tile_dim   bool
    8   last_tile_dims               repeated enum, packed
    9   iota_reshape_dims            repeated int64, packed
    10  iota_transpose_perm          repeated int32, packed
    11  is_shard_group               bool
    12  shard_group_id               int64
    13  shard_group_type             enum; 0 for as, 1 for like

The parser accepts repeated numbers packed or separate, and fields in any order; the writer uses this order. Unknown
fields are preserved.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Literal, cast

from ringlet.collectives.argument_parsing import shortened
from ringlet.errors import ShardingError
from ringlet.protobuf_wire import BYTES, WireError, bytes_field, fields, number_field, packed_field, unpacked
from ringlet.sharding.formats.iota import Iota
from ringlet.sharding.layout.sharding import TYPES, Sharding
from ringlet.sharding.layout.tile_assignment import MOST_DEVICES, Subgroup

_KINDS = tuple(TYPES)
_TYPE, _DIMENSIONS, _DEVICES, _TUPLE, _REPLICATE, _GROUPS, _RESHAPE, _TRANSPOSE = 1, 3, 4, 5, 6, 8, 9, 10
_IS_SHARD_GROUP, _SHARD_GROUP_ID, _SHARD_GROUP_TYPE = 11, 12, 13
_SHARD_GROUP = (_IS_SHARD_GROUP, _SHARD_GROUP_ID, _SHARD_GROUP_TYPE)
_NUMBERS = (_TYPE, _DIMENSIONS, _DEVICES, _REPLICATE, _GROUPS, _RESHAPE, _TRANSPOSE, *_SHARD_GROUP)
_SHARD_GROUP_TYPES: tuple[Literal["as"], Literal["like"]] = ("as", "like")


def serialize(sharding: Sharding) -> bytes:
    """Serialize a sharding to the same bytes as protobuf; see :meth:`Sharding.serialized`."""
    written = b"".join(_known_fields(sharding)) + sharding.unknown_fields
    return b"".join(item.written for item in sorted(fields(written), key=attrgetter("number")))


def _known_fields(sharding: Sharding) -> Iterator[bytes]:
    yield number_field(_TYPE, _KINDS.index(sharding.kind))
    if sharding.kind == "maximal":
        yield packed_field(_DEVICES, sharding.tile_assignment_devices)
    elif sharding.kind == "tiled":
        is_replicated = sharding.last_tile_dims == ("replicated",)
        iota = None if sharding.lists_devices else sharding.iota
        yield packed_field(_DIMENSIONS, sharding.tile_assignment_dimensions)
        yield packed_field(_DEVICES, () if iota else sharding.tile_assignment_devices)
        yield number_field(_REPLICATE, is_replicated)
        yield packed_field(_GROUPS, () if is_replicated else map(_KINDS.index, sharding.last_tile_dims))
        yield packed_field(_RESHAPE, iota.reshape_dims if iota else ())
        yield packed_field(_TRANSPOSE, iota.transpose_perm if iota else ())
    yield from (bytes_field(_TUPLE, serialize(element)) for element in sharding.elements)
    if sharding.shard_group is not None:
        kind, number = sharding.shard_group
        yield number_field(_IS_SHARD_GROUP, True)
        yield number_field(_SHARD_GROUP_ID, number)
        yield number_field(_SHARD_GROUP_TYPE, _SHARD_GROUP_TYPES.index(kind))


@dataclass
class _Message:
    numbers: dict[int, list[int]] = field(default_factory=lambda: {number: [] for number in _NUMBERS})
    elements: list[bytes] = field(default_factory=list)
    unknown: bytes = b""


def parse(data: bytes, num_devices: int | None = None) -> Sharding:
    """Parse a sharding; see :meth:`Sharding.from_serialized`."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"an OpSharding message must be bytes, got {shortened(data)} of type {type(data).__name__}")
    message = _Message()
    try:
        for number, wire, value, written in fields(bytes(data)):
            if isinstance(value, bytes) and wire != BYTES:
                message.unknown += written
            elif number in message.numbers:
                message.numbers[number] += [value] if isinstance(value, int) else unpacked(value)
            elif number == _TUPLE and isinstance(value, bytes):
                message.elements.append(value)
            else:
                message.unknown += written
    except WireError as error:
        raise ShardingError(f"these {len(data)} bytes are not a serialized OpSharding: {error}") from None
    found, group = _sharding(message, num_devices), _shard_group(message.numbers)
    return replace(found, shard_group=group, unknown_fields=message.unknown)


def _shard_group(numbers: dict[int, list[int]]) -> tuple[Literal["as", "like"], int] | None:
    if not any(numbers[_IS_SHARD_GROUP][-1:]):
        return None
    (group,), (kind,) = ((numbers[number] or [0])[-1:] for number in (_SHARD_GROUP_ID, _SHARD_GROUP_TYPE))
    if group < 0 or kind not in (0, 1):
        raise ShardingError(
            f"this OpSharding has shard group {group} of type {kind}: expected a non-negative group and type 0 or 1"
        )
    return _SHARD_GROUP_TYPES[kind], group


def _sharding(message: _Message, num_devices: int | None) -> Sharding:
    numbers = message.numbers
    number = (numbers[_TYPE] or [0])[-1]
    if not 0 <= number < len(_KINDS):
        raise ShardingError(
            f"this OpSharding has type {number}: expected 0 to {len(_KINDS) - 1} ({', '.join(TYPES.values())})"
        )
    kind = _KINDS[number]
    if kind == "tuple":
        return Sharding.of_tuple([parse(element, num_devices) for element in message.elements])
    if kind == "maximal":
        if len(numbers[_DEVICES]) != 1:
            raise ShardingError(f"this OpSharding is MAXIMAL but has devices {numbers[_DEVICES]}: expected one device")
        return Sharding.maximal(numbers[_DEVICES][0], num_devices)
    return _tiled(numbers) if kind == "tiled" else Sharding(kind, num_devices=num_devices)


def _tiled(numbers: dict[int, list[int]]) -> Sharding:
    dimensions, shape, axes = numbers[_DIMENSIONS], numbers[_RESHAPE], numbers[_TRANSPOSE]
    groups: list[Subgroup] = ["replicated"] if any(numbers[_REPLICATE]) else _groups(numbers[_GROUPS])
    if not shape:
        found = Sharding.tiled(dimensions, numbers[_DEVICES], last_tile_dims=groups)
        return replace(found, lists_devices=found.kind == "tiled")
    if math.prod(dimensions) > MOST_DEVICES or math.prod(shape) != math.prod(dimensions):
        raise ShardingError(
            f"this OpSharding has a grid of {shape} devices for {dimensions} tiles: expected as many devices as "
            f"tiles, at most {MOST_DEVICES}"
        )
    if sorted(axes) != list(range(len(shape))):
        raise ShardingError(
            f"this OpSharding has the axis order {axes} for a grid of {shape} devices: expected each axis once"
        )
    return Sharding.tiled(dimensions, Iota(tuple(shape), tuple(axes)).devices, last_tile_dims=groups)


def _groups(numbers: Sequence[int]) -> list[Subgroup]:
    kinds = [_KINDS[number] if 0 <= number < len(_KINDS) else number for number in numbers]
    return cast("list[Subgroup]", kinds)  # validated by the constructor
