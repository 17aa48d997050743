"""TextLineDataset: the lines of text files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ringlet.data.readers.byte_stream import check_compression, open_bytes
from ringlet.data.readers.file_blocks import DEFAULT_BUFFER_BYTES, FileBlocks, buffer_bytes
from ringlet.data.readers.file_dataset import FileDataset
from ringlet.data.readers.file_names import FileNames, names_node
from ringlet.data.readers.file_reader import FileReader, parallel_reads


class TextLineDataset(FileDataset):
    r"""The lines of text files as ``bytes``, in the order of the files (``tf.data.TextLineDataset``).

    Lines end at a line feed; line feeds and carriage returns are removed. The last line of a file does not need a line
    feed. Lines are not decoded.

    Parameters
    ----------
    filenames : str, path, sequence of these, or Dataset of names
    compression_type : str, optional
        ``"GZIP"`` or ``"ZLIB"``; None or empty for uncompressed files.
    buffer_size : int, optional
        Number of bytes to read at a time; None means 256 KiB. Longer lines use as much memory as needed.
    num_parallel_reads : int, optional
        Number of files read concurrently, in threads, with interleaved lines. None reads one file
        after another; AUTOTUNE (-1) means 4.
    name : str, unused

    Raises
    ------
    TypeError
        If `filenames` contains anything but names.
    InvalidArgumentError
        If the compression is unknown, or `num_parallel_reads` is neither positive nor AUTOTUNE.
    NotFoundError
        During iteration, if a file does not exist. After an error in a file, iteration continues with the next file.
    DataLossError
        During iteration, if a compressed file is damaged; the lines before the damage are yielded first.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("poem.txt").write_text("one\ntwo\n")
    >>> list(TextLineDataset("poem.txt").map(bytes.decode))
    ['one', 'two']
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
        reads = parallel_reads(num_parallel_reads)
        compression = check_compression(compression_type)
        super().__init__(TextLineReader(names_node(filenames), reads, compression, buffer_bytes(buffer_size)))


@dataclass(frozen=True, eq=False)
class TextLineReader(FileReader):
    """The node of `TextLineDataset`."""

    compression: str
    buffer_bytes: int = DEFAULT_BUFFER_BYTES

    def open_file(self, name: str) -> FileBlocks:
        return LineBlocks(name, self.compression, self.buffer_bytes)


class LineBlocks(FileBlocks):
    """Reader of the lines of one file."""

    def __init__(self, name: str, compression: str, size: int) -> None:
        self._stream = open_bytes(name, compression)
        self._memory = bytearray(size)
        self._begun: list[bytes] = []  # pieces of the incomplete last line
        self.offset = 0

    def next_block(self) -> Sequence[Any]:
        """Return the lines that end in the next bytes: at least one, except at the end of the file."""
        self.offset = self._stream.offset - sum(map(len, self._begun))
        while count := self._read_into(self._memory):
            piece = bytes(memoryview(self._memory)[:count])
            end = piece.rfind(b"\n")
            if end < 0:
                self._begun.append(piece)
                continue
            block = b"".join([*self._begun, piece[:end]])
            self._begun = [piece[end + 1 :]]
            return _lines(block)
        if self._damage is not None:
            raise self._damage
        last = _lines(b"".join(self._begun))
        self._begun = []
        return last if last != [b""] else []

    def close(self) -> None:
        self._stream.close()
        self._memory = bytearray()
        self._begun = []


def _lines(block: bytes) -> list[bytes]:
    if b"\r" in block:
        block = block.replace(b"\r", b"")
    return block.split(b"\n")
