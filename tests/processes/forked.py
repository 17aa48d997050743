"""Ranks forked by a driver: hundreds of jobs in a short time, because none starts an interpreter.

A driver is a script of `harness.py` that has imported the modules of its ranks, and has no other threads. It forks the
ranks of one job, monitors them, and ends them all; the test checks its messages.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import select
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.processes.harness import children, descriptors_of, threads_of

__all__ = ["Job", "footprint", "left_behind"]


class Job:
    """The processes of one job, forked from this one.

    Each runs ``body(index, tell)`` and ends; :meth:`told` reads the values passed to ``tell``.
    """

    def __init__(self, size: int, body: Callable[[int, Callable[[Any], None]], None]) -> None:
        self.pids: list[int] = []
        self.statuses: dict[int, int] = {}
        self._pipes: list[int] = []
        self._texts = [b""] * size
        for index in range(size):
            reader, writer = os.pipe()
            pid = os.fork()
            if pid == 0:
                os.close(reader)
                _run(body, index, writer)
            os.close(writer)
            self.pids.append(pid)
            self._pipes.append(reader)

    def told(self, index: int, end: float) -> Any:
        """Return the next message of a process; None if it ended, ``"nothing"`` if none arrived by the time `end`."""
        while b"\n" not in self._texts[index]:
            if not select.select([self._pipes[index]], [], [], max(end - time.monotonic(), 0.0))[0]:
                return "nothing"
            data = os.read(self._pipes[index], 65536)
            if not data:
                return None
            self._texts[index] += data
        line, _, self._texts[index] = self._texts[index].partition(b"\n")
        return json.loads(line)

    def kill(self, index: int, number: int = signal.SIGKILL) -> None:
        """Send a signal to a process that has not been waited for."""
        if index not in self.statuses:
            os.kill(self.pids[index], number)

    def wait(self, seconds: float) -> list[int]:
        """Return the exit statuses, as in ``subprocess``; processes that have not ended in time are killed."""
        end = time.monotonic() + seconds
        for index, pid in enumerate(self.pids):
            while index not in self.statuses:
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended:
                    self.statuses[index] = os.waitstatus_to_exitcode(status)
                elif time.monotonic() > end:
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
                    self.statuses[index] = 1000  # did not end
                else:
                    time.sleep(0.001)
        for pipe in self._pipes:
            os.close(pipe)
        self._pipes = []
        return [self.statuses[index] for index in range(len(self.pids))]

    def wrong_ends(self, seconds: float, killed: Sequence[int]) -> list[str]:
        """Wait for the processes; return the faults of their statuses. A later victim may end before it is killed."""
        statuses = self.wait(seconds)
        allowed = [{-signal.SIGKILL} if index in killed[:1] else {0} for index in range(len(statuses))]
        for index in killed[1:]:
            allowed[index] = {-signal.SIGKILL, 0}
        is_right = all(status in each for status, each in zip(statuses, allowed, strict=True))
        return [] if is_right else [f"the exit statuses are {statuses}"]


def _run(body: Callable[[int, Callable[[Any], None]], None], index: int, writer: int) -> None:
    faulthandler.enable()

    def tell(value: Any) -> None:
        os.write(writer, json.dumps(value).encode() + b"\n")

    status = 1
    try:
        body(index, tell)
        status = 0
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 0
    except BaseException:
        tell(["raised", traceback.format_exc()])
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def left_behind() -> tuple[list[str], int]:
    """Return what a job must not add to: the names of Ringlet's files, and the number of open descriptors."""
    files = [file.name for folder in ("/dev/shm", "/tmp") for file in Path(folder).iterdir() if "ringlet" in file.name]
    return sorted(files), descriptors_of()


def footprint() -> dict[str, Any]:
    """Return what a job must not add to, after reaping its orphans."""
    descriptors = Counter[str]()
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # that of the folder itself
            descriptors[str(descriptor.readlink()).partition("[")[0]] += 1
    commands = {}
    for pid in map(int, children()):
        with contextlib.suppress(ChildProcessError, OSError):
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG) is None:
                commands[pid] = Path(f"/proc/{pid}/cmdline").read_text("utf-8", "replace").replace("\0", " ")
    return {
        "descriptors": {name: count for name, count in descriptors.items() if not name.startswith("/proc/")},
        "threads": threads_of(),
        "children": commands,
        "files": sorted(
            file.name
            for folder in (tempfile.gettempdir(), "/dev/shm")
            for file in Path(folder).iterdir()
            if folder != "/dev/shm" or "ringlet" in file.name
        ),
    }
