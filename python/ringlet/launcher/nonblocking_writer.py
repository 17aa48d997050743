"""Writing to a descriptor whose reader may be slow, without waiting for it."""

from __future__ import annotations

import errno
import os
import threading
from collections import deque

__all__ = ["Screen"]

_PIECE_BYTES = 1 << 16


class Screen:
    """Writes to a descriptor, on a thread of its own, in the order of the calls.

    A terminal that is stopped, or a pager that nobody scrolls, holds up the thread alone: whoever looks after processes
    must not wait. The descriptor is not made non-blocking, since other programs share that.

    Parameters
    ----------
    descriptor : int
        Not taken over.

    Attributes
    ----------
    error : OSError or None
        Why nothing can be written any more: nobody reads, the disk is full. All that is written then is dropped.

    Raises
    ------
    OSError
        If the system has no thread to give.

    Examples
    --------
    >>> import os
    >>> reader, writer = os.pipe()
    >>> screen = Screen(writer)
    >>> screen.write(b"one line, ")
    >>> screen.write(b"whole")
    >>> screen.flush(10.0)
    True
    >>> os.read(reader, 100)
    b'one line, whole'
    >>> os.close(reader)
    >>> os.close(writer)
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._queue: deque[bytes] = deque()
        self._changed = threading.Condition()
        self.backlog = 0
        self.error: OSError | None = None
        try:
            threading.Thread(target=self._run, name="ringlet-screen", daemon=True).start()
        except RuntimeError as error:
            raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from error

    def write(self, data: bytes) -> None:
        """Have bytes written soon."""
        if not data or self.error is not None:
            return
        with self._changed:
            self._queue.append(data)
            self.backlog += len(data)
            self._changed.notify_all()

    def flush(self, timeout_seconds: float) -> bool:
        """Wait until everything is written, for as long as something is written in that time.

        Returns
        -------
        bool
            Whether everything is.
        """
        with self._changed:
            while self.backlog:
                before = self.backlog
                self._changed.wait(timeout_seconds)
                if self.backlog == before:
                    return False
        return True

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue)
                data = memoryview(self._queue.popleft())
            while data:
                data = data[self._written(data[:_PIECE_BYTES]) :]

    def _written(self, data: memoryview) -> int:
        try:
            count = os.write(self._descriptor, data)
        except BlockingIOError:  # somebody else has made it non-blocking
            threading.Event().wait(0.01)
            count = 0
        except OSError as error:
            self.error = error
            count = len(data)
        with self._changed:
            self.backlog -= count
            self._changed.notify_all()
        return count
