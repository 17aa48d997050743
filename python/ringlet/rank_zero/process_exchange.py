"""What all replicas or all processes bring together: in replicas, in a strategy, or without any."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ringlet import context
from ringlet.rank_zero.ad_hoc_group import meet, naming
from ringlet.rank_zero.process_role import local_replica, standing
from ringlet.strategy.multi_worker.ambient_worker_group import current_workers

__all__ = ["Exchange", "everybody"]

R = TypeVar("R")
T = TypeVar("T")

# What all of them bring: takes the rows of this process, and gives those of all, in their order.
Exchange = Callable[[list[bytes]], list[bytes]]


def everybody(title: str, items: list[T], talk: Callable[[Exchange, list[T]], R]) -> R:
    """Call a function with what exchanges rows between all processes; replicas that call it together call it once.

    Parameters
    ----------
    title : str
        What is done, for messages; the same on all.
    items : list
        What this replica, or this process, has to bring.
    talk : callable
        Takes the exchange and the items of all replicas of this process, and gives the answer of each of them. All
        processes must exchange as often.

    Examples
    --------
    >>> everybody("a question", ["x"], lambda exchange, items: exchange([item.encode() for item in items]))
    [b'x']
    """
    if local_replica() is None:
        return _among_processes(title, items, talk)
    replica: Any = context.current()

    def merge(_: Any, boxes: Any) -> R:
        every = [item for box in getattr(boxes, "values", (boxes,)) for item in box.items]
        return _among_processes(title, every, talk)

    answer: R = replica._merge_named(title, merge, (_Box(items),))
    return answer


class _Box:
    """Keeps what a replica brings apart from what others bring."""

    __slots__ = ("items",)

    def __init__(self, items: list[Any]) -> None:
        self.items = items


def _among_processes(title: str, items: list[T], talk: Callable[[Exchange, list[T]], R]) -> R:
    workers = current_workers()
    if workers is not None:
        with naming(title):
            return talk(lambda mine: _unpacked(workers.exchange(_packed(mine))), items)
    place = standing()
    if place.count == 1 or place.task != "worker":
        return talk(lambda mine: mine, items)
    if len(place.neighbours) < place.count:
        raise NotImplementedError(
            f"{title}: the cluster has workers on several machines, which only a strategy joins: make the strategy "
            "first, or name one machine"
        )
    with meet(title, range(place.count)) as member, naming(title):
        return talk(lambda mine: _unpacked(_gathered(member, _packed(mine))), items)


def _gathered(member: Any, data: bytes) -> list[bytes]:
    sizes = member.all_gather(np.array([len(data)]))
    joined = member.all_gather(np.frombuffer(data, np.uint8)).tobytes()
    ends = np.cumsum(sizes)
    return [joined[end - size : end] for end, size in zip(ends.tolist(), sizes.tolist(), strict=True)]


def _packed(rows: list[bytes]) -> bytes:
    """Rows in one piece: how many, the size of each, and their bytes."""
    return struct.pack(f"<{len(rows) + 1}Q", len(rows), *map(len, rows)) + b"".join(rows)


def _unpacked(pieces: list[bytes]) -> list[bytes]:
    rows = []
    for piece in pieces:
        (count,) = struct.unpack_from("<Q", piece)
        place = 8 * (count + 1)
        for size in struct.unpack_from(f"<{count}Q", piece, 8):
            rows.append(piece[place : place + size])
            place += size
    return rows
