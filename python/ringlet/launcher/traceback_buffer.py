"""Traceback buffer: holds back a worker's final traceback, so that it can be shown last."""

from __future__ import annotations

import re

# Longest time from a final traceback to the exit of the interpreter; a traceback that was only logged is printed after
# this time.
HOLD_SECONDS = 2.0
_MOST_BYTES = 1 << 20

# First line of an uncaught exception, an exception group, a syntax error in a script, or a crash.
_BEGINNING = re.compile(
    rb"^(?:(?:  \+ Exception Group )?Traceback \(most recent call last\):|  File \"|Fatal Python error: )", re.MULTILINE
)
_HEADER = re.compile(r"^(?:Traceback \(most recent call last\):|  File \").*$", re.MULTILINE)
# Text between the tracebacks of chained exceptions.
_LINK = re.compile(
    r"^(?:The above exception was the direct cause of the following exception"
    r"|During handling of the above exception, another exception occurred):\n\n(?=Traceback )",
    re.MULTILINE,
)
# Prefix of the lines of an uncaught exception in a program that uses torch.distributed.
_TORCH_PREFIX = re.compile(rb"^\[rank\d+\]: ", re.MULTILINE)
_TRACEBACK = re.compile(r"^Traceback \(most recent call last\):$", re.MULTILINE)


class TracebackBuffer:
    """Forwards the lines of a standard error stream, except a traceback that may be the final one.

    Such a traceback is held back for `hold_seconds`, or until the worker exits if it has reported an uncaught
    exception; the caller then sets `is_final`. `text` contains the held lines, and `began` is the arrival time of the
    first held line, or None.
    """

    def __init__(self, hold_seconds: float = HOLD_SECONDS) -> None:
        self._hold_seconds = hold_seconds
        self.text = b""
        self.began: float | None = None
        self.last_line = b""
        self.is_final = False

    @property
    def due(self) -> float | None:
        """The time at which the held lines are shown; None if no lines are held, or if they are final."""
        return None if self.began is None or self.is_final else self.began + self._hold_seconds

    def feed(self, lines: bytes, now: float) -> bytes:
        """Add whole lines; return the lines to show now."""
        lines = _TORCH_PREFIX.sub(b"", lines)
        stripped = lines.rstrip()
        if stripped:
            self.last_line = stripped[stripped.rfind(b"\n") + 1 :]
        if self.began is None:
            beginning = _BEGINNING.search(lines)
            if beginning is None:
                return lines
            self.began = now
            shown, self.text = lines[: beginning.start()], lines[beginning.start() :]
        else:
            shown, self.text = b"", self.text + lines
        return shown if len(self.text) <= _MOST_BYTES else shown + self.release()

    def overdue(self, now: float) -> bytes:
        """Return and clear the held lines if they are due; else return no lines."""
        return self.release() if self.due is not None and now >= self.due else b""

    def release(self) -> bytes:
        """Return the held lines, and clear them."""
        text, self.text, self.began = self.text, b"", None
        return text


def exception_line(traceback: str) -> str:
    """Return the line of a traceback that names the exception, or an empty string; text may follow the line."""
    headers = list(_HEADER.finditer(traceback))
    lines = traceback[headers[-1].end() :].splitlines() if headers else traceback.splitlines()[:1]
    return next((line for line in lines if line.strip() and not line.startswith(" ")), "")


def first_exception_line(traceback: str) -> str:
    r"""Return the line that names the first exception in the last chain of exceptions.

    Examples
    --------
    >>> link = "\n\nDuring handling of the above exception, another exception occurred:\n\n"
    >>> head = "Traceback (most recent call last):\n  File ...\n"
    >>> first_exception_line(f"{head}KeyError: 1\n{head}OSError: 2{link}{head}ValueError: 3\n")
    'OSError: 2'
    """
    parts = _LINK.split(traceback)
    while len(parts) > 1 and len(_TRACEBACK.findall(parts[-1])) == 1:
        parts.pop()
    return exception_line(parts[-1])
