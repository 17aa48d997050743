"""Line splitter: cuts the bytes of a stream into whole lines."""

from __future__ import annotations

import re

__all__ = ["LineSplitter", "prefixed"]

# A carriage return restarts the line: the text before it is overwritten.
_OVERWRITTEN = re.compile(rb"^[^\n]*\r(?=[^\r\n])", re.MULTILINE)
_TRAILING = re.compile(rb"\r+$", re.MULTILINE)


class LineSplitter:
    r"""Collects bytes of any encoding until their line is complete; lines of more than `longest` bytes are cut.

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
        """Return the incomplete last line of the stream, with a line end added; empty if the last line is complete."""
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
    """Insert a prefix before each of some whole lines."""
    return prefix + lines[:-1].replace(b"\n", b"\n" + prefix) + b"\n" if lines else b""


def _shown(lines: bytes) -> bytes:
    return _TRAILING.sub(b"", _OVERWRITTEN.sub(b"", lines)) if b"\r" in lines else lines
