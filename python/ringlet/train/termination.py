"""Termination notices to this process: SIGTERM, and a function of the program that is polled."""

from __future__ import annotations

import logging
import math
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
# Maximum time between a signal to a forked child and the same signal to its parent.
_GROUP_SECONDS = 0.2
# Delay before a child handles a second signal, which may be for the child alone; the last step is done by then.
_MERGED_SECONDS = 5.0
_ending: list[TerminationNotice] = []  # kept until the process exits, so that a second SIGTERM does not end it earlier


class TerminationConfig:
    """Sources of termination notices, and reactions to them (``tf.distribute.experimental.TerminationConfig``).

    Parameters
    ----------
    termination_watcher_fn : callable, optional
        Polled every second by a thread: returns True once this machine will be preempted, for example after a request
        to its metadata server. SIGTERM is also a notice.
    exit_fn : callable, optional
        Called after the save; default: ``sys.exit(42)``. If it returns, training continues.
    grace_period : float, optional
        Seconds from the notice to the shutdown of the machine. If positive, training continues after the save until
        shortly before the shutdown, and ends with a second save. Default 0: save, then exit.
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


class _SignalLog:
    """Log of the signal numbers that this process received, in memory shared with forked children.

    Normally Python's C handler writes it, so that a signal is logged even during a long call to a library. Byte 0 is 1
    while at least one TerminationNotice is open.
    """

    def __init__(self) -> None:
        # In a forked child: the number of logged SIGTERMs at the last check, and the time of that check.
        self._num_seen, self._seen_at = 0, -math.inf
        self.is_written_by_python = False
        self._process, self.notices = os.getpid(), set[Any]()
        self._descriptor = _file_in_memory()
        self._status = os.fstat(self._descriptor)
        os.write(self._descriptor, b"\0")

    def is_mine(self) -> bool:
        """Return whether this process writes the log; false in children, and if the program closed its descriptor."""
        try:
            return self._process == os.getpid() and os.path.samestat(self._status, os.fstat(self._descriptor))
        except OSError:
            return False

    def begin(self, notice: Any) -> None:
        self.notices.add(notice)
        os.pwrite(self._descriptor, b"\1", 0)
        if threading.current_thread() is threading.main_thread():
            other = signal.set_wakeup_fd(self._descriptor, warn_on_full_buffer=False)
            self.is_written_by_python = other in (-1, self._descriptor)
            if not self.is_written_by_python:
                signal.set_wakeup_fd(other)

    def end(self, notices: set[Any]) -> None:
        self.notices -= notices
        if self.notices or not self.is_mine():
            return
        os.pwrite(self._descriptor, b"\0", 0)
        if self.is_written_by_python and threading.current_thread() is threading.main_thread():
            self.is_written_by_python = False
            other = signal.set_wakeup_fd(-1)
            if other != self._descriptor:
                signal.set_wakeup_fd(other)

    def add(self) -> None:
        """Record a SIGTERM if Python's C handler does not."""
        if not self.is_written_by_python:
            os.write(self._descriptor, bytes([signal.SIGTERM]))

    def read_by_child(self) -> None:
        """Prepare the log in a forked child, which only reads it."""
        if self.is_written_by_python:
            signal.set_wakeup_fd(-1)
        self._num_seen = self._count()[1]

    def is_of_parent(self) -> bool:
        """Return whether the parent has a notice, and also receives the SIGTERM that this child has received."""
        if self._count()[0] == 0:
            return False
        now = time.monotonic()
        while (found := self._count())[1] <= self._num_seen:
            if time.monotonic() < now + _GROUP_SECONDS:
                time.sleep(0.005)
            elif now > self._seen_at + _GROUP_SECONDS:
                return False
            else:  # The parent received two signals as one, or the signal is for the child alone, which handles it.
                timer = threading.Timer(_MERGED_SECONDS, os.kill, (os.getpid(), signal.SIGTERM))
                timer.daemon = True
                timer.start()
                break
        self._num_seen, self._seen_at = found[1], now
        return found[0] == 1

    def _count(self) -> tuple[int, int]:
        try:
            content = os.pread(self._descriptor, 1 << 24, 0)
        except OSError:  # the program closed the descriptor
            return 0, 0
        return content[0], content.count(signal.SIGTERM, 1)


def _file_in_memory() -> int:
    if hasattr(os, "memfd_create"):
        descriptor: int = os.memfd_create("ringlet-signals")
    else:
        import tempfile

        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.set_blocking(descriptor, False)  # required by signal.set_wakeup_fd
    return descriptor


class _Logs:
    def __init__(self) -> None:
        self.parents: _SignalLog | None = None
        self._mine = _SignalLog()

    @property
    def mine(self) -> _SignalLog:
        if not self._mine.is_mine():
            self._mine = _SignalLog()
        return self._mine

    def prepare_fork(self) -> None:
        self._mine = self.mine

    def enter_child(self) -> None:
        self.parents = self._mine
        self.parents.read_by_child()

    def is_of_parent(self) -> bool:
        """Return whether the SIGTERM that this process has received was also sent to its parent."""
        return self.parents is not None and self.parents.is_of_parent()


_logs = _Logs()
# Registered at import, so that a child forked before the first notice also shares the log.
os.register_at_fork(before=_logs.prepare_fork, after_in_child=_logs.enter_child)


def protect_loader_process(worker_id: int = 0) -> None:
    """Ignore SIGTERM in a forked child if its parent also receives SIGTERM, and so needs the child for one more step.

    Processes forked during :func:`~ringlet.train.resume` do not need this call, unless they replace the handler, as the
    workers of PyTorch's ``DataLoader`` do: pass this function as ``worker_init_fn`` of the DataLoader.
    SIGTERM to the child alone has its previous effect.

    Parameters
    ----------
    worker_id : int
        Ignored.

    Raises
    ------
    ValueError
        If this is not the main thread.

    Examples
    --------
    >>> import multiprocessing
    >>> import ringlet
    >>> context = multiprocessing.get_context("fork")
    >>> with context.Pool(1, initializer=ringlet.train.protect_loader_process) as pool:
    ...     pool.map(abs, [-1, 2])
    [1, 2]
    """
    previous = signal.getsignal(signal.SIGTERM)

    def handle(number: int, frame: FrameType | None) -> None:
        if not _logs.is_of_parent():
            _handle_as(previous, number)

    signal.signal(signal.SIGTERM, handle)


def _handle_as(previous: Any, number: int) -> None:
    signal.signal(number, signal.SIG_DFL if previous is None else previous)
    os.kill(os.getpid(), number)


class TerminationNotice:
    """Records in `at` the ``time.monotonic()`` of the first request to terminate this process; None until then.

    If created in the main thread, SIGTERM sets `at` and does nothing else until this object is closed or deleted.
    Afterwards SIGTERM has its previous effect.
    Forked children, such as loader processes, ignore a SIGTERM that this process also receives, for example as part of
    a process group or a Slurm step: they are needed for the last step. SIGTERM to a child alone has its previous
    effect.
    """

    def __init__(self, watch: Callable[[], Any] | None) -> None:
        self.at: float | None = None
        _ending.clear()
        if threading.current_thread() is not threading.main_thread() and watch is None:
            raise ValueError(
                "SIGTERM is handled by the main thread only, but this is the thread "
                f"{threading.current_thread().name!r}: create the handler in the main thread, or pass a "
                "termination_watcher_fn"
            )
        self._is_over, self._log = threading.Event(), _logs.mine
        self._log.begin(self._is_over)
        self._end = weakref.finalize(self, _end, self._is_over, self._log)
        if threading.current_thread() is threading.main_thread():
            self._handle_signal()
        if watch is not None:
            poll = (watch, weakref.ref(self), self._is_over)
            threading.Thread(target=_poll, args=poll, name="ringlet-termination", daemon=True).start()

    def keep_until_exit(self) -> None:
        """Ignore further signals, because the process exits now; its children exit when they receive a signal."""
        _ending[:] = [self]
        self._log.end(self._log.notices)

    def set(self) -> None:
        """Record a request to terminate."""
        self.at = self.at or time.monotonic()

    def close(self) -> None:
        """Restore the previous handling of SIGTERM and stop polling; no effect after `keep_until_exit`."""
        if self not in _ending:
            self._end()

    def _handle_signal(self) -> None:
        reference, process, is_over = weakref.ref(self), os.getpid(), self._is_over

        def handle(number: int, frame: FrameType | None) -> None:
            notice, is_child = reference(), os.getpid() != process
            if is_child and _logs.is_of_parent():
                return
            if not is_child and notice is not None and not is_over.is_set():
                notice._log.add()
                notice.set()
                return
            _handle_as(previous, number)

        previous = signal.signal(signal.SIGTERM, handle)


def _end(is_over: threading.Event, log: _SignalLog) -> None:
    is_over.set()
    log.end({is_over})


def _poll(
    watch: Callable[[], Any], reference: Callable[[], TerminationNotice | None], is_over: threading.Event
) -> None:
    last = ""
    while not is_over.is_set():
        try:
            is_asked = watch()
        except Exception as error:  # a single failed request to a server must not end the training
            is_asked, text = False, f"{type(error).__name__}: {error}"
            if text != last:
                _log.warning("termination_watcher_fn raised %s; it will be called again in 1 s", text)
            last = text
        if is_asked:
            notice = reference()
            if notice is not None:
                notice.set()
            return
        is_over.wait(_POLL_SECONDS)
