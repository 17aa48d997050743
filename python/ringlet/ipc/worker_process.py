"""Worker processes and their process group."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ringlet.ipc import exec_shim, process_group_reaper

# The shim and the reaper use neither environment variables nor installed packages.
_BARE = ("-I", "-S")
_START_SECONDS = 30.0


def signal_name(number: int) -> str:
    """Return the name of a signal."""
    try:
        return signal.Signals(number).name
    except ValueError:  # real-time signals have no names
        return f"signal {number}"


def ending_text(status: int) -> str:
    """Return text such as "exited with status 1" for a ``Popen.returncode``, which is negative for signals."""
    return f"exited with status {status}" if status >= 0 else f"was killed by {signal_name(-status)} (signal {-status})"


def shell_status(status: int) -> int:
    """Return the exit status that a shell reports for a ``Popen.returncode``."""
    return status if status >= 0 else 128 - status


@dataclass(eq=False)
class Worker:
    """The process of one worker.

    `status` is the ``Popen.returncode``, None while the process runs; `pidfd` is readable once the process has exited,
    None on systems without pidfds; `asked_at` is the time at which SIGTERM or SIGKILL was sent to it.
    """

    index: int
    process: subprocess.Popen[bytes]
    status: int | None = None
    pidfd: int | None = field(init=False)
    asked_at: float | None = None

    def __post_init__(self) -> None:
        self.pidfd = None
        with contextlib.suppress(AttributeError, OSError):  # not Linux, an old kernel, or a sandbox
            self.pidfd = os.pidfd_open(self.process.pid)

    def has_ended(self) -> bool:
        """Return whether the process has exited. If so, it is reaped and its pid may be reused."""
        if self.status is None:
            self.status = self.process.poll()
        return self.status is not None

    def signal(self, number: int) -> None:
        """Send a signal to the process, unless it was reaped."""
        if self.status is None:  # only this object reaps the process, so its pid is not reused
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(self.process.pid, number)

    def close(self) -> None:
        """Reap the process, which must have been killed or have exited, and close the pidfd."""
        if self.status is None:
            self.status = self.process.wait(_START_SECONDS)
        if self.pidfd is not None:
            os.close(self.pidfd)
            self.pidfd = None


class WorkerProcessGroup:
    """The process group of all workers and their children, which does not outlive this process.

    Its leader is a process that kills the group when this process exits for any reason.
    """

    def __init__(self) -> None:
        command = [sys.executable, *_BARE, str(Path(process_group_reaper.__file__)), str(os.getpid())]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.group = self._process.pid
        assert self._process.stdout is not None
        with _killed_on_error(self._process), self._process.stdout as stdout:
            if stdout.read(1) != b".":
                raise ChildProcessError(
                    f"the process that supervises the workers did not start: {sys.executable} "
                    f"{ending_text(self._process.wait(_START_SECONDS))}. To see its error, run {shlex.join(command)}"
                )

    def start(
        self, command: Sequence[str], environment: Mapping[str, str], *, cores: Sequence[int] = (), **streams: Any
    ) -> subprocess.Popen[bytes]:
        """Start a program in the group; `streams` are arguments of ``subprocess.Popen``.

        The command starts with the program's full path. The program runs only on `cores`, or on all cores if empty.
        """
        through = [sys.executable, *_BARE, str(Path(exec_shim.__file__)), str(os.getpid()), str(self.group)]
        bound = ",".join(map(str, cores))
        return subprocess.Popen([*through, bound, *command], env=dict(environment), **streams)

    def close(self) -> None:
        """Kill the remaining processes of the group, idempotently."""
        if self._process.returncode is None:  # not reaped: the group still owns the id, even if its leader was killed
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.group, signal.SIGKILL)
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait(_START_SECONDS)


@contextlib.contextmanager
def _killed_on_error(process: subprocess.Popen[bytes]) -> Any:
    try:
        yield
    except BaseException:
        process.kill()
        process.wait(_START_SECONDS)
        if process.stdin is not None:
            process.stdin.close()
        raise
