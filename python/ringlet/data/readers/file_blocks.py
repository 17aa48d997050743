"""The elements of one file, some hundreds of kilobytes of them at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from ringlet.data.readers.byte_stream import ByteStream
from ringlet.errors import InvalidArgumentError

__all__ = ["DEFAULT_BUFFER_BYTES", "BlockBuffer", "FileBlocks", "buffer_bytes", "no_negative"]

DEFAULT_BUFFER_BYTES = 256 * 1024  # stays in the second-level cache while a block is made of it
_LEAST_BUFFER_BYTES = 4096


def buffer_bytes(buffer_size: Any) -> int:
    """Give the size of the buffer that a user asked for.

    Raises
    ------
    TypeError
        If it is no integer.

    Examples
    --------
    >>> buffer_bytes(None), buffer_bytes(0), buffer_bytes(2**20)
    (262144, 4096, 1048576)
    """
    if buffer_size is None:
        return DEFAULT_BUFFER_BYTES
    if not hasattr(buffer_size, "__index__"):
        raise TypeError(f"buffer_size is a number of bytes, or None, got {buffer_size!r}")
    if buffer_size < 0:
        return DEFAULT_BUFFER_BYTES  # as in TensorFlow
    return max(int(buffer_size), _LEAST_BUFFER_BYTES)


class FileBlocks(ABC):
    """The elements of one file, block by block.

    Attributes
    ----------
    offset : int
        Where the next block begins, in the unit of the file: bytes (decompressed) or rows.
    """

    __slots__ = ("offset",)

    offset: int

    @abstractmethod
    def next_block(self) -> Sequence[Any]:
        """Give the next elements, none at the end.

        Raises
        ------
        DataLossError
            If the file is damaged there; the elements in front of the damage come before.
        """

    @abstractmethod
    def skip_to(self, offset: int) -> None:
        """Go to an `offset` that a block of this file began at; only before anything was read."""

    @abstractmethod
    def close(self) -> None:
        """Close the file."""


class BlockBuffer:
    """Bytes of a file in memory that is used again and again: read behind, taken from the front.

    Parameters
    ----------
    stream : ByteStream
    size : int
        Bytes of memory, until something larger must fit as a whole.
    """

    __slots__ = ("_stream", "begin", "data", "end", "is_at_end")

    def __init__(self, stream: ByteStream, size: int) -> None:
        self._stream = stream
        self.data = bytearray(size)
        self.begin = 0  # those between begin and end count
        self.end = 0
        self.is_at_end = False  # the file has no more

    def __len__(self) -> int:
        return self.end - self.begin

    @property
    def offset(self) -> int:
        """Where in the file the first byte is."""
        return self._stream.offset - len(self)

    @property
    def is_full(self) -> bool:
        """Whether there is no room."""
        return len(self) == len(self.data)

    def fill(self) -> None:
        """Move what is there to the front, and read behind it, where there is room."""
        kept = len(self)
        if self.begin:
            self.data[:kept] = self.data[self.begin : self.end]
            self.begin, self.end = 0, kept
        with memoryview(self.data) as view, view[kept:] as free:
            count = self._stream.read_into(free)
        self.end += count
        self.is_at_end = not count

    def has_room_for(self, wanted: int) -> bool:
        """Tell whether so many bytes from the first fit."""
        return wanted <= len(self.data)

    def grow(self, wanted: int) -> bool:
        """Make room for so many bytes from the first; False, and no room, where the file has not as many.

        Where the file does not tell its size there is room for twice as many as there are, so that memory follows what
        was read and not what somebody says will come.
        """
        left = self._stream.bytes_left
        if left is not None and wanted > len(self) + left:
            return False
        size = wanted if left is not None else min(wanted, 2 * len(self.data))
        grown = bytearray(size)
        grown[: len(self)] = self.data[self.begin : self.end]
        self.data, self.begin, self.end = grown, 0, len(self)
        return True

    def close(self) -> None:
        """Close the file and free the memory."""
        self._stream.close()
        self.data = bytearray()
        self.begin = self.end = 0
        self.is_at_end = True


def no_negative(value: Any, name: str) -> int:
    """Give a number of bytes.

    Raises
    ------
    InvalidArgumentError
        If it is negative.
    TypeError
        If it is no integer.
    """
    if not hasattr(value, "__index__"):
        raise TypeError(f"{name} is a number of bytes, got {value!r}")
    if value < 0:
        raise InvalidArgumentError(f"{name} must be zero or more, got {value}")
    return int(value)
