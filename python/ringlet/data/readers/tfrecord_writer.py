"""TFRecordWriter: a writer of TFRecord files."""

from __future__ import annotations

import gzip
import os
import zlib
from typing import IO, Any

from ringlet import _core
from ringlet.data.readers.byte_stream import check_compression
from ringlet.data.readers.file_names import text_name
from ringlet.errors import FailedPreconditionError, NotFoundError

_BUFFER_BYTES = 256 * 1024


class TFRecordWriter:
    """Writer of a TFRecord file (``tf.io.TFRecordWriter``); as a context manager, it closes the file on exit.

    Parameters
    ----------
    path : str or path
        The file; an existing file is replaced.
    options : str, optional
        Compression: ``"GZIP"`` or ``"ZLIB"``; None or empty for no compression. An object with one of these values as
        its attribute ``compression_type``, such as ``tf.io.TFRecordOptions``, is accepted too.

    Raises
    ------
    InvalidArgumentError
        If the compression is unknown.
    NotFoundError
        If the folder of the file does not exist.

    Notes
    -----
    Records are in the file once `flush` or `close` has returned. Equal records produce equal files, because GZIP data
    is written without a timestamp.

    Examples
    --------
    >>> from ringlet.data import TFRecordDataset
    >>> with TFRecordWriter("numbers.gz", "GZIP") as writer:
    ...     writer.write(b"one")
    >>> list(TFRecordDataset("numbers.gz", "GZIP"))
    [b'one']
    """

    def __init__(self, path: str | os.PathLike[str], options: Any = None) -> None:
        compression = check_compression(getattr(options, "compression_type", options))
        self._name = text_name(path)
        try:
            self._file: IO[bytes] | None = open(self._name, "wb", buffering=_BUFFER_BYTES)  # noqa: PTH123, SIM115
        except FileNotFoundError as error:
            raise NotFoundError(f"{self._name}; {error.strerror}") from error
        self._frame = _FRAMES[compression](self._file)

    def write(self, record: bytes | bytearray | memoryview | str) -> None:
        """Append a record.

        Parameters
        ----------
        record : bytes-like or str
            Text is written as UTF-8. Numbers must be converted to bytes: ``array.tobytes()``, or `serialize_example`.

        Raises
        ------
        FailedPreconditionError
            If the writer was closed.
        TypeError
            If the record is neither bytes-like nor text.

        Examples
        --------
        >>> with TFRecordWriter("letters.tfrecord") as writer:
        ...     writer.write("é")
        """
        if self._file is None:
            raise FailedPreconditionError(f"the writer of {self._name} is closed. Create a writer for another file.")
        self._frame.write(_core.frame_record(record.encode() if isinstance(record, str) else record))

    def flush(self) -> None:
        """Pass buffered records to the operating system.

        Raises
        ------
        FailedPreconditionError
            If the writer was closed.

        Examples
        --------
        >>> with TFRecordWriter("letters.tfrecord") as writer:
        ...     writer.flush()
        """
        if self._file is None:
            raise FailedPreconditionError(f"the writer of {self._name} is closed")
        self._frame.flush()
        self._file.flush()

    def close(self) -> None:
        """Write buffered records, and close the file. Idempotent.

        Examples
        --------
        >>> writer = TFRecordWriter("letters.tfrecord")
        >>> writer.close()
        """
        file, self._file = self._file, None
        if file is None:
            return
        try:
            self._frame.close()
        finally:
            file.close()

    def __enter__(self) -> TFRecordWriter:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class _Plain:
    def __init__(self, file: IO[bytes]) -> None:
        self.write = file.write
        self.flush = file.flush

    def close(self) -> None:
        """Do nothing: uncompressed data has no trailer."""


class _Gzip(gzip.GzipFile):
    """Writer of GZIP data without a timestamp."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0)


class _Zlib:
    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._compressor = zlib.compressobj()

    def write(self, data: bytes) -> None:
        self._file.write(self._compressor.compress(data))

    def flush(self) -> None:
        """Write all buffered data, which reduces compression."""
        self._file.write(self._compressor.flush(zlib.Z_SYNC_FLUSH))

    def close(self) -> None:
        self._file.write(self._compressor.flush())


_FRAMES: dict[str, Any] = {"": _Plain, "GZIP": _Gzip, "ZLIB": _Zlib}
