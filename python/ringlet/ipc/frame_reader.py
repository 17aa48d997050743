"""Frame reader: assembles messages from the bytes of a stream."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
import numpy.typing as npt

from ringlet.ipc.frames import HEAD_BYTES, BadFrame, Head, read_sizes

__all__ = ["Frame", "FrameReader"]

# Header, buffers, number of descriptors.
Frame = tuple[bytes, list[npt.NDArray[np.uint8]], int]

# Parts of at least this size are received in place; smaller ones are received together.
_IN_PLACE_BYTES = 16384
_INBOX_BYTES = 65536


class FrameReader:
    """Assembles messages: write into `room`, report the count with `add`, and call `take` until None."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._number = 0
        self._inbox = memoryview(bytearray(_INBOX_BYTES))
        self._begin = self._end = 0
        self._steps = _read_frame(0, most_bytes)
        self._want = next(self._steps)
        self._is_in_place = False

    def room(self) -> memoryview:
        """Return the memory for the next bytes, at least one."""
        self._is_in_place = len(self._want) >= _IN_PLACE_BYTES
        return self._want if self._is_in_place else self._inbox

    def add(self, count: int) -> None:
        """Record that `count` bytes were written into `room`."""
        if self._is_in_place:
            self._want = self._want[count:]
        else:
            self._begin, self._end = 0, count

    def take(self) -> Frame | None:
        """Return the next message if it is complete, else None; after a BadFrame the stream is unreadable."""
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
    """Yield each block of memory to fill; return the message."""
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
        raise BadFrame(f"has sent a message of {num_bytes} bytes, but this process has no memory left for it") from None
    for buffer in buffers:
        if buffer.size:
            yield buffer.data
    return header, buffers, head.num_descriptors
