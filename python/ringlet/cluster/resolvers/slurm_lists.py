"""Slurm's notation for lists of hosts, ``n[1-3],m5``, and of numbers of tasks, ``2(x3),1``."""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["expand_hostlist", "expand_tasks_per_node"]

_MOST_ENTRIES = 1_000_000  # largest number of hosts in a list; a larger one is probably a typing error


def expand_hostlist(hostlist: str) -> list[str]:
    """Expand a list of hosts as in ``SLURM_STEP_NODELIST``; a host that occurs twice is returned twice."""
    try:
        parts = re.split(r",(?![^\[]*\])", hostlist)  # split at commas outside of brackets
        if not parts[-1]:
            parts.pop()
        hosts = [host for part in parts for host in _hosts(part)]
    except ValueError as error:
        raise ValueError(f'Invalid hostlist format "{hostlist[:200]}": {error}') from None
    return hosts


def expand_tasks_per_node(tasks_per_node: str) -> list[int]:
    """Expand the task counts of nodes, as in ``SLURM_STEP_TASKS_PER_NODE``."""
    counts: list[int] = []
    for part in tasks_per_node.split(","):
        match = re.fullmatch(r"(\d{1,9})(?:\(x(\d{1,9})\))?", part, re.ASCII)
        times = int(match[2] or 1) if match else 0
        if match is None or times + len(counts) > _MOST_ENTRIES:
            raise ValueError(
                f'Invalid tasks-per-node list format "{tasks_per_node[:200]}": {part[:100]!r} is not a number '
                "of tasks such as 2, or one with repetitions such as 2(x3)"
            )
        counts += [int(match[1])] * times
    return counts


def _hosts(part: str) -> Iterator[str]:
    match = re.fullmatch(r"([^,\[\]]*)(?:\[([^\[\]]+)\])?", part)
    if match is None or not part:
        raise ValueError(f"Invalid part: {part[:100]}" if part else "a host is missing between two commas")
    prefix, ranges = match.groups()
    if ranges is None:
        yield prefix
        return
    for item in ranges.split(","):
        first, *last = item.split("-")
        if len(last) > 1:
            raise ValueError(f"{item[:100]!r} is not a range, such as 1-3")
        numbers = range(int(first), int(last[0] if last else first) + 1)
        if len(numbers) > _MOST_ENTRIES:
            raise ValueError(f"{item[:100]!r} has {len(numbers)} hosts, which is too many")
        yield from (prefix + str(number).zfill(len(first)) for number in numbers)
