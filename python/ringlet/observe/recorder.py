"""Format of the flight recorder: its header, and a reader of the last operations of each thread of a process.

``cpp/ringlet/record/ring.hpp`` defines the rings; the header has their sizes, and the names of operations.
"""

from __future__ import annotations

import os
import struct
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ringlet.errors import DataLossError

NAME = "ringlet-recorder"  # name of the memory file, shown by the links in /proc/PID/fd
_VERSION = 2
_MAGIC = b"RNGLTREC"
_HEADER = struct.Struct("=8s6I2Qq 2Q64s64s824s3072s")
_RING = struct.Struct("=2Q")
_TOTALS = struct.Struct("=4Q")
_RECORD = struct.Struct("=3Q6B5HQ6q2I3Q")
_PLACE = struct.Struct("=Q248s")
_PLACES_BYTES = 256 * _PLACE.size
_PLACE_BIT = 48  # lowest bit of a source location's number in the field that also holds a call's size in bytes
_RING_HEADER_BYTES, _NUM_RECORDS, _MOST_RINGS, _MOST_DIMS = 4096, 1024, 256, 6
_NO_NAME, _NO_PLACE = 0xFF, 0xFFFF
_RAISED = 1 << 63
_HAS_BUFFERS, _CONTINUES = 1, 2
_MOST_READINGS = 5


@dataclass(frozen=True)
class Operation:
    """A call of one rank; times are in seconds of ``time.monotonic()``, or None for events that have not happened."""

    group: str
    sequence: int
    rank: int
    num_ranks: int
    text: str
    bytes: int
    has_buffers: bool
    fingerprints: tuple[int, int]  # hashes of the call and of its buffers
    began: float
    arrived: float | None
    ended: float | None
    outcome: str
    place: str = ""
    """Source location of the call, such as ``in step (train.py:88)``; empty if unknown."""

    @property
    def kind(self) -> str:
        """Name of the operation."""
        return self.text.partition("(")[0]


@dataclass(frozen=True)
class OperationStats:
    """Totals of the completed calls of one operation, over all ranks that this process drives.

    Parameters
    ----------
    count : int
        Number of calls. The calls of two ranks of this process count as two.
    bytes : int
        Total size of the calls' inputs.
    seconds : float
        Total time spent in the calls.
    waiting_seconds : float
        The part of that time in which other ranks had not yet made the call.

    Examples
    --------
    >>> import ringlet
    >>> ringlet.observe.OperationStats(count=2, bytes=16, seconds=0.25, waiting_seconds=0.125)
    OperationStats(count=2, bytes=16, seconds=0.25, waiting_seconds=0.125)
    """

    count: int
    bytes: int
    seconds: float
    waiting_seconds: float


@dataclass(frozen=True)
class Process:
    """Contents of the recorder of one process: the operations of each thread, oldest first, and totals by operation."""

    source: str
    pid: int
    start_ticks: int
    wall_minus_monotonic: float
    job: str
    host: str
    command: str
    threads: list[list[Operation]]
    num_half_written: int
    num_runs: int  # number of calls to strategy.run
    totals: dict[str, OperationStats]


def header(pid: int, start_ticks: int, names: str) -> bytes:
    """Return the header of a recorder whose rings are unused."""
    ring_bytes = _RING_HEADER_BYTES + _NUM_RECORDS * _RECORD.size
    sizes = (_VERSION, _HEADER.size + _PLACES_BYTES, ring_bytes, _RING_HEADER_BYTES, _NUM_RECORDS, _MOST_RINGS)
    texts = (os.environ.get("RINGLET_JOB_ID", ""), os.uname().nodename, " ".join(sys.orig_argv), names)
    fields = [text.encode(errors="replace")[:size] for text, size in zip(texts, (63, 63, 823, 3071), strict=True)]
    return _HEADER.pack(_MAGIC, *sizes, pid, start_ticks, time.time_ns() - time.monotonic_ns(), 0, 0, *fields)


def copy_memory(descriptor: int, source: str) -> bytes:
    """Return a copy of an open recorder; records that its process modifies during the copy are marked as half-written.

    A record that is equal in two successive copies, and not half-written, was not written between them.
    """
    head = _Header.of(os.pread(descriptor, _HEADER.size, 0), source)
    size = min(head.size, os.fstat(descriptor).st_size)
    copy = b""
    for _ in range(_MOST_READINGS):
        before, copy = copy, os.pread(descriptor, size, 0)
        if copy == before:
            return copy
    changed = bytearray(copy)
    records = [range(_HEADER.size, head.rings_offset, _PLACE.size)]
    for ring in range(head.num_rings):
        first = head.rings_offset + ring * head.ring_bytes + head.ring_header_bytes
        records.append(range(first, first + head.num_records * _RECORD.size, _RECORD.size))
    for each in records if size == head.size else ():
        for at in each:
            changed[at] |= before[at : at + each.step] != copy[at : at + each.step]
    return bytes(changed)


def read_process(data: bytes, source: str, *, totals_only: bool = False) -> Process:
    """Decode a copy of a recorder; raise DataLossError, which names `source`, if the copy is damaged or truncated."""
    head = _Header.of(data, source)
    if len(data) < head.size:
        raise _truncated(source, len(data), head.size)
    tables, places = head.tables, _places(data[_HEADER.size : head.rings_offset])
    threads, num_half_written = [], 0
    sums: dict[str, list[int]] = {}
    try:
        for begin in range(head.rings_offset, head.size, head.ring_bytes):
            for index, kind in enumerate(tables[0]):
                numbers = _TOTALS.unpack_from(data, begin + _RING.size + index * _TOTALS.size)
                sums[kind] = [sum(pair) for pair in zip(sums.get(kind, (0, 0, 0, 0)), numbers, strict=True)]
            if not totals_only:
                ring = data[begin + head.ring_header_bytes : begin + head.ring_bytes]
                records = sorted(record for record in _RECORD.iter_unpack(ring) if record[0])
                num_half_written += sum(record[0] % 2 for record in records)
                threads.append([_operation(record, tables, places) for record in records if record[0] % 2 == 0])
    except (IndexError, ValueError, struct.error) as error:
        raise DataLossError(f"{source} is damaged: it contains an invalid record", source) from error
    return Process(
        source=source,
        pid=head.pid,
        start_ticks=head.start_ticks,
        wall_minus_monotonic=head.wall_minus_monotonic / 1e9,
        job=head.job,
        host=head.host,
        command=head.command,
        threads=threads,
        num_half_written=num_half_written,
        num_runs=head.num_runs,
        totals={kind: OperationStats(n[0], n[1], n[2] / 1e9, n[3] / 1e9) for kind, n in sums.items() if n[0]},
    )


class NewOperations(NamedTuple):
    """Operations recorded in a ring since it was last read."""

    thread: int
    ended: list[Operation]
    current: Operation | None
    """The operation in progress, which the next read returns again."""
    num_lost: int
    fill: float
    """New records, as a fraction of the ring's capacity."""


class RingReader:
    """Reads the operations of a recorder while they are recorded."""

    def __init__(self, descriptor: int, source: str) -> None:
        self._descriptor = descriptor
        self._source = source
        self._done: list[int] = []  # number of the last record returned from each ring

    def read_new(self) -> Iterator[NewOperations]:
        """Yield the new operations of each ring that has any."""
        head = _Header.of(os.pread(self._descriptor, _HEADER.size, 0), self._source)
        tables, places = head.tables, None
        self._done += [0] * (head.num_rings - len(self._done))
        for ring, done in enumerate(self._done):
            begin = head.rings_offset + ring * head.ring_bytes
            last, thread = self._ring(begin)
            if last == done:
                continue
            first = max(done, last - head.num_records) + 1
            # Slots of the records from `first` to `last`: two ranges if they wrap around the end of the ring.
            low, high = (first - 1) % head.num_records, (last - 1) % head.num_records + 1
            ranges = ((low, high),) if low < high else ((low, head.num_records), (0, high))
            data = b"".join(
                os.pread(
                    self._descriptor,
                    (end - start) * _RECORD.size,
                    begin + head.ring_header_bytes + start * _RECORD.size,
                )
                for start, end in ranges
            )
            # A record is intact if the write of its replacement had not begun when the record was read.
            oldest = self._ring(begin)[0] + 2 - head.num_records
            if places is None:  # read after the records: locations are stored before the records that refer to them
                places = _places(os.pread(self._descriptor, head.rings_offset - _HEADER.size, _HEADER.size))
            found = [
                _operation(record, tables, places)
                for number, record in enumerate(_RECORD.iter_unpack(data), first)
                if record[0] == number << 1 and number >= oldest
            ]
            current = found.pop() if found and found[-1].ended is None else None
            self._done[ring] = last - (current is not None)
            yield NewOperations(
                thread=thread,
                ended=[operation for operation in found if operation.ended is not None],
                current=current,
                num_lost=last - done - len(found) - (current is not None),
                fill=(last - done) / head.num_records,
            )

    def _ring(self, begin: int) -> tuple[int, int]:
        last, thread = _RING.unpack(os.pread(self._descriptor, _RING.size, begin))
        return last, thread


class _Header(NamedTuple):
    rings_offset: int
    ring_bytes: int
    ring_header_bytes: int
    num_records: int
    most_rings: int
    pid: int
    start_ticks: int
    wall_minus_monotonic: int
    num_rings: int
    num_runs: int
    job: str
    host: str
    command: str
    names: str

    @property
    def size(self) -> int:
        return self.rings_offset + self.num_rings * self.ring_bytes

    @property
    def tables(self) -> list[list[str]]:
        return [table.split(",")[:-1] for table in self.names.split(";")[:-1]]

    @staticmethod
    def of(data: bytes, source: str) -> _Header:
        if not data or not (data + _MAGIC[len(data) :]).startswith(_MAGIC):
            raise DataLossError(f"{source} is not a recorder file: it does not begin with {_MAGIC.decode()}", source)
        if len(data) < _HEADER.size:
            raise _truncated(source, len(data), _HEADER.size)
        _, version, *numbers = _HEADER.unpack_from(data)
        if version != _VERSION:
            raise DataLossError(
                f"{source} has version {version} of the recorder's format, but this installation reads version "
                f"{_VERSION}: use the version of ringlet that wrote it",
                source,
            )
        texts = [text.split(b"\0", 1)[0].decode(errors="replace") for text in numbers[10:]]
        head = _Header(*numbers[:10], *texts)
        records_bytes = head.num_records * _RECORD.size
        sizes = (head.rings_offset, head.ring_bytes)
        expected = (_HEADER.size + _PLACES_BYTES, head.ring_header_bytes + records_bytes)
        if head.num_rings > head.most_rings or sizes != expected:
            raise DataLossError(f"{source} is damaged: the sizes in its header contradict each other", source)
        return head


def _places(data: bytes) -> dict[int, str]:
    """Return the source locations by the number with which records refer to them."""
    words = list(_PLACE.iter_unpack(data[: len(data) // _PLACE.size * _PLACE.size]))
    texts = {word >> 1 & 0xFFFF: text for word, text in words if word and word % 2 == 0}
    return {number: text.split(b"\0", 1)[0].decode(errors="replace") for number, text in texts.items()}


def _operation(record: tuple[int, ...], tables: list[list[str]], places: dict[int, str]) -> Operation:
    group, sequence, kind, op, algorithm, dtype, ndim, flags, num_arrays, rank, num_ranks, root, axis = record[1:14]
    began, ended, arrived = record[23:]
    kinds, ops, algorithms, dtypes = tables
    words = [] if op == _NO_NAME else [ops[op]]
    if not flags & _HAS_BUFFERS:
        words.append("None")
    elif dtype != _NO_NAME:
        dims = [str(dim) for dim in record[15 : 15 + min(ndim, _MOST_DIMS)]] + ["..."] * (ndim > _MOST_DIMS)
        more = f" and {num_arrays - 1} more" if num_arrays > 1 else ""
        words.append(f"{dtypes[dtype]}[{','.join(dims)}]{more}")
    words += [f"{name}={place}" for name, place in (("root", root), ("axis", axis)) if place != _NO_PLACE]
    words += [f"algorithm={algorithms[algorithm]}"] if algorithm else []
    return Operation(
        group=f"{group:016x}",
        sequence=sequence,
        rank=rank,
        num_ranks=num_ranks,
        text=f"{kinds[kind]}({', '.join(words)})" + (", continued" if flags & _CONTINUES else ""),
        bytes=record[14] & ((1 << _PLACE_BIT) - 1),
        has_buffers=bool(flags & _HAS_BUFFERS),
        fingerprints=(record[21], record[22]),
        began=began / 1e9,
        arrived=arrived / 1e9 if arrived else None,
        ended=(ended & ~_RAISED) / 1e9 if ended else None,
        outcome="in progress" if not ended else "raised" if ended & _RAISED else "returned",
        place=places.get(record[14] >> _PLACE_BIT, ""),
    )


def _truncated(source: str, size: int, expected: int) -> DataLossError:
    return DataLossError(
        f"{source} is truncated: it has {size} bytes, and its header describes at least {expected}", source, size
    )
