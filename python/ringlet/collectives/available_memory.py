"""Memory that the system can still allocate to this process."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ringlet import _core
from ringlet.errors import SharedMemoryFullError

_Files = tuple[str, str, tuple[str, ...]]

# For each controller, in control groups of version 1 and 2: the file with the limit, the file with the usage, and the
# counters of the reclaimable page cache that the usage includes.
_FILES: dict[str, tuple[_Files, _Files]] = {
    "memory": (
        ("memory.limit_in_bytes", "memory.usage_in_bytes", ("total_inactive_file", "total_active_file")),
        ("memory.max", "memory.current", ("inactive_file", "active_file")),
    ),
    "pids": (("pids.max", "pids.current", ()),) * 2,
}


@dataclass(frozen=True)
class AvailableMemory:
    """The memory available to this process; `where` names the machine or the control group that limits it."""

    num_bytes: int
    where: str


def available_memory(root: Path = Path("/")) -> AvailableMemory | None:
    """Return the memory available on the machine or in the control groups of this process, whichever is less.

    Return None if the system does not report its memory. `root` is the folder that contains ``proc`` and ``sys``.
    """
    found = [AvailableMemory(*room) for room in control_group_room(root, "memory")]
    machine = _numbers(root / "proc/meminfo")
    if "MemAvailable:" in machine:
        kibibytes = machine["MemAvailable:"] + machine.get("SwapFree:", 0)
        found.append(AvailableMemory(kibibytes * 1024, "this machine"))
    return min(found, key=lambda left: left.num_bytes, default=None)


def check_available_memory(num_bytes: int, what: str) -> None:
    """Raise an error if an allocation exceeds the available memory; otherwise the system would kill a process.

    If memory is short, idle buffers of this process are freed first.
    """
    left = available_memory()
    if left is not None and left.num_bytes < num_bytes and _core.trim_shared():
        left = available_memory()
    if left is not None and left.num_bytes < num_bytes:
        raise SharedMemoryFullError(
            f"{what} needs {num_bytes / 2**30:.3g} GiB of shared memory, but {left.where} has "
            f"{left.num_bytes / 2**30:.3g} GiB left: use fewer or smaller arrays, or stop other processes.",
            num_bytes,
            left.num_bytes,
            "memfd",
            errno.ENOMEM,
        )


def control_group_room(root: Path, controller: str) -> list[tuple[int, str]]:
    """Return what is left of ``"memory"`` (bytes) or ``"pids"`` in each control group with a limit, and its name."""
    found = []
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, group = line.split(":", 2)
        if not controllers:
            mount, files = root / "sys/fs/cgroup", _FILES[controller][1]
        elif controller in controllers.split(","):
            mount, files = root / "sys/fs/cgroup" / controller, _FILES[controller][0]
        else:
            continue
        path = PurePosixPath(group)
        for each in (path, *path.parents):  # each level may set a limit
            left = _available_in(mount / str(each).lstrip("/"), *files)
            if left is not None:
                found.append((left, f"control group {each}"))
    return found


def _available_in(group: Path, limit_name: str, use_name: str, reclaimable: tuple[str, ...]) -> int | None:
    limit, use = _text(group / limit_name).strip(), _text(group / use_name).strip()
    if not limit.isdigit() or not use.isdigit():  # "max" means no limit
        return None
    counts = _numbers(group / "memory.stat")
    return max(int(limit) - int(use) + sum(counts.get(name, 0) for name in reclaimable), 0)


def _numbers(path: Path) -> dict[str, int]:
    """Return the first number of each line, keyed by the word before it."""
    lines = (line.split() for line in _text(path).splitlines())
    return {words[0]: int(words[1]) for words in lines if len(words) > 1 and words[1].isdigit()}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
