"""Requests to end this process: SIGTERM, and a function of the user that is polled."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

_log = logging.getLogger(__name__)
_POLL_SECONDS = 1.0
_ending: list[TerminationNotice] = []  # kept until the process exits, so that a second SIGTERM does not end it earlier


class TerminationConfig:
    """How a program is asked to end, and how it ends (``tf.distribute.experimental.TerminationConfig``).

    Parameters
    ----------
    termination_watcher_fn : callable, optional
        Polled every second by a thread: returns True once this machine will be preempted, for example after a request
        to its metadata server. SIGTERM is also a notice.
    exit_fn : callable, optional
        Called after the save; default: ``sys.exit(42)``. If it returns, training continues.
    grace_period : float, optional
        Seconds between the notice and the end of the machine. If positive, training continues after the save until
        shortly before that time, and ends after a second save. Default 0: save, then exit.
    save_fn : callable, optional
        Called instead of the manager's ``save``.

    Raises
    ------
    TypeError
        If one of the functions is not callable.

    Examples
    --------
    >>> import sys
    >>> TerminationConfig(exit_fn=lambda: sys.exit(75)).grace_period is None
    True
    """

    def __init__(
        self,
        termination_watcher_fn: Callable[[], Any] | None = None,
        exit_fn: Callable[[], Any] | None = None,
        grace_period: float | None = None,
        save_fn: Callable[..., Any] | None = None,
    ) -> None:
        self.termination_watcher_fn = termination_watcher_fn
        self.exit_fn = exit_fn
        self.grace_period = grace_period
        self.save_fn = save_fn
        for name in ("termination_watcher_fn", "exit_fn", "save_fn"):
            value = getattr(self, name)
            if value is not None and not callable(value):
                raise TypeError(f"{name} must be a function, got {value!r}: pass lambda: {value!r}, for example")


class TerminationNotice:
    """The time `at` (``time.monotonic()``) at which this process was first asked to end; None until then.

    While it exists, SIGTERM sets `at`, also repeatedly. Afterwards, and in forked children, SIGTERM has its previous
    effect.
    """

    def __init__(self, watch: Callable[[], Any] | None) -> None:
        self.at: float | None = None
        _ending.clear()
        self._is_over = threading.Event()
        weakref.finalize(self, self._is_over.set)
        if threading.current_thread() is threading.main_thread():
            self._handle_signal()
        elif watch is None:
            raise ValueError(
                f"SIGTERM is handled by the main thread only, and this is the thread "
                f"{threading.current_thread().name!r}: call this in the main thread, or pass a termination_watcher_fn"
            )
        if watch is not None:
            poll = (watch, weakref.ref(self), self._is_over)
            threading.Thread(target=_poll, args=poll, name="ringlet-termination", daemon=True).start()

    def keep_until_exit(self) -> None:
        """Ignore further signals: the process exits now."""
        _ending[:] = [self]

    def set(self) -> None:
        """Record that this process was asked to end."""
        self.at = self.at or time.monotonic()

    def close(self) -> None:
        """Restore the previous handling of SIGTERM and stop polling; without effect after `keep_until_exit`."""
        if self not in _ending:
            self._is_over.set()

    def _handle_signal(self) -> None:
        reference, process, is_over = weakref.ref(self), os.getpid(), self._is_over

        def handle(number: int, frame: FrameType | None) -> None:
            notice = reference()
            if notice is not None and not is_over.is_set() and os.getpid() == process:
                notice.set()
                return
            signal.signal(number, signal.SIG_DFL if previous is None else previous)
            os.kill(os.getpid(), number)

        previous = signal.signal(signal.SIGTERM, handle)


def _poll(
    watch: Callable[[], Any], reference: Callable[[], TerminationNotice | None], is_over: threading.Event
) -> None:
    last = ""
    while not is_over.is_set():
        try:
            is_asked = watch()
        except Exception as error:  # a server that does not answer once must not end the training
            is_asked, text = False, f"{type(error).__name__}: {error}"
            if text != last:
                _log.warning("termination_watcher_fn raised %s; it is called again every second", text)
            last = text
        if is_asked:
            notice = reference()
            if notice is not None:
                notice.set()
            return
        is_over.wait(_POLL_SECONDS)
