"""Signals that the launcher receives, and the state of the terminal that it was started from."""

from __future__ import annotations

import contextlib
import os
import signal
import termios
from types import FrameType, TracebackType
from typing import Any

from ringlet.launcher.supervisor import Supervisor

__all__ = ["Signals", "Terminal"]

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PASSED_ON = (signal.SIGUSR1, signal.SIGUSR2)


class Signals:
    """Notes signals while it is entered, and passes them on to the workers between two turns of their supervisor.

    A handler only notes which signal has come: what it says to whom is decided where nobody is in the middle of
    something. Signals that were ignored when the launcher was started (``nohup``, a shell's background jobs) stay so.

    Attributes
    ----------
    received : int or None
        The first signal that asked all workers to end.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._noted: list[int] = []
        self._replaced: dict[int, Any] = {}

    def __enter__(self) -> Signals:
        self._bell = os.pipe()
        for end in self._bell:
            os.set_blocking(end, False)
        self._old_bell = signal.set_wakeup_fd(self._bell[1], warn_on_full_buffer=False)
        # Where this is ignored, the system forgets how workers ended.
        self._replaced[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number in (*_ENDING, *_PASSED_ON, signal.SIGTSTP):
            if signal.getsignal(number) != signal.SIG_IGN:
                self._replaced[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._replaced.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._old_bell)
        for end in self._bell:
            os.close(end)

    def fileno(self) -> int:
        """Return a descriptor that can be read when a signal has come."""
        return self._bell[0]

    @property
    def is_asked_to_end(self) -> bool:
        """Whether a signal has come that asks for the end, dealt with or not."""
        return self.received is not None or any(number in _ENDING for number in self._noted)

    def deal_with(self, supervisor: Supervisor) -> None:
        """Do what the signals ask for that have come since the last time."""
        with contextlib.suppress(BlockingIOError):
            os.read(self._bell[0], 1 << 12)
        while self._noted:
            self._act_on(self._noted.pop(0), supervisor)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._noted.append(number)

    def _act_on(self, number: int, supervisor: Supervisor) -> None:
        if number == signal.SIGTSTP:
            self._stop(supervisor)
        elif number in _PASSED_ON:
            supervisor.pass_on(number)
        elif number == signal.SIGINT and self.received is not None:
            supervisor.kill()
        else:
            self.received = self.received or number
            supervisor.ask_to_end(number)

    def _stop(self, supervisor: Supervisor) -> None:
        """Stop with all workers, and go on with them."""
        supervisor.pass_on(signal.SIGSTOP)
        handler = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)  # returns once this process is continued
        signal.signal(signal.SIGTSTP, handler)
        supervisor.pass_on(signal.SIGCONT)


class Terminal:
    """Remembers the settings of the terminal, and restores them: a worker that was killed may have changed them."""

    def __init__(self) -> None:
        self._descriptor: int | None = None

    def __enter__(self) -> Terminal:
        with contextlib.suppress(OSError, termios.error):
            self._descriptor = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
            self._settings = termios.tcgetattr(self._descriptor)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._descriptor is None:
            return
        with contextlib.suppress(OSError, termios.error):
            # From the background this would stop the process.
            if os.tcgetpgrp(self._descriptor) == os.getpgrp() and termios.tcgetattr(self._descriptor) != self._settings:
                termios.tcsetattr(self._descriptor, termios.TCSADRAIN, self._settings)
        os.close(self._descriptor)
