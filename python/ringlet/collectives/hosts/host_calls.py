"""One rank of a group over several hosts: comparison of its calls, and transfer of bytes between the hosts' leaders.

The ranks of a host combine or collect their data in the memory of the host's first rank, the leader; the leaders
exchange the data; then each leader distributes the result within its host. Each call first compares its description
with those of the other ranks: within a host by a barrier named after the call, or by the first reduce of a small
all-reduce, and between hosts in the first message.
"""

from __future__ import annotations

import functools
import hashlib
import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn, TypeVar

import numpy as np

from ringlet import _core
from ringlet.collectives.buffers import overlaps_partly
from ringlet.collectives.collective_dtypes import as_result, check_pair, is_known, native
from ringlet.collectives.hosts.host_group import HostGroup
from ringlet.collectives.hosts.host_link import EXTRA_SECONDS, HEAD, RESULT, WHOLE, HostLink, Incoming
from ringlet.collectives.op import Op
from ringlet.errors import (
    CollectiveAborted,
    CollectiveMismatchError,
    DeadlineExceededError,
    InvalidArgumentError,
    WorkerLostError,
)

Array = np.ndarray[Any, np.dtype[Any]]
T = TypeVar("T")

_FAILURES = (
    CollectiveAborted,
    CollectiveMismatchError,
    DeadlineExceededError,
    InvalidArgumentError,
    WorkerLostError,
)

# Maximum payload of a call's first message between two hosts, chosen by measurement.
_INLINE_BYTES_OF_TWO = 1 << 20
# Maximum payload of a call's first messages between more hosts, divided among the other hosts, and the least for each.
_INLINE_BYTES, _LEAST_INLINE_BYTES = 256 << 10, 16 << 10
HEAD_BYTES = 4 << 10  # reserved before the payload for the description
PIECE_BYTES = 1 << 20  # size of one message of a large call, chosen by measurement
_LONGEST_TEXT = 300
_LENGTHS = struct.Struct("<QQ")  # lengths of the description and of the metadata, which follow
_ALIGNMENT = 64  # alignment in bytes of the data after the description


class HostCalls:
    """Calls of one rank; `local` is its member of the host's group, `link` connects the leaders of the hosts."""

    def __init__(self, local: _core.Member, group: HostGroup, link: HostLink) -> None:
        self._local = local
        self.group = group
        self._link = link
        host = group.hosts[group.host]
        self._begin, self._num_local = host.begin, host.end - host.begin
        self.rank = host.begin + local.rank
        self.num_ranks = group.num_ranks
        self.calls = 0  # number of calls that this rank has begun
        self._series: int | None = None
        self._is_leader = local.rank == 0
        # Maximum size of data sent with the first message of a call.
        num_others = len(group.hosts) - 1
        self._inline_bytes = (
            max(_INLINE_BYTES // num_others, _LEAST_INLINE_BYTES) if num_others > 1 else _INLINE_BYTES_OF_TWO
        )
        self._gate: Callable[[], object] | None = None
        self._extra = 0.0

    # --- life cycle ---------------------------------------------------------------------------------------------------

    def begin_series(self) -> None:
        """Begin a series: until `end_series`, a call matches only calls at the same position in other ranks' series."""
        self._local.begin_series()
        self._series = self.calls

    def end_series(self) -> None:
        """End the series of calls."""
        self._local.end_series()
        self._series = None

    def set_gate(self, gate: Callable[[], object]) -> None:
        """Make each later call run `gate` first."""
        self._gate = gate

    def depart(self, reason: str) -> None:
        """Declare that this rank makes no more calls."""
        self._local.depart(reason)
        self._leave(reason)

    def close(self, reason: str) -> bool:
        """Leave the group; return False if this rank has closed it already."""
        is_first = self._local.close(reason)
        if is_first:
            self._leave(reason)
        return is_first

    def _leave(self, reason: str) -> None:
        if self._is_leader and self.group.failure is None:
            self._link.leave(reason)

    # --- comparison of calls ------------------------------------------------------------------------------------------

    def barrier(self, name: str) -> None:
        """Wait until all ranks have called this method."""
        self._call(f"barrier({name!r})", self._meet, ends_together=True)

    def _call(self, text: str, run: Callable[[str], T], *, ends_together: bool = False, is_compared: bool = False) -> T:
        """Compare the call with those of the other ranks of this host, and run it; a failure fails the group.

        With `ends_together`, no rank of this host returns before the leader has compared the call with those of other
        hosts. With `is_compared`, `run` compares the call, by its first step within the host.
        """
        if self._gate is not None:
            self._gate()
        self._local.calls  # noqa: B018 - raises if this rank has closed its group
        self.group.check()
        if not is_description(text):
            text = f"{text[:_LONGEST_TEXT]}... {hashlib.sha256(text.encode()).hexdigest()[:16]})"
        if self._series is not None:
            text += f", call {self.calls - self._series + 1} of a series"
        self.calls += 1
        try:
            if self._num_local > 1:
                self._allow(0)
                if not is_compared:
                    self._local.barrier(text)
                    self._allow(3 * EXTRA_SECONDS)  # time for the leader to wait for other hosts
            if self._is_leader:
                self._link.begin(self.calls)
                self.group.call = self.calls, text
                if self.group.left:
                    self.group.check_presence()
            result = run(text)
            if self._is_leader:
                self._link.flush()
            if ends_together and self._num_local > 1:
                self._local.barrier(text)
            return result
        except _FAILURES as error:
            self._link.abandon()
            raise self.group.fail(error, self.calls) from None
        except BaseException as error:
            self._link.abandon()
            self.group.abort(f"rank {self.rank} raised {type(error).__name__} in {text}: {error}")
            raise

    def _allow(self, seconds: float) -> None:
        if seconds != self._extra:
            self._extra = seconds
            self._local.set_extra_time(seconds)

    def _meet(self, text: str, data: bytes = b"", meta: bytes = b"") -> list[tuple[bytes, bytes]]:
        """Compare the description of the call with those of other leaders; return each host's (metadata, data).

        Ranks that are not leaders get an empty list.
        """
        return self._compare(text, self._announce(text, data, meta), (meta, data)) if self._is_leader else []

    def _announce(self, text: str, data: bytes = b"", meta: bytes = b"") -> list[Incoming]:
        """Start the exchange of :meth:`_meet`; return the expected messages."""
        link, capacity = self._link, HEAD_BYTES + self._inline_bytes
        incoming = [link.receive(host, HEAD, capacity) for host in link.others]
        content = b"".join((description(text, len(meta)), meta, data))
        frame = link.frame(capacity)
        frame.write(content)
        link.send(link.others, HEAD, frame, len(content))
        return incoming

    def _compare(self, text: str, incoming: Sequence[Incoming], own: tuple[bytes, bytes]) -> list[tuple[bytes, bytes]]:
        """Finish the exchange of :meth:`_meet`, and return its result; raise an error if the descriptions differ."""
        link, begin = self._link, description(text, len(own[0]))
        parts, texts = [own] * link.num_hosts, [text] * link.num_hosts
        for message, payload in link.wait(incoming):
            content = payload.tobytes()  # copied, because the frame is reused
            link.release(message.frame)
            middle, meta_length = len(begin), len(own[0])
            if not content.startswith(begin):
                texts[message.host], middle, meta_length = described_by(content)
            parts[message.host] = content[middle : middle + meta_length], content[middle + meta_length :]
        if texts.count(text) < len(texts):
            self._refuse(texts)
        return parts

    def _refuse(self, texts: Sequence[str]) -> NoReturn:
        lines = "".join(f"\n  {host}: {text}" for host, text in zip(self.group.hosts, texts, strict=True))
        raise CollectiveMismatchError(
            f"{WHOLE}the ranks did not make the same call (their call number {self.calls}):{lines}\n"
            "Make the same calls in the same order, with equal shapes and dtypes, on every rank."
        )

    def _host_of(self, rank: int) -> int:
        return next(number for number, host in enumerate(self.group.hosts) if rank < host.end)

    # --- bytes --------------------------------------------------------------------------------------------------------

    def _send_bytes(self, hosts: Sequence[int], array: Array) -> None:
        data = _as_bytes(array)
        for begin in range(0, len(data), PIECE_BYTES):
            frame = self._link.frame(PIECE_BYTES)
            size = min(PIECE_BYTES, len(data) - begin)
            frame.payload[:size] = data[begin : begin + size]
            self._link.send(hosts, RESULT, frame, size)

    def _receive_bytes(self, places: Iterable[tuple[int, Array]]) -> None:
        """Receive an array from each given host, in pieces; at most two of each array are in flight at a time."""
        targets = [(host, _as_bytes(array)) for host, array in places]
        link = self._link
        longest = max((len(data) for _, data in targets), default=0)
        before: list[Any] = []
        for number in range(-(-longest // PIECE_BYTES) + 1):
            begin = number * PIECE_BYTES
            now = [
                (link.receive(host, RESULT, PIECE_BYTES, min(PIECE_BYTES, len(data) - begin)), data, begin)
                for host, data in targets
                if begin < len(data)
            ]
            for (_, data, at), (message, payload) in zip(before, link.wait([each[0] for each in before]), strict=True):
                data[at : at + len(payload)] = payload
                link.release(message.frame)
            before = now

    def _scatter_here(self, rows: Array | None, counts: list[int]) -> Array:
        if self._num_local == 1:
            assert rows is not None
            return rows
        return self._local.scatter(rows, 0, counts if self._is_leader else None, None)


def is_description(text: str) -> bool:
    """Return whether a text can describe a call; of a longer text, its beginning and a hash are used."""
    return len(text) <= _LONGEST_TEXT


@functools.lru_cache(maxsize=256)
def description(text: str, meta_length: int = 0) -> bytes:
    """Return the start of a first message: the lengths of description and metadata, then the padded description."""
    encoded = text.encode()
    begin = _LENGTHS.pack(len(encoded), meta_length) + encoded
    return begin + bytes(-len(begin) % _ALIGNMENT)


def described_by(content: bytes) -> tuple[str, int, int]:
    """Parse a first message: return the description, and the position and the length of the metadata."""
    length, meta_length = _LENGTHS.unpack_from(content)
    end = _LENGTHS.size + length
    return content[_LENGTHS.size : end].decode(), end + -end % _ALIGNMENT, meta_length


# --- arrays -----------------------------------------------------------------------------------------------------------


def check_plain(array: Any, op: Op | None = None) -> None:
    """Raise `_core.Unusable` for an array that the caller must convert first; check that `op` supports its dtype."""
    flags = array.flags if type(array) is np.ndarray else None
    if flags is None or not (flags.c_contiguous and flags.aligned):
        raise _core.Unusable()
    if native(array.dtype) is not array.dtype or not is_known(array.dtype):
        raise _core.Unusable()
    if op is not None:
        check_pair(array.dtype, op)


def checked_outputs(arrays: Sequence[Array], outs: Sequence[Array] | None, op: Op | None) -> list[tuple[Array, Array]]:
    """Return the memory of each result and the array for the caller; raise `_core.Unusable` if `outs` do not fit."""
    dtypes = [array.dtype if op is None else as_result(array.dtype, op) for array in arrays]
    if outs is None:
        return [_core.allocate(array.shape, dtype) for array, dtype in zip(arrays, dtypes, strict=True)]
    for array, dtype, out in zip(arrays, dtypes, outs, strict=True):
        check_plain(out)
        fits = out.flags.writeable and out.dtype == dtype and out.shape == array.shape
        if not fits or overlaps_partly(out, array):
            raise _core.Unusable()
    return [(out, out) for out in outs]


def text_of(array: Array) -> str:
    """Return the dtype and the shape of an array for descriptions of calls."""
    return f"{_name_of(array.dtype)}{list(array.shape)}"


_name_of = functools.lru_cache(maxsize=64)(lambda dtype: dtype.name)  # NumPy computes a dtype's name on each access


def read_only(array: Array) -> Array:
    """Return a read-only view."""
    view: Array = array.view()
    view.flags.writeable = False
    return view


def _as_bytes(array: Array) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8) if array.nbytes else np.empty(0, np.uint8)
