"""Bytes of one stream, cut into whole lines."""

from __future__ import annotations

import re

__all__ = ["LineSplitter", "prefixed"]

# A carriage return starts the line anew: what stood before it cannot be seen any more.
_OVERWRITTEN = re.compile(rb"^[^\n]*\r(?=[^\r\n])", re.MULTILINE)
_TRAILING = re.compile(rb"\r+$", re.MULTILINE)


class LineSplitter:
    r"""Collects bytes of any encoding until their line is complete.

    Of a line that carriage returns start anew, as progress bars do, the last state is its text.

    Parameters
    ----------
    longest : int
        Bytes after which a line is cut into several, so that a stream without line ends takes bounded memory.

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
        """What a terminal would show of a line that was started anew and is not complete; empty for other lines."""
        return _shown(b"".join(self._pieces)) if self._starts_anew else b""

    def feed(self, data: bytes) -> bytes:
        """Take more bytes of the stream; give the lines that they complete."""
        cut = data.rfind(b"\n") + 1
        if not cut:
            return self._keep(data)
        whole = _shown(b"".join((*self._pieces, data[:cut])))
        self._clear()
        return whole + self._keep(data[cut:])

    def end(self) -> bytes:
        """Give what is left when the stream has ended, as a whole line; nothing if nothing is."""
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
    r"""Put a prefix before each line.

    Parameters
    ----------
    lines : bytes
        Whole lines, or nothing.
    prefix : bytes

    Returns
    -------
    bytes

    Examples
    --------
    >>> prefixed(b"a\n\nb\n", b"[w2] ")
    b'[w2] a\n[w2] \n[w2] b\n'
    """
    return prefix + lines[:-1].replace(b"\n", b"\n" + prefix) + b"\n" if lines else b""


def _shown(lines: bytes) -> bytes:
    return _TRAILING.sub(b"", _OVERWRITTEN.sub(b"", lines)) if b"\r" in lines else lines
