"""Messages put together from the pieces in which a stream delivers them."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
import numpy.typing as npt

from ringlet.ipc.frames import HEAD_BYTES, BadFrame, Head, read_sizes

__all__ = ["Frame", "FrameReader"]

# Header, buffers, and how many descriptors belong to them.
Frame = tuple[bytes, list[npt.NDArray[np.uint8]], int]

# What is at least as large is received in place; what is smaller comes along with its neighbours.
_IN_PLACE_BYTES = 16384
_INBOX_BYTES = 65536


class FrameReader:
    """Puts messages together.

    Fill `room`, say so with `add`, and call `take` until it gives None; then again.

    Parameters
    ----------
    most_bytes : int
        How much the buffers of one message may have together.

    Examples
    --------
    >>> from ringlet.ipc.frames import frame_start
    >>> stream = frame_start(0, b"first", [], 0) + frame_start(1, b"second", [3], 0) + b"abc"
    >>> reader = FrameReader(most_bytes=1000)
    >>> reader.room()[: len(stream)] = stream
    >>> reader.add(len(stream))
    >>> reader.take(), reader.take(), reader.take()
    ((b'first', [], 0), (b'second', [array([97, 98, 99], dtype=uint8)], 0), None)
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._number = 0
        self._inbox = memoryview(bytearray(_INBOX_BYTES))
        self._begin = self._end = 0
        self._steps = _read_frame(0, most_bytes)
        self._want = next(self._steps)
        self._is_in_place = False

    def room(self) -> memoryview:
        """Give the memory for the bytes that come next, at least one."""
        self._is_in_place = len(self._want) >= _IN_PLACE_BYTES
        return self._want if self._is_in_place else self._inbox

    def add(self, count: int) -> None:
        """Heed that so many bytes have been put there."""
        if self._is_in_place:
            self._want = self._want[count:]
        else:
            self._begin, self._end = 0, count

    def take(self) -> Frame | None:
        """Give the next message, if all of it is there.

        Raises
        ------
        BadFrame
            If what came is none. Nothing that comes later can be read then.
        """
        while True:
            count = min(len(self._want), self._end - self._begin)
            if count:
                self._want[:count] = self._inbox[self._begin : self._begin + count]
                self._want = self._want[count:]
                self._begin += count
            if self._want:
                return None
            try:
                self._want = next(self._steps)
            except StopIteration as done:
                self._number += 1
                self._steps = _read_frame(self._number, self._most_bytes)
                self._want = next(self._steps)
                frame: Frame = done.value
                return frame


def _read_frame(number: int, most_bytes: int) -> Generator[memoryview, None, Frame]:
    """Give the memory to fill next, one after the other, and in the end the message."""
    data = memoryview(bytearray(HEAD_BYTES))
    yield data
    head = Head.read(data, number)
    num_bytes = head.rest_bytes
    try:
        rest = np.empty(num_bytes, np.uint8)
        if rest.size:
            yield rest.data
        sizes, header = read_sizes(head, rest.data, most_bytes)
        num_bytes = sum(sizes)
        buffers = [np.empty(size, np.uint8) for size in sizes]
    except MemoryError:
        raise BadFrame(f"has sent a message of {num_bytes} bytes, for which no memory is left") from None
    for buffer in buffers:
        if buffer.size:
            yield buffer.data
    return header, buffers, head.num_descriptors
