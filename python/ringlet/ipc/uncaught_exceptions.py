"""Reports of uncaught exceptions, which workers send to the launcher before their interpreters begin to exit."""

from __future__ import annotations

import contextlib
import os
import struct
import sys
import time
from types import TracebackType

VARIABLE = "RINGLET_UNCAUGHT"  # descriptor, device and inode of the pipe
_REPORT = struct.Struct("=qd")  # pid and time; far below PIPE_BUF, so writes of several workers do not mix
_MOST_READ = 1 << 16


class UncaughtReports:
    """The pipe on which the workers of a job report uncaught exceptions; they inherit `writer`."""

    def __init__(self) -> None:
        self._reader, self.writer = os.pipe()
        for end in (self._reader, self.writer):
            os.set_blocking(end, False)

    def fileno(self) -> int:
        """Return the descriptor, which is readable once a report has arrived."""
        return self._reader

    def environment(self) -> dict[str, str]:
        """Return the environment variable that identifies the pipe to a worker."""
        status = os.fstat(self.writer)
        return {VARIABLE: f"{self.writer}:{status.st_dev}:{status.st_ino}"}

    def read(self) -> dict[int, float]:
        """Return the reports that have arrived: for each pid, the ``time.monotonic()`` of its exception."""
        with contextlib.suppress(BlockingIOError):
            data = os.read(self._reader, _MOST_READ // _REPORT.size * _REPORT.size)
            return dict(_REPORT.iter_unpack(data[: len(data) // _REPORT.size * _REPORT.size]))
        return {}

    def close(self) -> None:
        """Close both ends."""
        os.close(self._reader)
        os.close(self.writer)


def report_uncaught(place: str) -> None:
    """Install a hook that reports an uncaught exception, before it is printed, on the pipe that `place` identifies."""
    previous, pid = sys.excepthook, os.getpid()

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if os.getpid() == pid:  # a forked child is not the worker
            _report(place)
        previous(kind, error, trace)

    sys.excepthook = hook


def _report(place: str) -> None:
    # A program may inherit the variable but not the descriptor, and use its number for another file.
    with contextlib.suppress(OSError, ValueError):
        descriptor, device, inode = map(int, place.split(":"))
        status = os.fstat(descriptor)
        if (status.st_dev, status.st_ino) == (device, inode):
            os.write(descriptor, _REPORT.pack(os.getpid(), time.monotonic()))
