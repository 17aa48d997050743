"""How much memory the system would still give to this process."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ringlet import _core
from ringlet.errors import SharedMemoryFullError

__all__ = ["MemoryLeft", "memory_left", "refuse_more_than_is_left"]

# File names of limit and use, and what the use counts although the system would take it back first.
_VERSION_2 = ("memory.max", "memory.current", ("inactive_file", "active_file"))
_VERSION_1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", ("total_inactive_file", "total_active_file"))


@dataclass(frozen=True)
class MemoryLeft:
    """What is left where least is.

    Attributes
    ----------
    num_bytes : int
        How much.
    where : str
        Who has no more: the machine, or a control group.
    """

    num_bytes: int
    where: str


def memory_left(root: Path = Path("/")) -> MemoryLeft | None:
    """Tell what the machine has left, or the control groups of this process if they allow less.

    Parameters
    ----------
    root : Path
        Where ``proc`` and ``sys`` are.

    Returns
    -------
    MemoryLeft or None
        None where the system does not tell.
    """
    found = _of_control_groups(root)
    machine = _numbers(root / "proc/meminfo")
    if "MemAvailable:" in machine:
        kibibytes = machine["MemAvailable:"] + machine.get("SwapFree:", 0)
        found.append(MemoryLeft(kibibytes * 1024, "this machine"))
    return min(found, key=lambda left: left.num_bytes, default=None)


def refuse_more_than_is_left(num_bytes: int, what: str) -> None:
    """Raise where the system would end a process, rather than say that it has not got so much.

    Parameters
    ----------
    num_bytes : int
        Of shared memory, all of which will be used.
    what : str
        What needs it.

    Raises
    ------
    SharedMemoryFullError
        If less is left, also once this process has given back what it keeps for other arrays.
    """
    left = memory_left()
    if left is not None and left.num_bytes < num_bytes and _core.trim_shared():
        left = memory_left()
    if left is not None and left.num_bytes < num_bytes:
        raise SharedMemoryFullError(
            f"{what} needs {num_bytes / 2**30:.3g} GiB of shared memory, but {left.where} has "
            f"{left.num_bytes / 2**30:.3g} GiB left: use fewer or smaller arrays, or end what is not needed.",
            num_bytes,
            left.num_bytes,
            "memfd",
            errno.ENOMEM,
        )


def _of_control_groups(root: Path) -> list[MemoryLeft]:
    found = []
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, group = line.split(":", 2)
        if not controllers:
            mount, files = root / "sys/fs/cgroup", _VERSION_2
        elif "memory" in controllers.split(","):
            mount, files = root / "sys/fs/cgroup/memory", _VERSION_1
        else:
            continue
        path = PurePosixPath(group)
        for each in (path, *path.parents):  # the limit of any of them holds
            left = _left_in(mount / str(each).lstrip("/"), *files)
            if left is not None:
                found.append(MemoryLeft(left, f"control group {each}"))
    return found


def _left_in(group: Path, limit_name: str, use_name: str, reclaimable: tuple[str, ...]) -> int | None:
    limit, use = _text(group / limit_name).strip(), _text(group / use_name).strip()
    if not limit.isdigit() or not use.isdigit():  # no limit is the word "max"
        return None
    counts = _numbers(group / "memory.stat")
    return max(int(limit) - int(use) + sum(counts.get(name, 0) for name in reclaimable), 0)


def _numbers(path: Path) -> dict[str, int]:
    """The first number of each line, by the word before it."""
    lines = (line.split() for line in _text(path).splitlines())
    return {words[0]: int(words[1]) for words in lines if len(words) > 1 and words[1].isdigit()}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
