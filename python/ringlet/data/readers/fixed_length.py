"""FixedLengthRecordDataset: records of a fixed length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ringlet.data.readers.byte_stream import check_compression, open_bytes
from ringlet.data.readers.file_blocks import BlockBuffer, FileBlocks, buffer_bytes, no_negative
from ringlet.data.readers.file_dataset import FileDataset
from ringlet.data.readers.file_names import FileNames, names_node
from ringlet.data.readers.file_reader import FileReader, parallel_reads
from ringlet.errors import DataLossError, InvalidArgumentError


class FixedLengthRecordDataset(FileDataset):
    """Fixed-length records as ``bytes``, in the order of the files (``tf.data.FixedLengthRecordDataset``).

    Parameters
    ----------
    filenames : str, path, sequence of these, or Dataset of names
    record_bytes : int
        Length of every record.
    header_bytes : int, optional
        Number of bytes to skip at the start of each file. By default, zero.
    footer_bytes : int, optional
        Number of bytes to skip at the end of each file. By default, zero.
    buffer_size : int, optional
        Number of bytes to read at a time, but at least one record; None means 256 KiB.
    compression_type : str, optional
        ``"GZIP"`` or ``"ZLIB"``; None or empty for uncompressed files.
    num_parallel_reads : int, optional
        Number of files read concurrently, in threads, with interleaved records. None reads one file
        after another; AUTOTUNE (-1) means 4.
    name : str, unused

    Raises
    ------
    TypeError
        If `filenames` contains anything but names, or a number of bytes is not an integer.
    InvalidArgumentError
        If `record_bytes` is not positive, another number of bytes is negative, the compression is unknown, or
        `num_parallel_reads` is neither positive nor AUTOTUNE; during iteration, if a file does not hold a whole
        number of records.
    NotFoundError
        During iteration, if a file does not exist. After an error in a file, iteration continues with the next file.
    DataLossError
        During iteration, if a file is damaged, or if a compressed file does not hold a whole number of
        records, which is detected at its end.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("pairs.bin").write_bytes(b"HEAD" b"aabbcc")
    >>> list(FixedLengthRecordDataset("pairs.bin", 2, header_bytes=4))
    [b'aa', b'bb', b'cc']
    """

    __slots__ = ()

    def __init__(  # noqa: PLR0917 - the arguments are TensorFlow's
        self,
        filenames: FileNames,
        record_bytes: int,
        header_bytes: int | None = None,
        footer_bytes: int | None = None,
        buffer_size: int | None = None,
        compression_type: str | None = None,
        num_parallel_reads: int | None = None,
        name: str | None = None,
    ) -> None:
        sizes = [no_negative(header_bytes or 0, "header_bytes"), no_negative(footer_bytes or 0, "footer_bytes")]
        record = no_negative(record_bytes, "record_bytes")
        if record == 0:
            raise InvalidArgumentError("record_bytes must be greater than zero, got 0")
        reads = parallel_reads(num_parallel_reads)
        compression = check_compression(compression_type)
        names = names_node(filenames)
        super().__init__(FixedLengthReader(names, reads, compression, buffer_bytes(buffer_size), record, *sizes))


@dataclass(frozen=True, eq=False)
class FixedLengthReader(FileReader):
    """The node of `FixedLengthRecordDataset`."""

    compression: str
    buffer_bytes: int
    record_bytes: int
    header_bytes: int
    footer_bytes: int

    def open_file(self, name: str) -> FileBlocks:
        return FixedLengthBlocks(name, self)


class FixedLengthBlocks(FileBlocks):
    """Reader of the records of one file."""

    def __init__(self, name: str, reader: FixedLengthReader) -> None:
        self._name = name
        self._reader = reader
        self._stream = open_bytes(name, reader.compression)
        self.offset = 0
        wanted, left = max(reader.buffer_bytes, reader.record_bytes + reader.footer_bytes), self._stream.bytes_left
        try:
            self._buffer = BlockBuffer(self._stream, wanted if left is None else min(wanted, left + 1))
        except (MemoryError, OverflowError) as error:
            self._stream.close()
            raise InvalidArgumentError(
                f"{name}: out of memory for a buffer of {wanted} bytes, which holds at least one record of "
                f"{reader.record_bytes} bytes. Pass the length of one record as record_bytes, or a smaller buffer_size."
            ) from error

    def next_block(self) -> Sequence[Any]:
        """Return the complete records in the buffer: at least one, except at the end of the file."""
        reader, buffer = self._reader, self._buffer
        if self._stream.offset == 0:
            self._begin()
        while not buffer.is_at_end and self._damage is None:
            self._damage = buffer.fill()
            # Before the end of the file, the last bytes may be the footer.
            count = max(len(buffer) - reader.footer_bytes, 0) // reader.record_bytes
            if count and not buffer.is_at_end:
                return self._take(count)
        if self._damage is not None:
            raise self._damage
        return self._take(self._check_end())

    def _begin(self) -> None:
        """Check the size of the file, if known, and skip the header."""
        reader, size = self._reader, self._stream.bytes_left
        if size is not None:
            body = size - reader.header_bytes - reader.footer_bytes
            if body < 0 or body % reader.record_bytes:
                raise InvalidArgumentError(self._misfit(body))
        self._stream.skip(reader.header_bytes)
        if self._stream.offset < reader.header_bytes:
            body = self._stream.offset - reader.header_bytes - reader.footer_bytes
            raise DataLossError(self._misfit(body), self._name, self._stream.offset)

    def _take(self, count: int) -> Sequence[Any]:
        buffer, size = self._buffer, self._reader.record_bytes
        self.offset = buffer.offset
        begin, buffer.begin = buffer.begin, buffer.begin + count * size
        block = bytes(memoryview(buffer.data)[begin : buffer.begin])
        return [block[at : at + size] for at in range(0, len(block), size)]

    def _check_end(self) -> int:
        """Check the size of the file at its end; return the number of remaining records."""
        reader, left = self._reader, len(self._buffer)
        body = left - reader.footer_bytes
        if body < 0 or body % reader.record_bytes:
            read = self._buffer.offset - reader.header_bytes
            raise DataLossError(self._misfit(read + body), self._name, self._buffer.offset)
        return body // reader.record_bytes

    def _misfit(self, body: int) -> str:
        reader = self._reader
        return (
            f"Excluding the header ({reader.header_bytes} bytes) and footer ({reader.footer_bytes} bytes), input file "
            f'"{self._name}" has body length {body} bytes, which is not an exact multiple of the record length '
            f"({reader.record_bytes} bytes)."
        )

    def close(self) -> None:
        self._buffer.close()
