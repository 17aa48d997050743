"""The traceback with which a worker ends, kept back so that it can be shown last."""

from __future__ import annotations

import re

__all__ = ["LastWords", "exception_line", "first_exception_line"]

# How long a worker may live on after a traceback that nevertheless is its last words: an interpreter has work to do
# while it ends. A traceback that a program only logs is seen so much later.
HOLD_SECONDS = 2.0
_MOST_BYTES = 1 << 20

# How Python begins to tell of an uncaught exception, of a group of them, of a syntax error in a script, of a crash.
_BEGINNING = re.compile(
    rb"^(?:(?:  \+ Exception Group )?Traceback \(most recent call last\):|  File \"|Fatal Python error: )", re.MULTILINE
)
_HEADER = re.compile(r"^(?:Traceback \(most recent call last\):|  File \").*$", re.MULTILINE)
# What stands between the tracebacks of exceptions that came of each other.
_LINK = re.compile(
    r"^(?:The above exception was the direct cause of the following exception"
    r"|During handling of the above exception, another exception occurred):\n\n(?=Traceback )",
    re.MULTILINE,
)
_TRACEBACK = re.compile(r"^Traceback \(most recent call last\):$", re.MULTILINE)


class LastWords:
    r"""Passes on the lines of a standard error stream, but keeps back what may be the end of its worker.

    Parameters
    ----------
    hold_seconds : float
        How long lines are kept back while the worker lives.

    Attributes
    ----------
    text : bytes
        The lines that are kept back, from the beginning of a traceback on.
    began : float or None
        When that came; None while nothing is kept back.
    last_line : bytes
        The last line with anything in it that the worker wrote.
    is_final : bool
        Whether the worker has reported an uncaught exception: lines are kept back until it has ended.

    Examples
    --------
    >>> words = LastWords()
    >>> words.feed(b"step 1\nTraceback (most recent call last):\n", now=5.0)
    b'step 1\n'
    >>> words.feed(b"KeyError: 'weights'\n", now=5.1)
    b''
    >>> words.text
    b"Traceback (most recent call last):\nKeyError: 'weights'\n"
    >>> words.overdue(now=7.0) == words.text == b""
    False
    """

    def __init__(self, hold_seconds: float = HOLD_SECONDS) -> None:
        self._hold_seconds = hold_seconds
        self.text = b""
        self.began: float | None = None
        self.last_line = b""
        self.is_final = False

    @property
    def due(self) -> float | None:
        """When the lines that are kept back are to be shown."""
        return None if self.began is None or self.is_final else self.began + self._hold_seconds

    def feed(self, lines: bytes, now: float) -> bytes:
        """Take whole lines; give those to show now."""
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
        """Give what was kept back too long for its worker to be ending."""
        return self.release() if self.due is not None and now >= self.due else b""

    def release(self) -> bytes:
        """Give what is kept back, and keep it no longer."""
        text, self.text, self.began = self.text, b"", None
        return text


def exception_line(traceback: str) -> str:
    r"""Find the line that names the exception.

    Parameters
    ----------
    traceback : str
        As Python prints it, with what followed.

    Returns
    -------
    str
        Empty if there is none.

    Examples
    --------
    >>> exception_line("Traceback (most recent call last):\n  File ...\nValueError: two\nlines\n")
    'ValueError: two'
    """
    headers = list(_HEADER.finditer(traceback))
    lines = traceback[headers[-1].end() :].splitlines() if headers else traceback.splitlines()[:1]
    return next((line for line in lines if line.strip() and not line.startswith(" ")), "")


def first_exception_line(traceback: str) -> str:
    r"""Find the line that names the exception of which the last one came, in one or more steps.

    Parameters
    ----------
    traceback : str
        As for :func:`exception_line`.

    Returns
    -------
    str
        That of the last exception, if it came of no other.

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
