"""Cache files: records of elements with checksums.

A file consists of an eight-byte signature, a record for each element, and a last record, whose header is the number of
elements and whose memory is empty. A file without the last record is truncated. A record consists of the sizes of its
header and memory and a CRC-32 of both, as little-endian numbers, then the header and the memory (see
`ringlet.data.state.state_codec`). A file is written under a temporary name and renamed when it is complete.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import struct
import weakref
import zlib
from io import FileIO
from pathlib import Path
from typing import Any

from ringlet.data.state.state_codec import pack, unpack
from ringlet.errors import DataLossError

SUFFIX = ".ringlet-cache"
_PARTIAL = SUFFIX + "-partial"
_MAGIC = b"RGLCACH1"
_RECORD = struct.Struct("<IQI")
# Maximum size of a header; a larger size indicates damage.
_LONGEST_HEADER = 2**28


class CacheWriter:
    """Writer of a cache file; only one writer can hold the lock at a time."""

    def __init__(self, name: str, file: FileIO, offset: int, count: int) -> None:
        self._name = name
        self._file: FileIO | None = file
        self._process = os.getpid()
        self.count = count
        weakref.finalize(self, file.close)  # closes the file if the writer is deleted without close
        file.truncate(offset)
        if not offset:
            file.write(_MAGIC)

    @classmethod
    def begin(cls, name: str, offset: int = 0, count: int = 0) -> CacheWriter | None:
        """Return a writer; None if another writer, in any process, holds the lock.

        With an `offset` and a `count` from `synced`, the writer continues the unfinished file at that position.
        """
        path = Path(name + _PARTIAL)
        # Unbuffered, because a forked child would write the contents of a buffer again.
        file = path.open("ab", buffering=0)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Between open and flock, the previous lock holder may have renamed the file.
            is_it = path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat())
        except OSError:
            is_it = False
        if is_it:
            return cls(name, file, offset, count)
        file.close()
        return None

    def write(self, state: Any) -> None:
        self._write(*pack(state))
        self.count += 1

    def _write(self, header: bytes, memory: bytes) -> None:
        check = zlib.crc32(memory, zlib.crc32(header))
        left = memoryview(_RECORD.pack(len(header), len(memory), check) + header + memory)
        while self._file is not None and left:
            left = left[self._file.write(left) :]

    def synced(self) -> tuple[int, int]:
        """Flush the file to disk; return its size in bytes and number of elements."""
        if self._file is None:
            raise ValueError(f"the writer of {self._name} is closed")
        os.fsync(self._file.fileno())
        return os.fstat(self._file.fileno()).st_size, self.count

    def release(self) -> None:
        """Close an unfinished file; another writer can continue it."""
        self._close()

    def finish(self) -> None:
        """Write the last record and rename the file."""
        if self._file is None:
            return
        self._write(_end(self.count), b"")
        os.fsync(self._file.fileno())
        Path(self._name + _PARTIAL).replace(self._name + SUFFIX)
        self._close()

    def abandon(self) -> None:
        """Delete an unfinished file; in a forked child process, only close it."""
        if self._file is not None:
            if os.getpid() == self._process:
                with contextlib.suppress(OSError):
                    Path(self._name + _PARTIAL).unlink()
            self._close()

    def _close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()


class CacheReader:
    """Iterator over the states in a complete cache file; raises DataLossError if the file is damaged.

    `name` has no suffix. With the `offset` and `count` of another reader, iteration continues at its position. `kind`
    and `remedy` describe the file in messages.
    """

    def __init__(
        self,
        name: str,
        offset: int = len(_MAGIC),
        count: int = 0,
        *,
        kind: str = "cache",
        remedy: str = "Delete it; the next iteration creates it again.",
    ) -> None:
        self._name = name + SUFFIX
        self._kind, self._remedy = kind, remedy
        self._file = Path(self._name).open("rb")  # noqa: SIM115 - closed by close
        weakref.finalize(self, self._file.close)  # closes the file if the reader is deleted without close
        self.offset = offset
        self.count = count
        if self._file.read(len(_MAGIC)) != _MAGIC:
            self.close()
            raise self._loss(f"it does not begin with the signature of a {kind}", 0)
        self._file.seek(offset)

    def __iter__(self) -> CacheReader:
        return self

    def __next__(self) -> Any:
        if self._file.closed:
            raise StopIteration
        header_size, memory_size, check = _RECORD.unpack(self._read(_RECORD.size))
        if header_size > _LONGEST_HEADER or memory_size > os.fstat(self._file.fileno()).st_size - self.offset:
            raise self._loss("a record is longer than the file", self.offset)
        header = self._read(header_size)
        memory = self._read(memory_size)
        if zlib.crc32(memory, zlib.crc32(header)) != check:
            raise self._loss("a checksum does not match", self.offset)
        if header == _end(self.count):
            self.close()
            raise StopIteration
        try:
            state = unpack(header, memory)
        except ValueError as error:
            raise self._loss(str(error), self.offset) from error
        self.offset = self._file.tell()
        self.count += 1
        return state

    def _read(self, size: int) -> bytes:
        found = self._file.read(size)
        if len(found) < size:
            raise self._loss("it is truncated", self.offset)
        return found

    def _loss(self, what: str, offset: int) -> DataLossError:
        return DataLossError(
            f"the {self._kind} {self._name} is damaged at byte {offset}: {what}. {self._remedy}", self._name, offset
        )

    def close(self) -> None:
        self._file.close()


def unfinished_size(name: str) -> int:
    """Return the size in bytes of an interrupted writer's file; -1 if it does not exist."""
    try:
        return Path(name + _PARTIAL).stat().st_size
    except OSError:
        return -1


def _end(count: int) -> bytes:
    """Return the header of the last record, which differs from the header of any element."""
    return json.dumps({"count": count}).encode()
