"""Signals received by the launcher, and the settings of its terminal."""

from __future__ import annotations

import contextlib
import os
import signal
import termios
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

from ringlet.launcher.supervisor import Supervisor

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PASSED_ON = (signal.SIGUSR1, signal.SIGUSR2)


class Signals:
    """Context manager that records signals; `process` forwards them to the workers.

    Handlers only record signals, which the caller processes between two steps of the supervisor; `received` is the
    first terminating signal. A signal in `actions` is not forwarded: its function is called instead. Signals that were
    ignored when the launcher was started (``nohup``, a shell's background jobs) stay ignored.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self.actions: dict[int, Callable[[], object]] = {}
        self._noted: list[int] = []
        self._replaced: dict[int, Any] = {}

    def __enter__(self) -> Signals:
        self._pipe = os.pipe()
        for end in self._pipe:
            os.set_blocking(end, False)
        self._old_wakeup_fd = signal.set_wakeup_fd(self._pipe[1], warn_on_full_buffer=False)
        # SIGCHLD must not be ignored, because the system would then discard exit statuses.
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
        signal.set_wakeup_fd(self._old_wakeup_fd)
        for end in self._pipe:
            os.close(end)

    def fileno(self) -> int:
        """Return the descriptor, which is readable after a signal."""
        return self._pipe[0]

    @property
    def is_asked_to_end(self) -> bool:
        """Whether a terminating signal was received, processed or not."""
        return self.received is not None or any(number in _ENDING for number in self._noted)

    def process(self, supervisor: Supervisor) -> None:
        """Process the recorded signals."""
        with contextlib.suppress(BlockingIOError):
            os.read(self._pipe[0], 1 << 12)
        while self._noted:
            self._act_on(self._noted.pop(0), supervisor)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._noted.append(number)

    def _act_on(self, number: int, supervisor: Supervisor) -> None:
        if number == signal.SIGTSTP:
            self._stop(supervisor)
        elif number in self.actions:
            self.actions[number]()
        elif number in _PASSED_ON:
            supervisor.pass_on(number)
        elif number == signal.SIGINT and self.received is not None:
            supervisor.kill()
        else:
            self.received = self.received or number
            supervisor.ask_to_end(number)

    def _stop(self, supervisor: Supervisor) -> None:
        """Stop this process with all workers; after SIGCONT, continue them."""
        supervisor.pass_on(signal.SIGSTOP)
        handler = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)  # kill() returns once this process is continued
        signal.signal(signal.SIGTSTP, handler)
        supervisor.pass_on(signal.SIGCONT)


class Terminal:
    """Saves and restores the settings of the terminal, which a killed worker may have changed."""

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
            # Only in the foreground: otherwise SIGTTOU would stop the process.
            if os.tcgetpgrp(self._descriptor) == os.getpgrp() and termios.tcgetattr(self._descriptor) != self._settings:
                termios.tcsetattr(self._descriptor, termios.TCSADRAIN, self._settings)
        os.close(self._descriptor)
