"""Non-blocking writer: writes to a descriptor without blocking the caller if the reader is slow."""

from __future__ import annotations

import errno
import os
import threading
from collections import deque

_PIECE_BYTES = 1 << 16


class NonblockingWriter:
    """Writes to a descriptor in a separate thread, in call order; the caller closes the descriptor.

    A stopped terminal or pager blocks only this thread, not the supervisor of the processes. The descriptor stays in
    blocking mode, because other programs share its mode. `backlog` is the number of bytes not yet written. After an
    `error` such as EPIPE or ENOSPC, all later data is dropped.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._queue: deque[bytes] = deque()
        self._changed = threading.Condition()
        self.backlog = 0
        self.error: OSError | None = None
        try:
            threading.Thread(target=self._run, name="ringlet-writer", daemon=True).start()
        except RuntimeError as error:
            raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from error

    def write(self, data: bytes) -> None:
        """Queue bytes to be written."""
        if not data or self.error is not None:
            return
        with self._changed:
            self._queue.append(data)
            self.backlog += len(data)
            self._changed.notify_all()

    def flush(self, timeout_seconds: float) -> bool:
        """Wait until all data is written; return False if no data was written for `timeout_seconds`."""
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
        except BlockingIOError:  # another program has made the descriptor non-blocking
            threading.Event().wait(0.01)
            count = 0
        except OSError as error:
            self.error = error
            count = len(data)
        with self._changed:
            self.backlog -= count
            self._changed.notify_all()
        return count
