"""FileBlocks: readers of the elements of one file in blocks of a few hundred kilobytes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from ringlet.data.readers.byte_stream import ByteStream
from ringlet.errors import DataLossError, InvalidArgumentError

DEFAULT_BUFFER_BYTES = 256 * 1024  # fits into the L2 cache
_LEAST_BUFFER_BYTES = 4096


def buffer_bytes(buffer_size: Any) -> int:
    """Return the buffer size in bytes for the argument `buffer_size`."""
    if buffer_size is None:
        return DEFAULT_BUFFER_BYTES
    if not hasattr(buffer_size, "__index__"):
        raise TypeError(f"buffer_size must be a number of bytes, or None, got {buffer_size!r}")
    if buffer_size < 0:
        return DEFAULT_BUFFER_BYTES  # TensorFlow's default
    return max(int(buffer_size), _LEAST_BUFFER_BYTES)


class FileBlocks(ABC):
    """Base class of readers of one file, block by block.

    `offset` is the start of the block that `next_block` returned last, in decompressed bytes, records or rows.
    """

    offset: int
    _stream: ByteStream
    _damage: DataLossError | None = None  # raised after the elements before the damage

    @abstractmethod
    def next_block(self) -> Sequence[Any]:
        """Return the next elements, or an empty sequence at the end; elements before damaged data come first."""

    def skip_to(self, offset: int) -> None:
        """Skip to the `offset` of a block of this file, a number of bytes by default; called before any read."""
        self._stream.skip(offset)
        self.offset = offset

    def _read_into(self, memory: bytearray) -> int:
        """Read bytes and return their number; 0 at the end or at damaged data, whose error is stored."""
        try:
            return self._stream.read_into(memoryview(memory)) if memory else 0
        except DataLossError as error:
            self._damage = error
            return 0

    @abstractmethod
    def close(self) -> None:
        """Close the file."""


class BlockBuffer:
    """A reusable buffer for the bytes of a file: filled at the end, consumed from the front."""

    def __init__(self, stream: ByteStream, size: int) -> None:
        self._stream = stream
        self.data = bytearray(size)
        self.begin = 0  # valid bytes are between begin and end
        self.end = 0
        self.is_at_end = False

    def __len__(self) -> int:
        return self.end - self.begin

    @property
    def offset(self) -> int:
        """Offset of the first valid byte of the buffer in the decompressed file."""
        return self._stream.offset - len(self)

    def fill(self) -> DataLossError | None:
        """Move the valid bytes to the front, and read once into the rest; return an error if data is damaged."""
        kept = len(self)
        if self.begin:
            self.data[:kept] = self.data[self.begin : self.end]
            self.begin, self.end = 0, kept
        try:
            with memoryview(self.data) as view, view[kept:] as free:
                count = self._stream.read_into(free)
        except DataLossError as error:
            return error
        self.end += count
        self.is_at_end = not count
        return None

    def grow(self, wanted: int) -> bool:
        """Extend the buffer to `wanted` bytes; return False if the file has fewer.

        If the file size is unknown, the buffer at most doubles, so that memory is bounded by the bytes read, not by
        a size claimed in the file.
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
    """Return a number of bytes; raise an error if it is negative or not an integer."""
    if not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be a number of bytes, got {value!r}")
    if value < 0:
        raise InvalidArgumentError(f"{name} must be zero or more, got {value}")
    return int(value)
