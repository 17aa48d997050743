"""One rank of a group over several hosts: the interface of the core's members, by shared memory and messages.

The ranks of a host combine or collect their data in the memory of the host's first rank, the leader; the leaders
exchange these; then each leader distributes the result in its host. A call begins with a comparison of the calls: in
each host by a barrier with the description of the call as its name, between hosts by the first message.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn, TypeVar

import numpy as np

from ringlet import _core
from ringlet.collectives.collective_dtypes import as_result, check_pair, is_known, native
from ringlet.collectives.hosts.host_group import HostGroup
from ringlet.collectives.hosts.host_link import EXTRA_SECONDS, HEAD, PARTIAL, RESULT, WHOLE, HostLink, Incoming
from ringlet.collectives.hosts.partial_results import combine, finish, partial_dtype, partial_op
from ringlet.collectives.op import Op
from ringlet.errors import (
    CollectiveAborted,
    CollectiveMismatchError,
    DeadlineExceededError,
    InvalidArgumentError,
    WorkerLostError,
)

__all__ = ["HostMember"]

Array = np.ndarray[Any, np.dtype[Any]]
T = TypeVar("T")

_FAILURES = (
    CollectiveAborted,
    CollectiveMismatchError,
    DeadlineExceededError,
    InvalidArgumentError,
    WorkerLostError,
)

# Largest payload that travels with the first message of a call.
_INLINE_BYTES = 16 << 10
_HEAD_BYTES = 4 << 10
# Bytes of one message of a large call, and the number of messages under way while one is combined: measured.
_PIECE_BYTES = 1 << 20
_LAG = 1
_LONGEST_TEXT = 300
_LENGTHS = struct.Struct("<QQ")  # of the description and of other properties, which follow


class HostMember:
    """One rank; `local` is its member in the group of its host, `link` leads to the leaders of the other hosts."""

    def __init__(self, local: _core.Member, group: HostGroup, link: HostLink) -> None:
        self._local = local
        self.group = group
        self._link = link
        host = group.hosts[group.host]
        self._begin, self._num_local = host.begin, host.end - host.begin
        self.rank = host.begin + local.rank
        self.num_ranks = group.num_ranks
        self.calls = 0  # that this rank has begun
        self._series: int | None = None
        self._is_leader = local.rank == 0
        self._gate: Callable[[], object] | None = None
        self._extra = 0.0

    # --- life ---------------------------------------------------------------------------------------------------------

    def begin_series(self) -> None:
        """Begin a series of calls; see the core's member."""
        self._local.begin_series()
        self._series = self.calls

    def end_series(self) -> None:
        """End the series of calls."""
        self._local.end_series()
        self._series = None

    def set_gate(self, gate: Callable[[], object]) -> None:
        """Call `gate` before each call."""
        self._gate = gate

    def depart(self, reason: str) -> None:
        """Declare that this rank makes no more calls."""
        self._local.depart(reason)
        self._leave(reason)

    def rejoin(self) -> NoReturn:
        """Raise an error."""
        raise _unsupported("rejoin")

    def split(self, color: int | None, key: int, label: int) -> NoReturn:
        """Raise an error."""
        raise _unsupported("split")

    def exclusive_scan(self, array: Array, op: int, out: Array | None) -> NoReturn:
        """Raise an error."""
        raise _unsupported("exclusive_scan")

    def close(self, reason: str) -> bool:
        """Leave the group; return False if this rank left it before."""
        is_first = self._local.close(reason)
        if is_first:
            self._leave(reason)
        return is_first

    def _leave(self, reason: str) -> None:
        if self._is_leader and self.group.failure is None:
            self._link.leave(reason)

    # --- calls --------------------------------------------------------------------------------------------------------

    def barrier(self, name: str) -> None:
        """Wait until all ranks have called it."""
        self._call(f"barrier({name!r})", self._meet, ends_together=True)

    def all_reduce(self, arrays: Sequence[Array], op: int, algorithm: int, outs: Sequence[Array] | None) -> list[Array]:
        """Combine the arrays of all ranks; every algorithm combines them in the order of the balanced tree."""
        operation = Op(op)
        for array in arrays:
            _check_plain(array, operation)
        results = _outputs(arrays, outs, operation)
        writeable = [result[0] for result in results]
        shapes = ", ".join(_text(array) for array in arrays)
        where = ", out" if outs is not None else ""
        self._call(
            f"all_reduce({operation.name}, {shapes}{where})",
            lambda text: self._all_reduce(text, arrays, operation, writeable),
        )
        return [result[1] for result in results]

    def plan_all_reduce(self, array: Array, op: int, algorithm: int, out: Array | None) -> Callable[[], Array]:
        """Return a callable that all-reduces the current contents of an array."""
        _check_plain(array, Op(op))
        outs = None if out is None else [out]
        _outputs([array], outs, Op(op))
        return lambda: self.all_reduce([array], op, algorithm, outs)[0]

    def reduce(self, array: Array, op: int, root: int, out: Array | None) -> Array | None:
        """Combine the arrays of all ranks on one rank."""
        operation = Op(op)
        _check_plain(array, operation)
        result = _outputs([array], None if out is None else [out], operation)[0] if self.rank == root else None
        self._call(
            f"reduce({operation.name}, {_text(array)}, root={root})",
            lambda text: self._reduce(text, array, operation, root, None if result is None else result[0]),
            ends_together=True,
        )
        return None if result is None else result[1]

    def reduce_scatter(self, array: Array, op: int, out: Array | None) -> Array:
        """Combine the arrays of all ranks; each rank receives its block of rows."""
        operation = Op(op)
        _check_plain(array, operation)
        if not array.ndim:
            raise _core.Unusable()
        if array.shape[0] % self.num_ranks:
            raise InvalidArgumentError(f"cannot cut {array.shape[0]} rows into {self.num_ranks} equal blocks.")
        rows = array.shape[0] // self.num_ranks
        block = array[rows * self.rank : rows * (self.rank + 1)]
        result = _outputs([block], None if out is None else [out], operation)[0]
        self._call(
            f"reduce_scatter({operation.name}, {_text(array)})",
            lambda text: self._reduce_scatter(text, array, operation, result[0]),
        )
        return result[1]

    def broadcast(self, arrays: Sequence[Array] | None, root: int, outs: Sequence[Array] | None) -> list[Array]:
        """Copy the arrays of one rank to all."""
        for array in arrays or ():
            _check_plain(array)
        if outs is not None and arrays is not None:
            _outputs(arrays, outs, None)
        return self._call(
            f"broadcast(root={root})", lambda text: self._broadcast(text, arrays, root, outs), ends_together=True
        )

    def all_gather(self, array: Array, axis: int, out: Array | None) -> Array:
        """Concatenate the arrays of all ranks."""
        result: Array = self._gather(array, None, axis, out)
        return result

    def gather(self, array: Array, root: int, axis: int, out: Array | None) -> Array | None:
        """Concatenate the arrays of all ranks on one rank."""
        result: Array | None = self._gather(array, root, axis, out)
        return result

    def scatter(self, array: Array | None, root: int, counts: Sequence[int] | None, out: Array | None) -> Array:
        """Distribute the rows of one rank's array."""
        rows: list[int] | None = None
        if self.rank == root:
            assert array is not None
            rows = self._rows_of(array, counts)
        block: Array = self._call(f"scatter(root={root})", lambda text: self._scatter(text, array, root, rows))
        return _stored(block, out)

    def all_to_all(self, array: Array, counts: Sequence[int] | None, out: Array | None) -> Array:
        """Send a block of rows to each rank."""
        rows = self._rows_of(array, counts)
        ragged = "" if counts is None else ", counts"
        shape = _text(array) if counts is None else _text(array[:0])
        result = self._call(f"all_to_all({shape}{ragged})", lambda text: self._exchange_rows(text, array, rows))
        return _stored(result, out)

    def collective_permute(self, array: Array, pairs: Sequence[tuple[int, int]], out: Array | None) -> Array:
        """Send the arrays of sources to targets; other ranks receive zeros."""
        _check_plain(array)
        rows = [0] * self.num_ranks
        for source, target in pairs:
            if source == self.rank:
                rows[target] = 1
        one = array.reshape(1, *array.shape)[: sum(rows)]
        text = f"collective_permute({_text(array)}, pairs={list(map(tuple, pairs))})"
        found = self._call(text, lambda text: self._exchange_rows(text, one, rows))
        return _stored(found[0] if len(found) else np.zeros_like(array), out)

    # --- the frame of a call ------------------------------------------------------------------------------------------

    def _call(self, text: str, run: Callable[[str], T], *, ends_together: bool = False) -> T:
        """Compare the call with those of the other ranks of this host, and run it; a failure fails the group.

        With `ends_together`, no rank of this host returns before the leader has compared the call with other hosts'.
        """
        if self._gate is not None:
            self._gate()
        self._local.calls  # noqa: B018 - raises if this rank has closed its group
        self.group.check()
        if len(text) > _LONGEST_TEXT:
            text = f"{text[:_LONGEST_TEXT]}... {hashlib.sha256(text.encode()).hexdigest()[:16]})"
        if self._series is not None:
            text += f", call {self.calls - self._series + 1} of a series"
        self.calls += 1
        try:
            if self._num_local > 1:
                self._allow(0)
                self._local.barrier(text)
                self._allow(3 * EXTRA_SECONDS)  # the leader waits for other hosts
            if self._is_leader:
                self._link.begin(self.calls)
                self.group.call = self.calls, text
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
        """Exchange a description and up to `_INLINE_BYTES` with the leaders; return theirs, in the order of hosts."""
        return self._end_meeting(text, data, meta, self._begin_meeting(text, data, meta))

    def _begin_meeting(self, text: str, data: bytes = b"", meta: bytes = b"") -> list[Incoming]:
        if not self._is_leader:
            return []
        link, described = self._link, text.encode()
        incoming = [link.receive(host, HEAD, _HEAD_BYTES + _INLINE_BYTES) for host in link.others]
        content = b"".join((_LENGTHS.pack(len(described), len(meta)), described, meta, data))
        frame = link.frame(_HEAD_BYTES + _INLINE_BYTES)
        frame.payload.data[: len(content)] = content
        link.send(link.others, HEAD, frame, len(content))
        return incoming

    def _end_meeting(
        self, text: str, data: bytes, meta: bytes, incoming: Sequence[Incoming]
    ) -> list[tuple[bytes, bytes]]:
        if not self._is_leader:
            return []
        link = self._link
        parts = [(meta, data)] * link.num_hosts
        texts = [text] * link.num_hosts
        for message, payload in zip(incoming, link.wait(incoming), strict=True):
            content = payload.tobytes()  # the frame is used again
            length, meta_length = _LENGTHS.unpack_from(content)
            middle = _LENGTHS.size + length
            texts[message.host] = content[_LENGTHS.size : middle].decode()
            parts[message.host] = content[middle : middle + meta_length], content[middle + meta_length :]
            link.release(message.frame)
        if any(other != text for other in texts):
            self._refuse(texts)
        return parts

    def _refuse(self, texts: Sequence[str]) -> NoReturn:
        lines = "".join(f"\n  {host}: {text}" for host, text in zip(self.group.hosts, texts, strict=True))
        raise CollectiveMismatchError(
            f"{WHOLE}the ranks did not make the same call (their call number {self.calls}):{lines}\n"
            "Make the same calls in the same order, with equal shapes and dtypes, on every rank."
        )

    # --- reductions ---------------------------------------------------------------------------------------------------

    def _all_reduce(self, text: str, arrays: Sequence[Array], op: Op, outs: Sequence[Array]) -> None:
        streams = list(_streams(arrays, outs))
        if sum(len(source) * partial_dtype(source.dtype).itemsize for source, _, _ in streams) <= _INLINE_BYTES:
            self._all_reduce_small(text, streams, op)
        else:
            incoming = self._begin_meeting(text)
            for number, (source, result, _) in enumerate(streams):
                meet = (lambda: self._end_meeting(text, b"", b"", incoming)) if number == 0 else None
                if self._link.num_hosts == 2 and result.dtype == partial_dtype(source.dtype):
                    self._all_reduce_pair(source, op, result, meet)
                    continue
                if meet is not None:
                    meet()
                step = -(-len(source) // self._link.num_hosts)
                regions = [(min(h * step, len(source)), min((h + 1) * step, len(source))) for h in self._hosts()]
                self._reduce_regions(source, op, regions, result, distribute=True)
        for _, result, store in streams:
            store(result)

    def _all_reduce_small(self, text: str, streams: Sequence[Any], op: Op) -> None:
        mine = [self._local_partial(source, op) for source, _, _ in streams]
        found = self._meet(text, b"".join([partial.tobytes() for partial in mine]))
        begin = 0
        for (source, result, _), partial in zip(streams, mine, strict=True):
            if self._is_leader:
                parts = [np.frombuffer(data[begin : begin + partial.nbytes], partial.dtype) for _, data in found]
                parts[self.group.host] = partial
                begin += partial.nbytes
                total = result if result.dtype == partial.dtype else np.empty_like(partial)
                combine(parts, op, total)
                finish(total, op, self.num_ranks, source.dtype, result)
        if self._num_local > 1:
            results = [result for _, result, _ in streams]
            self._local.broadcast(results, 0, results)

    def _all_reduce_pair(self, source: Array, op: Op, result: Array, meet: Callable[[], object] | None) -> None:
        """Exchange the partial results of two hosts, which both combine them; `meet` compares their calls."""
        link, step = self._link, _PIECE_BYTES // source.dtype.itemsize
        count = -(-len(source) // step)
        stages: list[Any] = [None] * count
        for number in range(count + _LAG):
            if number < count:
                piece = slice(number * step, min((number + 1) * step, len(source)))
                own = self._local_partial(source[piece], op)
                if self._is_leader:
                    incoming = [link.receive(other, PARTIAL, _PIECE_BYTES, own.nbytes) for other in link.others]
                    frame = link.frame(_PIECE_BYTES)
                    frame.payload[: own.nbytes] = own.view(np.uint8)
                    link.send(link.others, PARTIAL, frame, own.nbytes)
                    stages[number] = own, incoming
            if meet is not None and (number == _LAG or number == count - 1):
                meet()
                meet = None
            if number >= _LAG:
                begin = (number - _LAG) * step
                place = result[begin : begin + step]
                if self._is_leader:
                    self._combine_pair(stages[number - _LAG], op, source.dtype, place)
                    stages[number - _LAG] = None
                if self._num_local > 1:
                    self._local.broadcast([place], 0, [place])

    def _combine_pair(self, stage: Any, op: Op, dtype: np.dtype[Any], place: Array) -> None:
        own, incoming = stage
        parts = [own] * self._link.num_hosts
        for message, payload in zip(incoming, self._link.wait(incoming), strict=True):
            parts[message.host] = payload.view(dtype)
        combine(parts, op, place)
        finish(place, op, self.num_ranks, dtype, place)
        for message in incoming:
            self._link.release(message.frame)

    def _local_partial(self, source: Array, op: Op, into: Array | None = None) -> Array:
        """Return the combination of this host's ranks on the leader, in `into` if given; elsewhere the input."""
        source = source.astype(partial_dtype(source.dtype), copy=False)
        if not self._is_leader:
            self._local.reduce(source, partial_op(op).value, 0, None)
            return source
        if self._num_local == 1 and into is None:
            return source
        if into is None:
            into = np.empty_like(source)
        if self._num_local == 1:
            into[...] = source
        else:
            self._local.reduce(source, partial_op(op).value, 0, into)
        return into

    def _reduce_regions(
        self,
        source: Array,
        op: Op,
        regions: Sequence[tuple[int, int]],
        result: Array | None,
        *,
        distribute: bool = False,
    ) -> None:
        """Combine a flat array over all ranks: the leader of each host receives its region of the result.

        With `distribute`, all ranks receive all regions in `result`; else `result` is the region, on the leader.
        """
        step = _PIECE_BYTES // max(partial_dtype(source.dtype).itemsize, as_result(source.dtype, op).itemsize)
        num_steps = max(-(-(end - begin) // step) for begin, end in regions)
        stages: list[Any] = [None] * (num_steps + 2)
        for number in range(num_steps + 2):
            if number < num_steps:
                pieces = [slice(min(b + number * step, e), min(b + (number + 1) * step, e)) for b, e in regions]
                stages[number] = pieces, self._send_partials(source, op, pieces)
            if 1 <= number <= num_steps and self._is_leader:
                pieces, begun = stages[number - 1]
                place = self._own_place(result, pieces, regions, distribute)
                stages[number - 1] = (
                    pieces,
                    self._combine_partials(source, op, begun, place, pieces if distribute else None),
                )
            if number >= 2 and distribute:
                assert result is not None
                self._distribute(stages[number - 2], result)
                stages[number - 2] = None

    def _own_place(
        self, result: Array | None, pieces: Sequence[slice], regions: Sequence[tuple[int, int]], distribute: bool
    ) -> Array | None:
        mine = pieces[self.group.host]
        if result is None or distribute:
            return None if result is None else result[mine]
        begin = regions[self.group.host][0]
        return result[mine.start - begin : mine.stop - begin]

    def _send_partials(self, source: Array, op: Op, pieces: Sequence[slice]) -> Any:
        dtype = partial_dtype(source.dtype)
        own: Array | None = None
        incoming = []
        link = self._link
        mine = pieces[self.group.host]
        size = (mine.stop - mine.start) * dtype.itemsize
        if self._is_leader and size:
            incoming = [link.receive(host, PARTIAL, _PIECE_BYTES, size) for host in link.others]
        for host, piece in enumerate(pieces):
            if piece.start == piece.stop:
                continue
            if host == self.group.host or not self._is_leader:
                found = self._local_partial(source[piece], op)
                own = found if host == self.group.host else own
            else:
                frame = link.frame(_PIECE_BYTES)
                nbytes = (piece.stop - piece.start) * dtype.itemsize
                self._local_partial(source[piece], op, frame.payload[:nbytes].view(dtype))
                link.send([host], PARTIAL, frame, nbytes)
        return own, incoming

    def _combine_partials(
        self, source: Array, op: Op, begun: Any, place: Array | None, pieces: Sequence[slice] | None
    ) -> Any:
        """Store this host's piece of the result in `place`; with `pieces`, exchange them with the other leaders."""
        own, incoming = begun
        link = self._link
        if own is not None:
            assert place is not None
            parts = [own] * link.num_hosts
            for message, payload in zip(incoming, link.wait(incoming), strict=True):
                parts[message.host] = payload.view(own.dtype)
            total = np.empty_like(own)
            combine(parts, op, total)
            finish(total, op, self.num_ranks, source.dtype, place)
            for message in incoming:
                link.release(message.frame)
        if pieces is None:
            return None
        assert place is not None
        if own is not None:
            frame = link.frame(_PIECE_BYTES)
            frame.payload[: place.nbytes] = place.view(np.uint8)
            link.send(link.others, RESULT, frame, place.nbytes)
        itemsize = place.dtype.itemsize
        sizes = [(host, (pieces[host].stop - pieces[host].start) * itemsize) for host in link.others]
        return [link.receive(host, RESULT, _PIECE_BYTES, size) for host, size in sizes if size]

    def _distribute(self, stage: Any, result: Array) -> None:
        pieces, incoming = stage
        if self._is_leader:
            for message, payload in zip(incoming, self._link.wait(incoming), strict=True):
                result[pieces[message.host]] = payload.view(result.dtype)
                self._link.release(message.frame)
        if self._num_local > 1:
            parts = [result[piece] for piece in pieces if piece.start < piece.stop]
            self._local.broadcast(parts, 0, parts)

    def _reduce(self, text: str, array: Array, op: Op, root: int, out: Array | None) -> None:
        self._meet(text)
        flat, home = array.reshape(-1), self._host_of(root)
        regions = [(0, len(flat)) if host == home else (0, 0) for host in self._hosts()]
        result = None
        if home == self.group.host and self._is_leader:
            result = np.empty(len(flat), as_result(array.dtype, op)) if out is None else out.reshape(-1)
        self._reduce_regions(flat, op, regions, result)
        if home == self.group.host and root != self._begin:
            found = self._local.broadcast([result] if self._is_leader else None, 0, None)[0]  # type: ignore[list-item]
            if out is not None:
                out.reshape(-1)[...] = found

    def _reduce_scatter(self, text: str, array: Array, op: Op, out: Array) -> None:
        self._meet(text)
        each = array.size // self.num_ranks
        regions = [(host.begin * each, host.end * each) for host in self.group.hosts]
        mine = np.empty(self._num_local * each, out.dtype) if self._is_leader else None
        self._reduce_regions(array.reshape(-1), op, regions, mine)
        out.reshape(-1)[...] = self._scatter_here(mine, [each] * self._num_local)

    # --- data movement ------------------------------------------------------------------------------------------------

    def _broadcast(
        self, text: str, arrays: Sequence[Array] | None, root: int, outs: Sequence[Array] | None
    ) -> list[Array]:
        home, is_here = self._host_of(root), self._host_of(root) == self.group.host
        if is_here and self._num_local > 1:
            arrays = self._local.broadcast(arrays, root - self._begin, outs)
        given = json.dumps(None if arrays is None else [(a.dtype.name, a.shape) for a in arrays]).encode()
        described = [json.loads(meta) for meta, _ in self._meet_described(text, given)]
        if self._is_leader:
            shapes = described[home]
            if any(other not in (None, shapes) for other in described):
                self._refuse([f"{text}: {other}" for other in described])
            received = self._move_from(home, [] if arrays is None else arrays, shapes)
            if not is_here:
                arrays = received
        if not is_here and self._num_local > 1:
            return self._local.broadcast(arrays if self._is_leader else _as_arguments(arrays, outs), 0, outs)
        assert arrays is not None
        if outs is None:
            is_given = is_here and self._num_local == 1
            return [_read_only(array.copy() if is_given else array) for array in arrays]
        for out, array in zip(outs, arrays, strict=True):
            if out is not array:
                out[...] = array
        return list(outs)

    def _meet_described(self, text: str, meta: bytes) -> list[tuple[bytes, bytes]]:
        """Exchange descriptions of any length with the leaders."""
        if len(meta) <= _HEAD_BYTES // 2:
            return self._meet(text, b"", meta)
        sizes = [int(np.frombuffer(data, np.int64)[0]) for _, data in self._meet(text, np.int64(len(meta)).tobytes())]
        own = np.frombuffer(meta, np.uint8)
        return [
            (
                self._move_from(host, [own] if host == self.group.host else [], [("uint8", [size])])[0].tobytes(),
                b"",
            )
            for host, size in enumerate(sizes)
        ]

    def _move_from(
        self, home: int, arrays: Sequence[Array], shapes: Sequence[tuple[str, Sequence[int]]]
    ) -> list[Array]:
        """Send the arrays of one leader to all others, which receive them in new memory."""
        link = self._link
        received: list[Array] = []
        for number, (name, shape) in enumerate(shapes):
            if home == self.group.host:
                array = arrays[number]
                self._send_bytes(link.others, array)
            else:
                array = np.empty(shape, _dtype_of(name))
                self._receive_bytes([(home, array)])
            received.append(array)
        return received

    def _send_bytes(self, hosts: Sequence[int], array: Array) -> None:
        """Send an array to hosts, in pieces."""
        data = _as_bytes(array)
        for begin in range(0, len(data), _PIECE_BYTES):
            frame = self._link.frame(_PIECE_BYTES)
            size = min(_PIECE_BYTES, len(data) - begin)
            frame.payload[:size] = data[begin : begin + size]
            self._link.send(hosts, RESULT, frame, size)

    def _receive_bytes(self, places: Iterable[tuple[int, Array]]) -> None:
        """Receive an array from each of some hosts, in pieces; two pieces of each are under way at a time."""
        targets = [(host, _as_bytes(array)) for host, array in places]
        link = self._link
        longest = max((len(data) for _, data in targets), default=0)
        before: list[Any] = []
        for number in range(-(-longest // _PIECE_BYTES) + 1):
            begin = number * _PIECE_BYTES
            now = [
                (link.receive(host, RESULT, _PIECE_BYTES, min(_PIECE_BYTES, len(data) - begin)), data, begin)
                for host, data in targets
                if begin < len(data)
            ]
            for (message, data, at), payload in zip(before, link.wait([each[0] for each in before]), strict=True):
                data[at : at + len(payload)] = payload
                link.release(message.frame)
            before = now

    def _gather(self, array: Array, root: int | None, axis: int, out: Array | None) -> Any:
        _check_plain(array)
        if not 0 <= axis < array.ndim:
            raise InvalidArgumentError(f"axis is {axis}: the array has dimensions 0 to {array.ndim - 1}.")
        others = [*array.shape[:axis], "*", *array.shape[axis + 1 :]]
        where = f"axis={axis}" if root is None else f"axis={axis}, root={root}"
        text = f"{'all_' if root is None else ''}gather({array.dtype.name}{others}, {where})".replace("'", "")
        found = self._call(text, lambda text: self._gather_blocks(text, array, root, axis), ends_together=True)
        return _stored(found, out) if root in (None, self.rank) else None

    def _gather_blocks(self, text: str, array: Array, root: int | None, axis: int) -> Any:
        block = array if self._num_local == 1 else self._local.gather(array, 0, axis, None)
        result = None
        if self._is_leader:
            assert block is not None
            lengths = [
                int(np.frombuffer(d, np.int64)[0]) for _, d in self._meet(text, np.int64(block.shape[axis]).tobytes())
            ]
            targets = self._link.others if root is None else [self._host_of(root)]
            if targets != [self.group.host]:
                self._send_bytes([host for host in targets if host != self.group.host], block)
            if root is None or self.group.host == self._host_of(root):
                blocks = [block] * self._link.num_hosts
                for host in self._link.others:
                    blocks[host] = np.empty((*array.shape[:axis], lengths[host], *array.shape[axis + 1 :]), array.dtype)
                self._receive_bytes((host, blocks[host]) for host in self._link.others)
                result = np.concatenate(blocks, axis)
        is_here = root is None or self._host_of(root) == self.group.host
        if self._num_local > 1 and is_here and root != self._begin:
            result = self._local.broadcast([result] if self._is_leader else None, 0, None)[0]  # type: ignore[list-item]
        return result

    def _rows_of(self, array: Array, counts: Sequence[int] | None) -> list[int]:
        _check_plain(array)
        if not array.ndim:
            raise _core.Unusable()
        if counts is not None:
            return [int(count) for count in counts]
        if array.shape[0] % self.num_ranks:
            raise InvalidArgumentError(f"cannot cut {array.shape[0]} rows into {self.num_ranks} equal blocks.")
        return [array.shape[0] // self.num_ranks] * self.num_ranks

    def _scatter(self, text: str, array: Array | None, root: int, rows: list[int] | None) -> Array:
        home, is_here = self._host_of(root), self._host_of(root) == self.group.host
        meta = b"null"
        if is_here:
            if self.rank == root and array is not None:
                meta = json.dumps([array.dtype.name, array.shape, rows]).encode()
            if self._num_local > 1 and root != self._begin:  # to the leader
                packed = [np.frombuffer(meta, np.uint8), array] if self.rank == root else None
                found = self._local.broadcast(packed, root - self._begin, None)  # type: ignore[arg-type]
                meta, array = found[0].tobytes(), found[1]
        described = self._meet_described(text, meta)
        mine: Array | None = None
        counts: list[int] = []
        if self._is_leader:
            name, shape, all_rows = json.loads(described[home][0])
            starts = np.concatenate([[0], np.cumsum(all_rows)]).tolist()
            counts = all_rows[self._begin : self._begin + self._num_local]
            if is_here:
                assert array is not None
                for host in self._link.others:
                    part = array[starts[self.group.hosts[host].begin] : starts[self.group.hosts[host].end]]
                    self._send_bytes([host], part)
                mine = array[starts[self._begin] : starts[self._begin + self._num_local]]
            else:
                mine = np.empty((sum(counts), *shape[1:]), _dtype_of(name))
                self._receive_bytes([(home, mine)])
        return self._scatter_here(mine, counts)

    def _scatter_here(self, rows: Array | None, counts: list[int]) -> Array:
        """Distribute rows of the leader in this host."""
        if self._num_local == 1:
            assert rows is not None
            return rows
        return self._local.scatter(rows, 0, counts if self._is_leader else None, None)

    def _exchange_rows(self, text: str, array: Array, rows: Sequence[int]) -> Array:
        """Send blocks of rows from each rank to each."""
        table = np.array(rows, np.int64).reshape(1, -1)
        block: Array | None = array
        if self._num_local > 1:
            table = self._local.gather(table, 0, 0, None)  # type: ignore[assignment]
            block = self._local.gather(array, 0, 0, None)
        mine: Array | None = None
        counts: list[int] = []
        if self._is_leader:
            assert block is not None
            mine, counts = self._exchange_blocks(text, block, table)
        return self._scatter_here(mine, counts)

    def _exchange_blocks(self, text: str, block: Array, table: Array) -> tuple[Array, list[int]]:
        """Exchange rows between leaders; return those for this host, by target and source, and their counts."""
        link, hosts = self._link, self.group.hosts
        self._meet(text)
        # The numbers of rows between all ranks.
        whole = np.empty((self.num_ranks, self.num_ranks), np.int64)
        whole[self._begin : self._begin + self._num_local] = table
        self._send_bytes(link.others, np.ascontiguousarray(table))
        self._receive_bytes((host, whole[hosts[host].begin : hosts[host].end]) for host in link.others)
        # For each pair of hosts, rows are ordered by source, then by target.
        starts = np.concatenate([[0], np.cumsum(table)])
        outgoing: list[list[Array]] = [[] for _ in hosts]
        for place in range(table.size):
            target = place % self.num_ranks
            outgoing[self._host_of(target)].append(block[starts[place] : starts[place + 1]])
        arrived: list[Array] = []
        for host, each in enumerate(hosts):
            sent = np.concatenate(outgoing[host])
            if host == self.group.host:
                arrived.append(sent)
                continue
            self._send_bytes([host], sent)
            count = int(whole[each.begin : each.end, self._begin : self._begin + self._num_local].sum())
            arrived.append(np.empty((count, *block.shape[1:]), block.dtype))
        self._receive_bytes((host, arrived[host]) for host in link.others)
        columns = whole[:, self._begin : self._begin + self._num_local]
        pieces = np.split(np.concatenate(arrived), np.cumsum(columns.reshape(-1))[:-1])
        ordered = [pieces[s * self._num_local + t] for t in range(self._num_local) for s in range(self.num_ranks)]
        return np.concatenate(ordered), [int(n) for n in columns.sum(axis=0)]

    def _hosts(self) -> range:
        return range(len(self.group.hosts))

    def _host_of(self, rank: int) -> int:
        return next(number for number, host in enumerate(self.group.hosts) if rank < host.end)


# --- arguments and results --------------------------------------------------------------------------------------------


def _unsupported(name: str) -> NotImplementedError:
    return NotImplementedError(
        f"{name} is not available for a group over several hosts in this version: start all ranks on one host, or use "
        "all_gather."
    )


def _check_plain(array: Any, op: Op | None = None) -> None:
    """Raise `_core.Unusable` for arguments that the caller converts first."""
    flags = array.flags if type(array) is np.ndarray else None
    if flags is None or not (flags.c_contiguous and flags.aligned):
        raise _core.Unusable()
    if native(array.dtype) is not array.dtype or not is_known(array.dtype):
        raise _core.Unusable()
    if op is not None:
        check_pair(array.dtype, op)


def _dtype_of(name: str) -> np.dtype[Any]:
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes

        dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        is_known(dtype)  # registers it
        return dtype


def _text(array: Array) -> str:
    return f"{array.dtype.name}{list(array.shape)}"


def _read_only(array: Array) -> Array:
    view: Array = array.view()
    view.flags.writeable = False
    return view


def _outputs(arrays: Sequence[Array], outs: Sequence[Array] | None, op: Op | None) -> list[tuple[Array, Array]]:
    """Return for each array the memory of its result, and the array that the caller receives."""
    dtypes = [array.dtype if op is None else as_result(array.dtype, op) for array in arrays]
    if outs is None:
        return [_core.allocate(array.shape, dtype) for array, dtype in zip(arrays, dtypes, strict=True)]
    for array, dtype, out in zip(arrays, dtypes, outs, strict=True):
        _check_plain(out)
        is_in_place = out.ctypes.data == array.ctypes.data and out.nbytes == array.nbytes
        fits = out.flags.writeable and out.dtype == dtype and out.shape == array.shape
        if not fits or (np.may_share_memory(out, array) and not is_in_place):
            raise _core.Unusable()
    return [(out, out) for out in outs]


def _stored(result: Array, out: Array | None) -> Array:
    """Return a result, or the caller's output with its contents."""
    if out is None:
        return _read_only(result)
    if out.shape != result.shape or out.dtype != result.dtype:
        raise InvalidArgumentError(
            f"out is {_text(out)}, and the result is {_text(result)}: pass an array of that shape."
        )
    out[...] = result
    return out


def _as_arguments(arrays: Sequence[Array] | None, outs: Sequence[Array] | None) -> Sequence[Array] | None:
    return outs if arrays is None else arrays


def _as_bytes(array: Array) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8) if array.nbytes else np.empty(0, np.uint8)


def _streams(arrays: Sequence[Array], outs: Sequence[Array]) -> Iterable[tuple[Array, Array, Callable[[Array], None]]]:
    """Return flat inputs and outputs: many arrays of one dtype are packed into one, which `store` unpacks."""
    groups: dict[Any, list[int]] = {}
    for number, array in enumerate(arrays):
        groups.setdefault(array.dtype, []).append(number)
    for numbers in groups.values():
        targets = [outs[number].reshape(-1) for number in numbers]
        if len(numbers) == 1:
            yield arrays[numbers[0]].reshape(-1), targets[0], lambda result: None
            continue
        source = np.concatenate([arrays[number].reshape(-1) for number in numbers])

        def store(result: Array, targets: Sequence[Array] = targets) -> None:
            begin = 0
            for target in targets:
                target[...] = result[begin : begin + len(target)]
                begin += len(target)

        yield source, np.empty(len(source), targets[0].dtype), store
