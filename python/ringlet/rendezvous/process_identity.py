"""Process identity: pid and start time, which identify a process although pids are reused."""

from __future__ import annotations

import dataclasses
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class ProcessIdentity:
    """Identifies a process; a later process with the same pid has another identity.

    `start_ticks` is the start time of the process in clock ticks since boot, `boot_id` is the kernel's random id
    of this boot, and the namespaces are the targets of links in ``/proc/self/ns``. Unavailable values are 0 or empty.
    """

    pid: int
    start_ticks: int
    host: str
    boot_id: str
    network_namespace: str
    pid_namespace: str

    @classmethod
    def of_this_process(cls) -> ProcessIdentity:
        """Return the identity of the calling process."""
        return cls(
            pid=os.getpid(),
            start_ticks=start_ticks(os.getpid()),
            host=socket.gethostname(),
            boot_id=_text_of("/proc/sys/kernel/random/boot_id"),
            network_namespace=_link_of("/proc/self/ns/net"),
            pid_namespace=_link_of("/proc/self/ns/pid"),
        )

    @classmethod
    def from_record(cls, record: Any) -> ProcessIdentity:
        """Parse untrusted data in the form of :meth:`as_record`; raise ValueError for other fields or types."""
        fields = {field.name: int if field.type == "int" else str for field in dataclasses.fields(cls)}
        if not isinstance(record, dict) or record.keys() != fields.keys():
            raise ValueError("the data is not a process identity")
        if any(type(record[name]) is not kind for name, kind in fields.items()):
            raise ValueError("the values of the process identity have wrong types")
        return cls(**record)

    def as_record(self) -> dict[str, Any]:
        """Return all attributes as a dictionary for JSON."""
        return dataclasses.asdict(self)

    def is_same_process(self, other: ProcessIdentity) -> bool:
        """Return whether two identities of one machine identify the same process."""
        return (self.pid, self.start_ticks) == (other.pid, other.start_ticks)

    def has_ended(self) -> bool:
        """Return whether the process has exited: its pid is unused or was reused."""
        return start_ticks(self.pid) != self.start_ticks

    def seconds_since_start(self) -> float | None:
        """Return the age of the process in seconds; None where unavailable."""
        uptime = _text_of("/proc/uptime").split()
        if not uptime or not self.start_ticks:
            return None
        return max(0.0, float(uptime[0]) - self.start_ticks / os.sysconf("SC_CLK_TCK"))

    def __str__(self) -> str:
        return f"pid {self.pid} on {self.host}"


def start_ticks(pid: int) -> int:
    """Return the start time of a process in clock ticks since boot (field 22 of ``stat``); 0 if the pid is unused."""
    # The second field, the name in parentheses, may contain blanks and parentheses.
    _, _, rest = _text_of(f"/proc/{pid}/stat").rpartition(")")
    fields = rest.split()
    return int(fields[19]) if len(fields) > 19 else 0


def _text_of(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _link_of(path: str) -> str:
    try:
        return str(Path(path).readlink())
    except OSError:
        return ""
