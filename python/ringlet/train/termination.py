"""Requests to end this process: SIGTERM, and a function of the user that is polled."""

from __future__ import annotations

import logging
import mmap
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
# Time in which a forked child waits for the parent to receive the signal, too.
_GROUP_SECONDS = 0.2
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

    While it exists, SIGTERM sets `at`, also repeatedly. Afterwards it has its previous effect. Forked children, such as
    loader processes, ignore a signal that this process receives, too, as part of a process group or a Slurm step: they
    are needed for the last step. A signal to a child alone has its previous effect.
    """

    def __init__(self, watch: Callable[[], Any] | None) -> None:
        self.at: float | None = None
        self._shared = mmap.mmap(-1, 2)  # with children: number of signals, modulo 256; whether it has ended
        _ending.clear()
        self._is_over = threading.Event()
        self._end = weakref.finalize(self, _end, self._is_over, self._shared)
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
        self._shared[1] = 1

    def set(self) -> None:
        """Record that this process was asked to end."""
        self.at = self.at or time.monotonic()

    def close(self) -> None:
        """Restore the previous handling of SIGTERM and stop polling; without effect after `keep_until_exit`."""
        if self not in _ending:
            self._end()

    def _handle_signal(self) -> None:
        reference, process, is_over, shared = weakref.ref(self), os.getpid(), self._is_over, self._shared
        count = 0  # of signals that this process, or a child, has received

        def is_of_parent() -> bool:
            until = time.monotonic() + _GROUP_SECONDS
            while shared[0] == count and time.monotonic() < until:
                time.sleep(0.005)
            return shared[0] != count and not shared[1]

        def handle(number: int, frame: FrameType | None) -> None:
            nonlocal count
            notice, is_child = reference(), os.getpid() != process
            if notice is not None and not is_over.is_set() and (not is_child or is_of_parent()):
                count = (count + 1) % 256
                if not is_child:
                    shared[0] = count
                    notice.set()
                return
            signal.signal(number, signal.SIG_DFL if previous is None else previous)
            os.kill(os.getpid(), number)

        previous = signal.signal(signal.SIGTERM, handle)


def _end(is_over: threading.Event, shared: mmap.mmap) -> None:
    is_over.set()
    shared[1] = 1


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
