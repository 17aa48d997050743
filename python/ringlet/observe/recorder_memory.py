"""Memory of the flight recorder: an anonymous file, created with the first group or by a launcher."""

from __future__ import annotations

import os
import sys

from ringlet.observe import trace_hook
from ringlet.observe.recorder import NAME, header

VARIABLE = "RINGLET_RECORDER_FD"  # descriptor, device and inode of a memory file that the launcher has created
_NO_EXEC = 0x8  # MFD_NOEXEC_SEAL of Linux 6.3


def new_memory() -> tuple[int, str]:
    """Return the descriptor of an empty memory file, and the value of `VARIABLE` for it."""
    flags = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
    try:
        descriptor = os.memfd_create(NAME, flags | _NO_EXEC)
    except OSError:  # kernels before Linux 6.3 reject _NO_EXEC
        descriptor = os.memfd_create(NAME, flags)
    status = os.fstat(descriptor)
    return descriptor, f"{descriptor}:{status.st_dev}:{status.st_ino}"


def open_own() -> None:
    """Unless the recorder is off, start it, if the system provides memory, and open the file of a requested trace."""
    from ringlet import _core  # loaded here because the launcher does not use it

    if os.environ.get("RINGLET_RECORDER") == "0" or sys.platform != "linux":
        return
    head = header(os.getpid(), start_ticks(os.getpid()) or 0, _core.recorder_names())
    # A program started by this program may inherit the descriptor; its memory is then in use, so a new file is needed.
    for find in (_passed_memory, lambda: new_memory()[0]):
        try:
            descriptor = find()
            os.set_inheritable(descriptor, False)
            _core.open_recorder(descriptor, head)
        except (OSError, ValueError):
            continue
        break
    if trace_hook.current is not None:
        trace_hook.current.begin_or_stop()


def state() -> str:
    """Return whether the recorder is on and, if it is off, the reason."""
    from ringlet import _core

    if _core.recorder() >= 0:
        return "on"
    if os.environ.get("RINGLET_RECORDER") == "0":
        return "off: RINGLET_RECORDER=0"
    return "off: starts with the first group, if the system provides shared memory"


def start_ticks(pid: int) -> int | None:
    """Return the start time of a process in clock ticks since the system started; None if it has exited."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123  # pathlib loads slowly
            fields = file.read().rpartition(") ")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else int(fields[19])


def _passed_memory() -> int:
    # A process may inherit the variable without the descriptor; the number may then belong to another file.
    descriptor, device, inode = map(int, os.environ.get(VARIABLE, "").split(":"))
    status = os.fstat(descriptor)
    if (status.st_dev, status.st_ino) != (device, inode):
        raise ValueError(VARIABLE)
    return descriptor
