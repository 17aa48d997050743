"""The receiving end of a worker's standard output, or standard error."""

from __future__ import annotations

import os
from collections.abc import Callable

from ringlet.launcher.line_splitter import LineSplitter, prefixed
from ringlet.launcher.traceback_buffer import LastWords

__all__ = ["OutputChannel", "colored_prefix", "prefix_of"]

_PIECE_BYTES = 1 << 18

# Colours that can be read on light and on dark ground (ECMA-48, SGR): cyan, magenta, green, yellow, blue, red.
_COLORS = (36, 35, 32, 33, 34, 31)


def prefix_of(worker: int) -> bytes:
    """Give what stands before each line of a worker.

    Examples
    --------
    >>> prefix_of(2)
    b'[w2] '
    """
    return b"[w%d] " % worker


def colored_prefix(worker: int) -> bytes:
    r"""Give the same, in a colour that neighbours do not have, for terminals.

    Examples
    --------
    >>> colored_prefix(2)
    b'\x1b[32m[w2]\x1b[0m '
    """
    return b"\x1b[%dm[w%d]\x1b[0m " % (_COLORS[worker % len(_COLORS)], worker)


class OutputChannel:
    """Reads one stream of a worker, and writes its lines with a prefix.

    Parameters
    ----------
    worker : int
    descriptor : int
        Of the pipe; taken over.
    prefix : bytes
    write : callable
        Takes whole lines.
    words : LastWords, optional
        Where the stream is standard error.
    state_seconds : float
        A line that is started anew again and again is shown so often while it is not complete.
    """

    def __init__(
        self,
        worker: int,
        descriptor: int,
        prefix: bytes,
        write: Callable[[bytes], object],
        *,
        words: LastWords | None = None,
        state_seconds: float = 10.0,
    ) -> None:
        self.worker = worker
        self.words = words
        self._descriptor = descriptor
        self._prefix = prefix
        self._write = write
        self._lines = LineSplitter()
        self._state_seconds = state_seconds
        self._state_due: float | None = None
        self._shown_state = b""
        self._has_worker_ended = False
        os.set_blocking(descriptor, False)

    def fileno(self) -> int:
        """Give the descriptor."""
        return self._descriptor

    def read(self, now: float) -> bool:
        """Read once, and write what is complete."""
        data = os.read(self._descriptor, _PIECE_BYTES)
        lines = self._lines.feed(data) if data else self._lines.end()
        if lines:
            self._show(lines.removeprefix(self._shown_state), now)
            self._shown_state = b""
        if not self._lines.state:
            self._state_due = None
        elif self._state_due is None:
            self._state_due = now + self._state_seconds
        return bool(data)

    def worker_ended(self, now: float) -> None:
        """Write the line that the worker has left incomplete."""
        self._show(self._lines.end(), now)
        self._state_due = None
        self._has_worker_ended = True

    def tick(self, now: float) -> float | None:
        """Write what has waited for long enough; tell when the next is due."""
        if self._state_due is not None and now >= self._state_due:
            self._show_state(now)
        if self.words is not None and not self._has_worker_ended:
            self._write(prefixed(self.words.overdue(now), self._prefix))
        word_due = None if self.words is None or self._has_worker_ended else self.words.due
        return min((at for at in (self._state_due, word_due) if at is not None), default=None)

    def close(self) -> None:
        """Write what is left, and give the descriptor back; once is enough."""
        if self._descriptor >= 0:
            self._show(self._lines.end(), 0.0)
            os.close(self._descriptor)
            self._descriptor = -1

    def show_last_words(self) -> None:
        """Write what was kept back."""
        if self.words is not None:
            self._write(prefixed(self.words.release(), self._prefix))

    def _show_state(self, now: float) -> None:
        state = self._lines.state
        if state.strip() and state + b"\n" != self._shown_state:
            self._shown_state = state + b"\n"
            self._show(self._shown_state, now)
        self._state_due = now + self._state_seconds

    def _show(self, lines: bytes, now: float) -> None:
        # What others write to the stream after their worker has ended is none of its last words.
        if self.words is not None and not self._has_worker_ended:
            lines = self.words.feed(lines, now)
        self._write(prefixed(lines, self._prefix))
