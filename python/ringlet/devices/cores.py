"""Cores available to this process, by its affinity mask and the CPU quotas of its control groups."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

# Returns the text of a file, or None if the file cannot be read.
ReadFile = Callable[[str], "str | None"]

MEMBERSHIP_FILE = "/proc/self/cgroup"
HIERARCHY_ROOT = "/sys/fs/cgroup"


@dataclass(frozen=True)
class CoreCount:
    """A number of cores and the limit that determined it."""

    count: int
    reason: str


def visible_cores() -> CoreCount:
    """Return the number of cores that the affinity mask and the CPU quota (rounded up) allow.

    Not cached, because both may change.
    """
    return count_cores(affinity=_affinity(), read=read_file)


def count_cores(affinity: int, read: ReadFile) -> CoreCount:
    """Return the number of cores that an affinity mask of `affinity` cores and control group quotas allow.

    `read` returns the text of a file, or None.
    """
    mask = f"affinity mask of {affinity}"
    quota, path = min(_quotas(read), default=(math.inf, ""))
    if quota >= affinity:
        return CoreCount(affinity, mask)
    return CoreCount(max(1, math.ceil(quota)), f"CPU quota of {quota:g} cores ({path}), {mask}")


def _affinity() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def read_file(path: str) -> str | None:
    """Return the text of a file; None if it cannot be read."""
    try:
        with open(path, encoding="ascii", errors="replace") as file:  # noqa: PTH123  # pathlib loads slowly
            return file.read()
    except OSError:
        return None


def _quotas(read: ReadFile) -> Iterator[tuple[float, str]]:
    for line in (read(MEMBERSHIP_FILE) or "").splitlines():
        # Format: hierarchy-ID:controllers:path. In cgroup v2 the ID is 0 and the controllers are empty: "0::/path".
        _, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        if not controllers:
            yield from _quotas_of_version_2(read, group)
        elif "cpu" in controllers.split(","):
            yield from _quotas_of_version_1(read, controllers, group)


def _groups_upwards(group: str) -> Iterator[str]:
    """Yield the folders of a group and of its ancestors, whose quotas also apply, relative to a hierarchy's root."""
    # In a container the root of the hierarchy is the container's group, regardless of the path in /proc.
    parts = [f"/{part}" for part in group.split("/") if part not in ("", ".", "..")]
    for depth in range(len(parts), -1, -1):
        yield "".join(parts[:depth])


def _quotas_of_version_2(read: ReadFile, group: str) -> Iterator[tuple[float, str]]:
    for folder in _groups_upwards(group):
        path = f"{HIERARCHY_ROOT}{folder}/cpu.max"
        quota, _, period = (read(path) or "max").partition(" ")
        yield from _cores(quota, period, path)


def _quotas_of_version_1(read: ReadFile, controllers: str, group: str) -> Iterator[tuple[float, str]]:
    for folder in _groups_upwards(group):
        for mount in dict.fromkeys((controllers, "cpu", "cpu,cpuacct")):
            path = f"{HIERARCHY_ROOT}/{mount}{folder}/cpu.cfs_quota_us"
            quota = read(path)
            if quota is not None:
                yield from _cores(quota, read(path.replace("quota", "period")) or "", path)
                break


def _cores(quota: str, period: str, path: str) -> Iterator[tuple[float, str]]:
    """Yield the quota in cores, if there is one: "max" (version 2) and -1 (version 1) mean no quota."""
    if quota.strip().isdecimal() and period.strip().isdecimal() and int(period) > 0:
        yield int(quota) / int(period), path
