"""The processes of one job: detection, monitoring, termination, and removal of their shared memory.

Launchers of MPI start ranks in new sessions and process groups, so a job is its session and all observed descendants of
its first process.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["JobProcesses", "cpu_seconds_of"]

_PROC = Path("/proc")
_SHARED_MEMORY = "/dev/shm/"


@dataclass(frozen=True)
class _Process:
    """A process as reported by the kernel; `started` distinguishes it from a later one with the same pid."""

    pid: int
    started: int
    parent: int
    session: int
    is_ended: bool
    cpu_ticks: int


def _process(pid: int) -> _Process | None:
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name, in brackets, may hold anything.
    fields = text.rpartition(")")[2].split()
    state, parent, session, ticks = fields[0], int(fields[1]), int(fields[3]), int(fields[11]) + int(fields[12])
    return _Process(pid, int(fields[19]), parent, session, state in "ZX", ticks)


def _all_processes() -> Iterator[_Process]:
    for entry in _PROC.iterdir():
        process = _process(int(entry.name)) if entry.name.isdigit() else None
        if process is not None:
            yield process


def cpu_seconds_of(pids: Iterable[int]) -> float:
    """Return the CPU time of processes, in seconds; processes that have exited count as 0.

    Examples
    --------
    >>> cpu_seconds_of([os.getpid()]) > 0
    True
    """
    return _seconds(process for pid in pids if (process := _process(pid)) is not None)


def _seconds(processes: Iterable[_Process]) -> float:
    return sum(process.cpu_ticks for process in processes) / os.sysconf("SC_CLK_TCK")


class JobProcesses:
    """A process that leads a session, and all of its descendants.

    Parameters
    ----------
    leader : int
        The first process.

    Examples
    --------
    >>> import subprocess
    >>> leader = subprocess.Popen(["sleep", "60"], start_new_session=True)
    >>> job = JobProcesses(leader.pid)
    >>> job.alive() == [leader.pid]
    True
    >>> job.end(); leader.wait() < 0, job.alive()
    (True, [])
    """

    def __init__(self, leader: int) -> None:
        self._leader = leader
        first = _process(leader)
        self._seen = {} if first is None else {leader: first.started}  # process to its start
        self._files: set[str] = set()
        self.look()

    def look(self) -> None:
        """Record the current processes of the job, and the shared-memory files that they use."""
        everyone = {process.pid: process for process in _all_processes()}
        children: dict[int, list[int]] = {}
        for process in everyone.values():
            children.setdefault(process.parent, []).append(process.pid)
        found = [pid for pid, started in self._seen.items() if pid in everyone and everyone[pid].started == started]
        # The number of a session that nobody is in may belong to somebody else by now.
        if any(everyone[pid].session == self._leader for pid in found):
            found += [pid for pid, process in everyone.items() if process.session == self._leader]
        members: set[int] = set()
        while found:
            pid = found.pop()
            if pid not in members:
                members.add(pid)
                found += children.get(pid, [])
        self._seen.update({pid: everyone[pid].started for pid in members})
        for pid in members:
            self._files.update(_shared_files(pid))

    def alive(self) -> list[int]:
        """Return the observed processes that have not ended, in ascending order."""
        return sorted(pid for pid, process in self._members().items() if not process.is_ended)

    def cpu_seconds(self) -> float:
        """Return the CPU time of the running processes, in seconds."""
        return _seconds(self._members().values())

    def end(self, *, seconds: float = 5.0) -> None:
        """Kill every process, and wait up to `seconds` until they have exited."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.look()
            alive = self.alive()
            if not alive:
                return
            for pid in alive:
                _kill(pid)
            time.sleep(0.02)

    def remove_shared_files(self) -> list[str]:
        """Remove the leftover shared-memory files of the ended job, unless a process uses them.

        Returns
        -------
        list of str
            Paths that were removed.
        """
        left = {path for path in self._files if Path(path).exists()}
        if left:
            left -= {path for process in _all_processes() for path in _shared_files(process.pid)}
        for path in left:
            Path(path).unlink(missing_ok=True)
        return sorted(left)

    def _members(self) -> Mapping[int, _Process]:
        found = ((pid, started, _process(pid)) for pid, started in self._seen.items())
        return {pid: process for pid, started, process in found if process is not None and process.started == started}


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # it may have just ended
        os.kill(pid, signal.SIGKILL)


def _shared_files(pid: int) -> set[str]:
    """Return the shared-memory files that a process has mapped; empty without permission."""
    try:
        text = (_PROC / str(pid) / "maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return set()
    paths = (line.partition(_SHARED_MEMORY) for line in text.splitlines() if _SHARED_MEMORY in line)
    return {f"{_SHARED_MEMORY}{name}" for _, _, name in paths if not name.endswith(" (deleted)")}
