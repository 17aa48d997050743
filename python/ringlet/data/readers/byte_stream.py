"""ByteStream: the bytes of one file, decompressed if necessary."""

from __future__ import annotations

import os
import stat
import zlib
from typing import Any

from ringlet.errors import DataLossError, FailedPreconditionError, InvalidArgumentError, NotFoundError

# Names of compressions, and the zlib parameter wbits of their format.
COMPRESSIONS = {"GZIP": 16 + zlib.MAX_WBITS, "ZLIB": zlib.MAX_WBITS}

# Compressed bytes per read; small, because zlib discards all output of a call that fails.
_INPUT_BYTES = 64 * 1024


def check_compression(compression_type: Any) -> str:
    """Return the name of a compression; empty for no compression."""
    if compression_type in (None, "", b""):
        return ""
    if compression_type in COMPRESSIONS:
        return str(compression_type)
    names = ", ".join(map(repr, COMPRESSIONS))
    raise InvalidArgumentError(
        f"Unsupported compression_type: {compression_type!r}. Use {names}, or '' or None for files that are not "
        "compressed."
    )


def open_file(name: str) -> int:
    """Return a descriptor for reading; raise NotFoundError, or FailedPreconditionError for a folder."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotFoundError(f"{name}; {error.strerror}") from error
    if stat.S_ISDIR(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise FailedPreconditionError(f"{name}; Is a directory")
    return descriptor


def open_bytes(name: str, compression: str) -> ByteStream:
    """Open a file; `compression` is a result of `check_compression`. Raises the same errors as `open_file`."""
    return DecompressedStream(name, COMPRESSIONS[compression]) if compression else ByteStream(name)


class ByteStream:
    """Stream of the bytes of an uncompressed file; `offset` counts the bytes read or skipped."""

    __slots__ = ("_descriptor", "name", "offset")

    def __init__(self, name: str) -> None:
        self._descriptor = -1
        self.name = name
        self._descriptor = open_file(name)
        self.offset = 0

    @property
    def bytes_left(self) -> int | None:
        """The number of remaining bytes; None if unknown."""
        status = os.fstat(self._descriptor)
        return max(status.st_size - self.offset, 0) if stat.S_ISREG(status.st_mode) else None

    def read_into(self, view: memoryview) -> int:
        """Read the next bytes into the front of `view`, and return their number, which is zero only at the end."""
        count = os.readv(self._descriptor, [view])
        self.offset += count
        return count

    def skip(self, count: int) -> None:
        """Skip `count` bytes, which must exist in the file."""
        self.offset = os.lseek(self._descriptor, self.offset + count, os.SEEK_SET)

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        self.close()


class DecompressedStream(ByteStream):
    """Stream of the decompressed bytes of a file, which may have several GZIP members."""

    __slots__ = ("_decompressor", "_frame", "_has_begun", "_input", "_is_at_end")

    def __init__(self, name: str, frame: int) -> None:
        super().__init__(name)
        self._frame = frame
        self._decompressor = zlib.decompressobj(frame)
        self._input = b""  # bytes that were read but not decompressed
        self._has_begun = False  # False for an empty file, which does not count as truncated
        self._is_at_end = False

    @property
    def bytes_left(self) -> int | None:
        return None

    def read_into(self, view: memoryview) -> int:
        while not self._is_at_end:
            if data := self._decompress(len(view)):
                view[: len(data)] = data
                self.offset += len(data)
                return len(data)
        return 0

    def _decompress(self, most: int) -> bytes:
        """Return up to `most` bytes; the result may be empty before the end."""
        if not self._input:
            self._input = os.read(self._descriptor, _INPUT_BYTES)
            if not self._input:
                return self._finish(most)
            self._has_begun = True
        try:
            data = self._decompressor.decompress(self._input, most)
        except zlib.error as error:
            raise self._damage(error) from error
        self._input = self._decompressor.unconsumed_tail
        if self._decompressor.eof:
            self._end_frame()
        return data

    def _finish(self, most: int) -> bytes:
        """Return up to `most` remaining bytes at the end of the file; raise DataLossError if the file is truncated."""
        try:
            data = self._decompressor.decompress(b"", most)
        except zlib.error as error:
            raise self._damage(error) from error
        if not data:
            self._is_at_end = True
            if self._has_begun and not self._decompressor.eof:
                raise DataLossError(
                    f"{self.name} ends within its compressed data, after {self.offset} decompressed bytes: the file "
                    "is truncated. Copy or download it again.",
                    self.name,
                    self.offset,
                )
        return data

    def _end_frame(self) -> None:
        rest = self._decompressor.unused_data or os.read(self._descriptor, _INPUT_BYTES)
        if rest and self._frame == COMPRESSIONS["GZIP"]:
            self._decompressor = zlib.decompressobj(self._frame)
            self._input = rest
        else:
            self._is_at_end = True

    def _damage(self, error: zlib.error) -> DataLossError:
        # An example of zlib's message: "Error -3 while decompressing data: incorrect header check"
        _, _, words = str(error).partition("Error ")
        code, _, rest = words.partition(" ")
        reason = rest.rpartition(": ")[2]
        return DataLossError(
            f"inflate() failed with error {code}: {reason}, in {self.name} after {self.offset} bytes of decompressed "
            "data. The file is damaged or has another compression. Check compression_type.",
            self.name,
            self.offset,
        )

    def skip(self, count: int) -> None:
        """Decompress and discard `count` bytes, or all remaining bytes if there are fewer."""
        scratch = memoryview(bytearray(min(count, _INPUT_BYTES)))
        while count > 0:
            made = self.read_into(scratch[: min(count, len(scratch))])
            if not made:
                break
            count -= made
