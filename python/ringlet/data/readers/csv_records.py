r"""Records of CSV files as lists of fields, as defined in RFC 4180.

A record ends at a line feed, a carriage return, or both. A field in quotation marks may hold delimiters and line ends;
two quotation marks in it stand for one. An invalid record becomes a `Record` with an error message;
reading continues after the next line end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ringlet.data.readers.byte_stream import open_bytes
from ringlet.data.readers.file_blocks import FileBlocks
from ringlet.data.readers.file_reader import FileReader
from ringlet.errors import InvalidArgumentError

# A quoted field; the lookahead prevents a match that ends inside a doubled quote.
_QUOTED = re.compile(rb'"([^"]*(?:""[^"]*)*)"(?!")')
_LINE_END = re.compile(rb"\r\n?|\n")
_NOT_CLOSED = "Reached end of file without closing quoted field in record"


class Record(NamedTuple):
    """One record, with its file and line; `error` is the message about an invalid record."""

    file: str
    line: int
    fields: list[bytes]
    error: str = ""


class Dialect(NamedTuple):
    """The format of CSV files."""

    delimiter: bytes
    has_quotes: bool
    has_header: bool


@dataclass(frozen=True, eq=False)
class CsvRecords(FileReader):
    """Node that yields the records of CSV files."""

    dialect: Dialect
    compression: str
    buffer_bytes: int

    def open_file(self, name: str) -> FileBlocks:
        return RecordBlocks(name, self.dialect, self.compression, self.buffer_bytes)


class RecordBlocks(FileBlocks):
    """Reader of the records of one CSV file; `offset` counts records."""

    def __init__(self, name: str, dialect: Dialect, compression: str, size: int) -> None:
        self._name = name
        self._dialect = dialect
        self._stream = open_bytes(name, compression)
        self._memory = bytearray(size)
        self._rest = b""  # bytes of an incomplete record
        self._at_end = False
        self._needs_header = dialect.has_header
        self._line = 1
        self._count = 0  # number of records before the next block
        self._ready: list[Record] = []  # records that skip_to() has read but not skipped
        self.offset = 0

    def next_block(self) -> Sequence[Any]:
        """Return the records that end in the next bytes: at least one, except at the end of the file."""
        records, self._ready = self._ready or self._next_records(), []
        if self._needs_header:
            self._needs_header = False
            if not records or records[0].error:
                what = records[0].error if records else "it is empty"
                raise InvalidArgumentError(f"Can't read header of file {self._name}: {what}")
            records = records[1:] or self._next_records()
        self.offset = self._count
        self._count += len(records)
        return records

    def _next_records(self) -> list[Record]:
        while not self._at_end:
            self._read()
            records = self._split()
            if records:
                return records
        if self._damage is not None:
            error, self._damage = self._damage, None
            raise error
        return []

    def _read(self) -> None:
        if len(self._rest) > len(self._memory):
            self._memory = bytearray(2 * len(self._memory))  # larger reads, because each read scans the record again
        count = self._read_into(self._memory)
        self._rest += memoryview(self._memory)[:count]
        self._at_end = not count

    def _split(self) -> list[Record]:
        """Remove all complete records from the buffered bytes and return them."""
        data, delimiter = self._rest, self._dialect.delimiter
        if not self._dialect.has_quotes or b'"' not in data:
            end = len(data) if self._at_end else data.rfind(b"\n") + 1
            lines = data[:end].splitlines()
            first, self._line, self._rest = self._line, self._line + len(lines), data[end:]
            return [Record(self._name, first + i, line.split(delimiter)) for i, line in enumerate(lines)]
        records = []
        at = 0
        while at < len(data) and (found := self._record(data, at)) is not None:
            record, end = found
            records.append(record)
            self._line += max(1, len(data[at:end].splitlines()))
            at = end
        self._rest = data[at:]
        return records

    def _record(self, data: bytes, at: int) -> tuple[Record, int] | None:
        """Return the record that starts at offset `at`, and the start of the next record; None if it is incomplete."""
        fields: list[bytes] = []
        while True:
            is_quoted = data[at : at + 1] == b'"'
            if is_quoted:
                match = _QUOTED.match(data, at)
                if match is None or (match.end() == len(data) and not self._at_end):
                    return self._wrong(_NOT_CLOSED, len(data)) if self._at_end else None
                fields.append(match[1].replace(b'""', b'"'))
                at = match.end()
            line_end = _LINE_END.search(data, at)
            if line_end is None and not self._at_end:
                return None
            if line_end is not None and line_end.end() == len(data) and line_end[0] == b"\r" and not self._at_end:
                return None  # a line feed may follow the carriage return
            stop = len(data) if line_end is None else line_end.start()
            after = len(data) if line_end is None else line_end.end()
            comma = data.find(self._dialect.delimiter, at, stop)
            end = stop if comma < 0 else comma
            if is_quoted and at != end:
                return self._wrong("Quote inside a string has to be escaped by another quote", after)
            if not is_quoted:
                fields.append(data[at:end])
                if b'"' in fields[-1]:
                    return self._wrong("Unquoted fields cannot have quotes inside", after)
            if comma < 0:
                return Record(self._name, self._line, fields), after
            at = comma + 1

    def _wrong(self, what: str, end: int) -> tuple[Record, int]:
        return Record(self._name, self._line, [], what), end

    def skip_to(self, offset: int) -> None:
        """Skip to a record by reading the records before it."""
        while self._count < offset:
            records = list(self.next_block())
            if not records:
                break
            self._ready = records[offset - self.offset :]
        self.offset = self._count = offset

    def close(self) -> None:
        self._stream.close()
        self._at_end = True
        self._rest = b""
        self._ready = []
