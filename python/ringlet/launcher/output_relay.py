"""Output relay: reads a worker's standard output or standard error, and writes it with a prefix."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from ringlet.launcher.traceback_buffer import TracebackBuffer

# A carriage return restarts the line: the text before it is overwritten.
_OVERWRITTEN = re.compile(rb"^[^\n]*\r(?=[^\r\n])", re.MULTILINE)
_TRAILING = re.compile(rb"\r+$", re.MULTILINE)


class LineSplitter:
    r"""Collects bytes of any encoding until their line is complete; a line of more than `longest` bytes may be split.

    For a line that carriage returns restart, such as a progress bar, only the last state is kept.

    Examples
    --------
    >>> splitter = LineSplitter()
    >>> splitter.feed(b"step 1\nste"), splitter.feed(b"p 2\n")
    (b'step 1\n', b'step 2\n')
    >>> splitter.feed(b"\r 10 %\r 20 %"), splitter.state
    (b'', b' 20 %')
    >>> splitter.feed(b"\r100 %\n")
    b'100 %\n'
    """

    def __init__(self, longest: int = 1 << 22) -> None:
        self._longest = longest
        self._pieces: list[bytes] = []
        self._size = 0
        self._starts_anew = False

    @property
    def state(self) -> bytes:
        """The visible text of an incomplete line that was restarted; empty for other lines."""
        return _shown(b"".join(self._pieces)) if self._starts_anew else b""

    def feed(self, data: bytes) -> bytes:
        """Add bytes of the stream; return the lines that they complete."""
        cut = data.rfind(b"\n") + 1
        if not cut:
            return self._keep(data)
        whole = _shown(b"".join((*self._pieces, data[:cut])))
        self._clear()
        return whole + self._keep(data[cut:])

    def end(self) -> bytes:
        """Return the incomplete last line of the stream, with a newline added; empty if the last line is complete."""
        rest = _shown(b"".join(self._pieces))
        self._clear()
        return rest + b"\n" if rest else b""

    def _keep(self, data: bytes) -> bytes:
        if data:
            self._pieces.append(data)
            self._size += len(data)
        if b"\r" in data:
            self._starts_anew = True
            visible = _OVERWRITTEN.sub(b"", b"".join(self._pieces))
            self._pieces, self._size = [visible], len(visible)
        return self.end() if self._size > self._longest else b""

    def _clear(self) -> None:
        self._pieces, self._size, self._starts_anew = [], 0, False


def prefixed(lines: bytes, prefix: bytes) -> bytes:
    """Insert a prefix before each line of `lines`, which ends with a newline."""
    return prefix + lines[:-1].replace(b"\n", b"\n" + prefix) + b"\n" if lines else b""


def _shown(lines: bytes) -> bytes:
    return _TRAILING.sub(b"", _OVERWRITTEN.sub(b"", lines)) if b"\r" in lines else lines


_PIECE_BYTES = 1 << 18

# Colours that are legible on light and dark backgrounds (ECMA-48, SGR): cyan, magenta, green, yellow, blue, red.
_COLORS = (36, 35, 32, 33, 34, 31)


def prefix_of(worker: int) -> bytes:
    """Return the prefix of a worker's output lines."""
    return b"[w%d] " % worker


def colored_prefix(worker: int) -> bytes:
    """Return the prefix for terminals, in a colour that differs from the colours of neighbouring workers."""
    return b"\x1b[%dm[w%d]\x1b[0m " % (_COLORS[worker % len(_COLORS)], worker)


class OutputChannel:
    """Reads a stream of a worker, and writes its lines with a prefix once they are complete; owns the descriptor.

    For standard error, `words` holds back tracebacks. While a line is incomplete, the progress bar in it is shown every
    `state_seconds`.
    """

    def __init__(
        self,
        worker: int,
        descriptor: int,
        prefix: bytes,
        write: Callable[[bytes], object],
        *,
        words: TracebackBuffer | None = None,
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
        """Return the descriptor."""
        return self._descriptor

    def read(self, now: float) -> bool:
        """Read once, and write the complete lines; return False at the end of the stream."""
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
        """Write the worker's last line if it is incomplete."""
        self._show(self._lines.end(), now)
        self._state_due = None
        self._has_worker_ended = True

    def tick(self, now: float) -> float | None:
        """Write the lines that are due; return the time at which the next lines are due, if any."""
        if self._state_due is not None and now >= self._state_due:
            self._show_state(now)
        if self.words is not None and not self._has_worker_ended:
            self._write(prefixed(self.words.overdue(now), self._prefix))
        word_due = None if self.words is None or self._has_worker_ended else self.words.due
        return min((at for at in (self._state_due, word_due) if at is not None), default=None)

    def close(self) -> None:
        """Write the incomplete last line, and close the descriptor; idempotent."""
        if self._descriptor >= 0:
            self._show(self._lines.end(), 0.0)
            os.close(self._descriptor)
            self._descriptor = -1

    def show_traceback(self) -> None:
        """Write the traceback that was held back, if any."""
        if self.words is not None:
            self._write(prefixed(self.words.release(), self._prefix))

    def _show_state(self, now: float) -> None:
        state = self._lines.state
        if state.strip() and state + b"\n" != self._shown_state:
            self._shown_state = state + b"\n"
            self._show(self._shown_state, now)
        self._state_due = now + self._state_seconds

    def _show(self, lines: bytes, now: float) -> None:
        # Output of a worker's children after its exit is not part of its traceback.
        if self.words is not None and not self._has_worker_ended:
            lines = self.words.feed(lines, now)
        self._write(prefixed(lines, self._prefix))
