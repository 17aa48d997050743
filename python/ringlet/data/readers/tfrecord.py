"""TFRecordDataset: the records of TFRecord files."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ringlet import _core
from ringlet.data.readers.byte_stream import COMPRESSIONS, open_bytes
from ringlet.data.readers.file_blocks import BlockBuffer, FileBlocks, buffer_bytes
from ringlet.data.readers.file_dataset import FileDataset
from ringlet.data.readers.file_names import FileNames, names_node
from ringlet.data.readers.file_reader import FileReader, parallel_reads
from ringlet.errors import DataLossError

logger = logging.getLogger(__name__)

_HEADER_BYTES = 12
_GZIP_MAGIC = b"\x1f\x8b"


class TFRecordDataset(FileDataset):
    """The records of TFRecord files as ``bytes``, in the order of the files (``tf.data.TFRecordDataset``).

    Both checksums of every record are verified.

    Parameters
    ----------
    filenames : str, path, sequence of these, or Dataset of names
    compression_type : str, optional
        ``"GZIP"`` or ``"ZLIB"``; None or empty for uncompressed files. Any other text means no compression
        and logs a warning, as in TensorFlow.
    buffer_size : int, optional
        Number of bytes to read at a time; None means 256 KiB. Larger records use as much memory as needed.
    num_parallel_reads : int, optional
        Number of files read concurrently, in threads, with interleaved records. None reads one file
        after another; AUTOTUNE (-1) means 4.
    name : str, unused

    Raises
    ------
    TypeError
        If `filenames` contains anything but names.
    InvalidArgumentError
        If `num_parallel_reads` is neither positive nor AUTOTUNE.
    NotFoundError
        During iteration, if a file does not exist. Every error message contains the name of the file; iteration
        continues with the next file.
    DataLossError
        During iteration, if a record does not match its checksum or the file ends within a record. The error holds the
        name of the file and the offset in decompressed bytes; the records before the damage are yielded first.

    Notes
    -----
    If a file ends within the first 12 bytes of a record, these bytes are ignored with a logged warning, as in
    TensorFlow. The state of an iterator is the name of the file and the offset of the record; on restoring, a
    compressed file is decompressed again up to this record.

    Examples
    --------
    >>> import ringlet
    >>> with ringlet.data.TFRecordWriter("numbers.tfrecord") as writer:
    ...     for number in range(3):
    ...         writer.write(b"number %d" % number)
    >>> list(TFRecordDataset("numbers.tfrecord"))
    [b'number 0', b'number 1', b'number 2']
    """

    __slots__ = ()

    def __init__(
        self,
        filenames: FileNames,
        compression_type: str | None = None,
        buffer_size: int | None = None,
        num_parallel_reads: int | None = None,
        name: str | None = None,
    ) -> None:
        compression = compression_type or ""
        if compression not in ("", *COMPRESSIONS):
            logger.warning(
                "TFRecordDataset supports the compressions %s, not %r. The files are read without decompression.",
                ", ".join(COMPRESSIONS),
                compression_type,
            )
            compression = ""
        reads = parallel_reads(num_parallel_reads)
        super().__init__(RecordReader(names_node(filenames), reads, compression, buffer_bytes(buffer_size)))


@dataclass(frozen=True, eq=False)
class RecordReader(FileReader):
    """The node of `TFRecordDataset`."""

    compression: str
    buffer_bytes: int

    def open_file(self, name: str) -> FileBlocks:
        return RecordBlocks(name, self.compression, self.buffer_bytes)


class RecordBlocks(FileBlocks):
    """Reader of the records of one TFRecord file."""

    def __init__(self, name: str, compression: str, size: int) -> None:
        self._name = name
        self._compression = compression
        self._stream = open_bytes(name, compression)
        self._buffer = BlockBuffer(self._stream, size)
        self._fault: Exception | None = None  # raised after the undamaged records have been returned
        self.offset = 0

    def next_block(self) -> Sequence[Any]:
        """Return the complete records in the buffer: at least one, except at the end of the file."""
        buffer = self._buffer
        while self._fault is None:
            damage = buffer.fill()
            self.offset = buffer.offset
            records, buffer.begin, wanted, fault = _core.split_records(buffer.data, buffer.begin, buffer.end)
            if fault:
                self._fault = self._corrupted(fault)
            elif buffer.is_at_end:
                self._fault = self._end(wanted)
            elif damage is not None:
                self._fault = damage
            elif not records and wanted > len(buffer.data) and not buffer.grow(wanted):
                self._fault = self._truncated(wanted)
            if records:
                return records
        if isinstance(self._fault, StopIteration):
            return ()
        raise self._fault

    def _corrupted(self, fault: str) -> DataLossError:
        offset = self._buffer.offset
        if fault == "data":
            text = (
                f"corrupted record at {offset + _HEADER_BYTES} of {self._name}: its data does not match its checksum."
            )
            return DataLossError(text, self._name, offset + _HEADER_BYTES)
        question = " (Is this even a TFRecord file?)" if offset == 0 else ""
        text = f"corrupted record at {offset}{question} of {self._name}: its length does not match its checksum."
        if self._buffer.data[self._buffer.begin :][:2] == _GZIP_MAGIC and not self._compression:
            text += " The file has a GZIP header. Pass compression_type='GZIP'."
        return DataLossError(text, self._name, offset)

    def _end(self, wanted: int) -> Exception:
        """Return the error for a file that ends here; StopIteration if less than a record header is left."""
        left = len(self._buffer)
        if left >= _HEADER_BYTES:
            return self._truncated(wanted)
        if left:
            text = (
                "%s ends after %d of the first 12 bytes of a record: the file is truncated at offset %d. These bytes "
                "are ignored."
            )
            logger.warning(text, self._name, left, self._buffer.offset)
        return StopIteration()

    def _truncated(self, wanted: int) -> DataLossError:
        offset = self._buffer.offset
        left = len(self._buffer) + (self._stream.bytes_left or 0)
        return DataLossError(
            f"truncated record at {offset} of {self._name}: failed with Read less bytes than requested. The record "
            f"has {wanted} bytes, but only {left} bytes of the file follow that offset.",
            self._name,
            offset,
        )

    def close(self) -> None:
        self._buffer.close()
        self._fault = StopIteration()
