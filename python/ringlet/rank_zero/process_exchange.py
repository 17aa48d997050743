"""Exchange of data between all processes, inside or outside of replicas, with or without a strategy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ringlet import context
from ringlet.ipc.byte_framing import join_frames, split_frames
from ringlet.rank_zero.ad_hoc_group import error_prefix, join_group
from ringlet.rank_zero.process_role import local_replica, process_role
from ringlet.strategy.multi_worker.ambient_worker_group import current_workers

R = TypeVar("R")
T = TypeVar("T")

# Takes byte strings of this process, and returns the byte strings of all processes, in the order of the processes.
Exchange = Callable[[list[bytes]], list[bytes]]


def call_with_exchange(title: str, items: list[T], function: Callable[[Exchange, list[T]], R]) -> R:
    """Call a function that exchanges byte strings between all processes, once per process, even inside replicas.

    `items` are the items of this replica, or of this process. The function receives the exchange and the items of all
    replicas of this process; its result is returned on each replica. All processes must call the exchange the same
    number of times. Without a strategy, a process that is not a worker exchanges only with itself.
    """
    if local_replica() is None:
        return _call_on_process(title, items, function)
    replica: Any = context.current()

    def merge(_: Any, boxes: Any) -> R:
        every = [item for box in getattr(boxes, "values", (boxes,)) for item in box.items]
        return _call_on_process(title, every, function)

    result: R = replica._merge_named(title, merge, (_Box(items),))
    return result


class _Box:
    """Wrapper that compares by identity, so that equal items of different replicas are not merged."""

    __slots__ = ("items",)

    def __init__(self, items: list[Any]) -> None:
        self.items = items


def _call_on_process(title: str, items: list[T], function: Callable[[Exchange, list[T]], R]) -> R:
    workers = current_workers()
    if workers is not None:
        with error_prefix(title):
            return function(
                lambda rows: [row for data in workers.exchange(join_frames(rows)) for row in split_frames(data)], items
            )
    role = process_role()
    if role.count == 1 or role.task != "worker":
        return function(lambda rows: rows, items)
    if len(role.host_indices) < role.count:
        raise NotImplementedError(
            f"{title}: the cluster has workers on several machines, which only a strategy can connect: create the "
            "strategy first, or use a cluster on one machine"
        )
    with join_group(title, range(role.count)) as member, error_prefix(title):
        return function(lambda rows: split_frames(member.all_gather(np.frombuffer(join_frames(rows), np.uint8))), items)
