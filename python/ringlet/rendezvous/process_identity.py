"""Which process this is, told so that no other one can be taken for it."""

from __future__ import annotations

import dataclasses
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["ProcessIdentity"]


@dataclass(frozen=True)
class ProcessIdentity:
    """A process, told apart from a later one that was given the same number.

    Attributes
    ----------
    pid : int
        Its number.
    start_ticks : int
        When it started, in clock ticks since the machine did: a pid alone may be given out again.
    host : str
        Name of the machine.
    boot_id : str
        Which start of which machine; empty where the system does not tell.
    network_namespace, pid_namespace : str
        As ``/proc/self/ns`` names them; empty where the system does not tell.

    Examples
    --------
    >>> import os
    >>> identity = ProcessIdentity.of_this_process()
    >>> identity.pid == os.getpid(), identity.has_ended()
    (True, False)
    """

    pid: int
    start_ticks: int
    host: str
    boot_id: str
    network_namespace: str
    pid_namespace: str

    @classmethod
    def of_this_process(cls) -> ProcessIdentity:
        """Tell who the calling process is."""
        return cls(
            pid=os.getpid(),
            start_ticks=_start_ticks(os.getpid()),
            host=socket.gethostname(),
            boot_id=_text_of("/proc/sys/kernel/random/boot_id"),
            network_namespace=_link_of("/proc/self/ns/net"),
            pid_namespace=_link_of("/proc/self/ns/pid"),
        )

    @classmethod
    def from_record(cls, record: Any) -> ProcessIdentity:
        """Read what :meth:`as_record` gave, from a source that is not trusted.

        Raises
        ------
        ValueError
            If anything is missing, more, or of another type.

        Examples
        --------
        >>> identity = ProcessIdentity.of_this_process()
        >>> ProcessIdentity.from_record(identity.as_record()) == identity
        True
        """
        fields = {field.name: int if field.type == "int" else str for field in dataclasses.fields(cls)}
        if not isinstance(record, dict) or record.keys() != fields.keys():
            raise ValueError("no identity of a process")
        if any(type(record[name]) is not kind for name, kind in fields.items()):
            raise ValueError("an identity of a process with values of other types")
        return cls(**record)

    def as_record(self) -> dict[str, Any]:
        """Give all attributes as a dictionary that JSON can hold."""
        return dataclasses.asdict(self)

    def is_same_process(self, other: ProcessIdentity) -> bool:
        """Tell whether both are one process of one machine."""
        return (self.pid, self.start_ticks) == (other.pid, other.start_ticks)

    def has_ended(self) -> bool:
        """Tell whether the process is no more: nobody has its number, or somebody else who started at another time."""
        return _start_ticks(self.pid) != self.start_ticks

    def seconds_since_start(self) -> float | None:
        """Tell how long ago the process started; None where the system does not tell."""
        uptime = _text_of("/proc/uptime").split()
        if not uptime or not self.start_ticks:
            return None
        return max(0.0, float(uptime[0]) - self.start_ticks / os.sysconf("SC_CLK_TCK"))

    def __str__(self) -> str:
        return f"pid {self.pid} on {self.host}"


def _start_ticks(pid: int) -> int:
    """Field 22 of ``/proc/PID/stat`` (proc(5)); 0 where there is no such process."""
    # The second field, the name in parentheses, may hold blanks and parentheses of its own.
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
