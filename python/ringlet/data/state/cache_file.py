"""The file that a dataset's elements are cached in.

It begins with eight bytes that name the format. Then comes a record for each element, and at last one without memory
whose header is the number of elements: a file that ends without it was cut off. A record is the length of its header,
the length of its memory and a CRC-32 of both parts, in little-endian numbers, and then these parts (see
`ringlet.data.state.state_codec`). A file is written under another name, and gets its own when it is complete.
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

__all__ = ["SUFFIX", "CacheReader", "CacheWriter"]

SUFFIX = ".ringlet-cache"
_PARTIAL = SUFFIX + "-partial"
_MAGIC = b"RGLCACH1"
_RECORD = struct.Struct("<IQI")
# A header that claims more than this is damaged.
_LONGEST_HEADER = 2**28


class CacheWriter:
    """Writes a cache file; only one writer for a file is at work at a time.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     writer = CacheWriter.begin(f"{folder}/cache")
    ...     CacheWriter.begin(f"{folder}/cache") is None  # the first one is at work
    ...     writer.write({"x": 1})
    ...     writer.finish()
    ...     list(CacheReader(f"{folder}/cache"))
    True
    [{'x': 1}]
    """

    def __init__(self, name: str, file: FileIO) -> None:
        self._name = name
        self._file: FileIO | None = file
        self._process = os.getpid()
        self.count = 0
        weakref.finalize(self, file.close)  # where the writer is dropped
        file.truncate(0)
        file.write(_MAGIC)

    @classmethod
    def begin(cls, name: str) -> CacheWriter | None:
        """Start to write; None where another writer, here or in another process, is at work.

        Raises
        ------
        OSError
            If the file cannot be made.
        """
        path = Path(name + _PARTIAL)
        # Without a buffer, which a forked child would write a second time.
        file = path.open("ab", buffering=0)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Who had it locked may have finished, and given it its own name, between the two lines above.
            is_it = path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat())
        except OSError:
            is_it = False
        if is_it:
            return cls(name, file)
        file.close()
        return None

    def write(self, state: Any) -> None:
        """Write one element's state."""
        self._write(*pack(state))
        self.count += 1

    def _write(self, header: bytes, memory: bytes) -> None:
        check = zlib.crc32(memory, zlib.crc32(header))
        left = memoryview(_RECORD.pack(len(header), len(memory), check) + header + memory)
        while self._file is not None and left:
            left = left[self._file.write(left) :]

    def finish(self) -> None:
        """Write the end, and give the file its name."""
        if self._file is None:
            return
        self._write(_end(self.count), b"")
        os.fsync(self._file.fileno())
        Path(self._name + _PARTIAL).replace(self._name + SUFFIX)
        self._close()

    def abandon(self) -> None:
        """Drop what was written. Does nothing once the file is finished, or in a forked child of the process."""
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
    """Goes through the states in a complete cache file.

    Parameters
    ----------
    name : str
        Without the suffix.
    offset, count : int, optional
        Where to go on: what the attributes `offset` and `count` of another reader were.

    Raises
    ------
    FileNotFoundError
        If there is none.
    DataLossError
        During iteration, if the file is damaged.
    """

    def __init__(self, name: str, offset: int = len(_MAGIC), count: int = 0) -> None:
        self._name = name + SUFFIX
        self._file = Path(self._name).open("rb")  # noqa: SIM115 - closed by close
        weakref.finalize(self, self._file.close)  # where the reader is dropped
        self.offset = offset
        self.count = count
        if self._file.read(len(_MAGIC)) != _MAGIC:
            self.close()
            raise self._loss("it does not begin as a cache does", 0)
        self._file.seek(offset)

    def __iter__(self) -> CacheReader:
        return self

    def __next__(self) -> Any:
        if self._file.closed:
            raise StopIteration
        header_size, memory_size, check = _RECORD.unpack(self._read(_RECORD.size))
        if header_size > _LONGEST_HEADER or memory_size > self._size() - self.offset:
            raise self._loss("a record is longer than the file", self.offset)
        header = self._read(header_size)
        memory = self._read(memory_size)
        if zlib.crc32(memory, zlib.crc32(header)) != check:
            raise self._loss("a checksum does not fit", self.offset)
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

    def _size(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    def _read(self, size: int) -> bytes:
        found = self._file.read(size)
        if len(found) < size:
            raise self._loss("it ends too early", self.offset)
        return found

    def _loss(self, what: str, offset: int) -> DataLossError:
        return DataLossError(
            f"the cache {self._name} is damaged at byte {offset}: {what}. Delete it, and it is made anew.",
            self._name,
            offset,
        )

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _end(count: int) -> bytes:
    """The header of the last record; no header of an element looks like that."""
    return json.dumps({"count": count}).encode()
