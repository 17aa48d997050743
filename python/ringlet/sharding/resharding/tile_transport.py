"""Tile transport: copies values between device buffers, in this process and between processes."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ringlet.errors import ShardingError
from ringlet.sharding.layout.device_group import DeviceGroup
from ringlet.sharding.layout.layout import Array, Box
from ringlet.sharding.memory_modes import is_planning
from ringlet.sharding.resharding.collective_record import Message

Spaces = Sequence[Array | None]


class Transfer(NamedTuple):
    """Values `given` by the source device, and memory `taken` of the target device that receives them.

    An array is None if another process owns the device.
    """

    source: int
    target: int
    given: Array | None
    taken: Array | None


def transfer(group: DeviceGroup, transfers: Iterable[Transfer], what: str = "values") -> None:
    """Run transfers; transfers between processes use one exchange. No transfer may read what another transfer writes.

    Collective call: all processes of the group must pass transfers between the same devices, in the same order, for the
    same purpose `what`; otherwise it raises CollectiveMismatchError.
    """
    crossing = []
    for each in transfers:
        if group.member is not None and group.owner[each.source] != group.owner[each.target]:
            crossing.append(each)
        elif each.taken is not None and each.given is not None:
            each.taken[...] = each.given
    if crossing:
        _cross(group, crossing, what)


def _cross(group: DeviceGroup, transfers: Sequence[Transfer], what: str) -> None:
    owner, member = group.owner, group.member
    assert member is not None
    # The bytes do not distinguish a sum from a maximum, so the barrier's name includes the purpose.
    member.barrier(f"sharded arrays, {what} ({_digest((owner, [(each.source, each.target) for each in transfers]))})")
    leaving: list[list[Array]] = [[] for _ in range(member.num_ranks)]
    coming: list[list[Array]] = [[] for _ in range(member.num_ranks)]
    for source, target, given, taken in transfers:
        if owner[source] == member.rank and given is not None:
            leaving[owner[target]].append(_as_bytes(given))
        if owner[target] == member.rank and taken is not None:
            coming[owner[source]].append(taken)
    sent = np.concatenate([np.empty(0, np.uint8), *(piece for pieces in leaving for piece in pieces)])
    came = member.all_to_all(sent, counts=[sum(piece.size for piece in pieces) for pieces in leaving])
    expected = sum(taken.nbytes for pieces in coming for taken in pieces)
    if came.size != expected:
        raise ShardingError(
            f"rank {member.rank} expected {expected} bytes from other processes and got {came.size}: all processes "
            "of a mesh must run the same operations on arrays of the same shapes, in the same order"
        )
    start = 0
    for taken in (taken for pieces in coming for taken in pieces):  # ordered by rank, like the received data
        stop = start + taken.nbytes
        taken[...] = came[start:stop].view(taken.dtype).reshape(taken.shape)
        start = stop


def _digest(plan: object) -> str:
    return f"{zlib.crc32(repr(plan).encode()):08x}"


def _as_bytes(values: Array) -> Array:
    if values.dtype.hasobject:
        raise ShardingError(
            f"values of dtype {values.dtype} cannot be sent to another process: use numbers, or text of a fixed length"
        )
    return np.frombuffer(values.tobytes(), np.uint8)


def deliver(group: DeviceGroup, messages: Sequence[Message], sources: Spaces, targets: Spaces) -> None:
    """Copy the box of each message from its source to the same coordinates of its target.

    Collective call: all processes of the group must pass the same messages in the same order; no message reads elements
    that another message writes. Arrays have the whole array's shape; messages between devices that share an array copy
    nothing.
    """
    if is_planning():
        return
    for message, values in zip(messages, received(group, messages, sources), strict=True):
        taker = targets[message.target]
        if values is not None and taker is not None and sources[message.source] is not taker:
            taker[message.box] = values


def received(
    group: DeviceGroup, messages: Sequence[Message], sources: Spaces, what: str = "boxes"
) -> list[Array | None]:
    """Return the values of each message for a device of this process, without copying them to a target.

    Collective call, as :func:`deliver`. The values are a view of the source if this process owns the source, and None
    if another process owns the target. Values that one device sends to several devices of a process are sent once.
    """
    given = [None if (buffer := sources[m.source]) is None else view_of(buffer, m.box) for m in messages]
    if group.member is None:
        return given
    owner, me = group.owner, group.member.rank
    once: dict[tuple[Any, ...], Transfer] = {}
    dtype = next((buffer.dtype for buffer in sources if buffer is not None), np.dtype(np.uint8))
    for message, values in zip(messages, given, strict=True):
        if owner[message.source] != owner[message.target] and _key(group, message) not in once:
            place = np.empty(_shape(message), dtype) if owner[message.target] == me else None
            once[_key(group, message)] = Transfer(message.source, message.target, values, place)
    if once:
        transfer(group, once.values(), f"{what}, {_digest(messages)}")
    return [
        None
        if owner[message.target] != me
        else values
        if owner[message.source] == me
        else once[_key(group, message)].taken
        for message, values in zip(messages, given, strict=True)
    ]


def view_of(buffer: Array, box: Box) -> Array:
    """Return a box of an array as a view, even for a 0-d array."""
    index: tuple[Any, ...] = (*box, ...)
    view: Array = buffer[index]
    return view


def _key(group: DeviceGroup, message: Message) -> tuple[Any, ...]:
    bounds = ((side.start, side.stop) for side in message.box)
    return message.source, group.owner[message.target], *bounds


def _shape(message: Message) -> tuple[int, ...]:
    return tuple(side.stop - side.start for side in message.box)
