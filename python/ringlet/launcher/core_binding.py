"""Core binding: the cores on which each worker of a job may run."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence

from ringlet.devices import visible_cores
from ringlet.devices.cores import ReadFile, read_file
from ringlet.errors import InvalidArgumentError

BINDINGS = ("none", "core", "numa")

_CPU = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
_NODES = "/sys/devices/system/node"


def cores_of_workers(bind: str, num_workers: int, replicas: int | None, option: str) -> list[list[int]]:
    """Return the hardware threads that each worker may use; empty lists if workers are not bound.

    `option` is the name of `bind` in messages.
    """
    if bind not in BINDINGS:
        raise InvalidArgumentError(f"{option} must be {', '.join(BINDINGS[:-1])} or {BINDINGS[-1]}, got {bind!r}")
    if bind == "none":
        return [[] for _ in range(num_workers)]
    if not hasattr(os, "sched_setaffinity"):
        raise InvalidArgumentError(f"{option} {bind}: this system cannot bind processes to cores. Use {option} none")
    allowed = os.sched_getaffinity(0)
    nodes = nodes_of(allowed, read_file)
    if bind == "numa":
        return divided(nodes, num_workers)
    cores = [core for node in nodes for core in cores_of(node, read_file)]
    needed, usable = num_workers * (replicas or 1), visible_cores()
    has = f"{usable.count} ({usable.reason})"
    if len(cores) < usable.count:
        has = f"{len(cores)} (with {len(allowed)} hardware threads)"
    if min(len(cores), usable.count) < needed:
        raise InvalidArgumentError(
            f"{option} core: {num_workers} workers need {needed} cores, one for each replica, but this job has {has}. "
            f"Start fewer workers, or use {option} none"
        )
    return divided(cores, num_workers)


def divided(units: Sequence[Sequence[int]], num_workers: int) -> list[list[int]]:
    """Return the threads of each worker: an equal share of adjacent units or, if these are too few, a shared unit."""
    shares = []
    for worker in range(num_workers):
        first, end = (len(units) * number // num_workers for number in (worker, worker + 1))
        shares.append(sorted(thread for unit in units[first : max(end, first + 1)] for thread in unit))
    return shares


def cores_of(threads: Collection[int], read: ReadFile) -> list[list[int]]:
    """Group hardware threads by core; without a report from the system, each thread is a core."""
    cores = {tuple(sorted(set(_numbers(read(_CPU.format(thread)))) & set(threads)) or [thread]) for thread in threads}
    return [list(core) for core in sorted(cores)]


def nodes_of(threads: Collection[int], read: ReadFile) -> list[list[int]]:
    """Group hardware threads by NUMA node; without a report from the system, all form one node."""
    online = _numbers(read(f"{_NODES}/online"))
    nodes = [sorted(set(_numbers(read(f"{_NODES}/node{node}/cpulist"))) & set(threads)) for node in online]
    rest = sorted(set(threads).difference(*nodes))
    return [node for node in (*nodes, rest) if node]


def _numbers(text: str | None) -> Iterator[int]:
    """Yield the numbers of a list such as ``0-3,8``."""
    for part in (text or "").strip().split(","):
        first, _, last = part.partition("-")
        if first.isdecimal():
            yield from range(int(first), int(last if last.isdecimal() else first) + 1)
