"""Worker processes, and the process group that they are in."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from ringlet.ipc import exec_shim, process_group_reaper

__all__ = ["Keeper", "Worker", "ending_text", "shell_status", "signal_name"]

# The programs of two files need nothing of the environment and of the installed packages.
_BARE = ("-I", "-S")
_START_SECONDS = 30.0


def signal_name(number: int) -> str:
    """Give the name of a signal.

    Examples
    --------
    >>> signal_name(9)
    'SIGKILL'
    """
    try:
        return signal.Signals(number).name
    except ValueError:  # real-time signals have numbers only
        return f"signal {number}"


def ending_text(status: int) -> str:
    """Say how a process ended.

    Parameters
    ----------
    status : int
        As ``Popen.returncode`` has it: negative for signals.

    Returns
    -------
    str

    Examples
    --------
    >>> ending_text(3), ending_text(-9)
    ('exited with status 3', 'was killed by SIGKILL (signal 9)')
    """
    return f"exited with status {status}" if status >= 0 else f"was killed by {signal_name(-status)} (signal {-status})"


def shell_status(status: int) -> int:
    """Give the exit status by which a shell would tell of that end.

    Examples
    --------
    >>> shell_status(3), shell_status(-9)
    (3, 137)
    """
    return status if status >= 0 else 128 - status


@dataclass(eq=False)
class Worker:
    """The process of one worker, from its start until it was waited for.

    Attributes
    ----------
    index : int
    process : Popen
    status : int or None
        As ``Popen.returncode``; None while it runs.
    pidfd : int or None
        Can be read once the process has ended; None where the system has no such thing.
    asked_at : float or None
        When it was asked to end, or killed; None if nobody has.
    """

    index: int
    process: subprocess.Popen[bytes]
    status: int | None = None
    pidfd: int | None = field(init=False)
    asked_at: float | None = None

    def __post_init__(self) -> None:
        self.pidfd = None
        with contextlib.suppress(AttributeError, OSError):  # no Linux, an old one, or a sandbox
            self.pidfd = os.pidfd_open(self.process.pid)

    def has_ended(self) -> bool:
        """Look whether the process has ended; from then on its number belongs to others."""
        if self.status is None:
            self.status = self.process.poll()
        return self.status is not None

    def signal(self, number: int) -> None:
        """Send a signal to the process, unless it has ended."""
        if self.status is None:  # nobody else waits for it: the number is still its own
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(self.process.pid, number)

    def close(self) -> None:
        """Give back what the system keeps for the process, after it was made sure that it ends."""
        if self.status is None:
            self.status = self.process.wait(_START_SECONDS)
        if self.pidfd is not None:
            os.close(self.pidfd)
            self.pidfd = None


class Keeper:
    """The process group of all workers and of what they start, which does not outlive this process.

    It is led by a process of ours, which kills the group when this process has gone, however that came.
    """

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, *_BARE, str(Path(process_group_reaper.__file__)), str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.group = self._process.pid
        with _ended_on_error(self._process), _taken(self._process.stdout) as said:
            if said.read(1) != b".":
                raise ChildProcessError(
                    f"the process that looks after the workers did not start: {sys.executable} "
                    f"{ending_text(self._process.wait(_START_SECONDS))}"
                )

    def start(self, command: Sequence[str], environment: Mapping[str, str], **streams: Any) -> subprocess.Popen[bytes]:
        """Start a program in the group.

        Parameters
        ----------
        command : sequence of str
            The program, with its full path, and its arguments.
        environment : mapping of str to str
        **streams
            ``stdin``, ``stdout``, ``stderr`` and ``pass_fds`` of ``subprocess.Popen``.

        Returns
        -------
        Popen

        Raises
        ------
        OSError
            If the system has no more processes or descriptors to give.
        """
        through = [sys.executable, *_BARE, str(Path(exec_shim.__file__)), str(os.getpid()), str(self.group)]
        return subprocess.Popen([*through, *command], env=dict(environment), **streams)

    def close(self) -> None:
        """Kill what is left of the group; once is enough."""
        if self._process.returncode is None:  # not waited for: the number is the group's, also where somebody killed it
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.group, signal.SIGKILL)
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait(_START_SECONDS)


@contextlib.contextmanager
def _ended_on_error(process: subprocess.Popen[bytes]) -> Any:
    try:
        yield
    except BaseException:
        process.kill()
        process.wait(_START_SECONDS)
        if process.stdin is not None:
            process.stdin.close()
        raise


def _taken(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream
