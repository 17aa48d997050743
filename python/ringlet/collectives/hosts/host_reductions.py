"""Reductions over several hosts: the core combines the hosts' partial results in the order of a balanced tree."""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ringlet import _core
from ringlet.collectives.collective_dtypes import as_result
from ringlet.collectives.hosts.host_calls import (
    HEAD_BYTES,
    PIECE_BYTES,
    Array,
    HostCalls,
    check_plain,
    checked_outputs,
    described_by,
    description,
    is_description,
    text_of,
)
from ringlet.collectives.hosts.host_group import HostGroup
from ringlet.collectives.hosts.host_link import DATA, EXTRA_SECONDS, PARTIAL, RESULT, Exchange, HostLink
from ringlet.collectives.hosts.mpi_transport import PeerFailed
from ringlet.collectives.op import Op
from ringlet.errors import InvalidArgumentError

# Size of the messages of a large all-reduce of two hosts, and how many are in flight, chosen by measurement.
_DATA_BYTES, _MOST_IN_FLIGHT = 4 << 20, 2
_NUM_SAMPLED = 256  # bytes of each piece that are compared with those sent
# Maximum size of data that are sent with the first message of a call although they must be copied several times.
_COPIED_INLINE_BYTES = 256 << 10
_LEAST_ROUNDED = 1 << 14  # number of elements from which RINGLET_NETWORK_DTYPE applies
_MOST_SMALL, _MOST_SMALL_BYTES = 100, 16 << 20  # maximum number and size of small all-reduces that stay prepared


class _Small(NamedTuple):
    """A small all-reduce of one array: its description, the dtype of its result, and its messages on the leader."""

    text: str
    op: Op
    dtype: np.dtype[Any]
    exchange: Exchange | None
    is_usable: bool


class HostReductions(HostCalls):
    """Mixin of a rank: collectives that combine values."""

    def __init__(self, local: _core.Member, group: HostGroup, link: HostLink) -> None:
        super().__init__(local, group, link)
        self._smalls: dict[Any, _Small] = {}
        self._small_bytes = 0

    def all_reduce(self, arrays: Sequence[Array], op: int, algorithm: int, outs: Sequence[Array] | None) -> list[Array]:
        """Combine the arrays of all ranks, first within each host, then over the hosts; `algorithm` has no effect."""
        small = self._small_of(arrays, op, outs)
        if small is not None:
            place, result = (outs[0], outs[0]) if outs else _core.allocate(arrays[0].shape, small.dtype)
            self._call(small.text, lambda text: self._run_small(small, text, arrays[0], place), is_compared=True)
            return [result]
        operation = Op(op)
        for array in arrays:
            check_plain(array, operation)
        results = checked_outputs(arrays, outs, operation)
        writeable = [result[0] for result in results]
        is_small = self._is_small(arrays, operation)
        run = self._all_reduce_small if is_small else self._all_reduce_large
        self._call(
            _all_reduce_text(operation, arrays, outs),
            lambda text: run(text, list(_streams(arrays, writeable)), operation),
            is_compared=is_small and len(arrays) > 0,
        )
        return [result[1] for result in results]

    def plan_all_reduce(self, array: Array, op: int, algorithm: int, out: Array | None) -> Callable[[], Array]:
        """Return a callable that all-reduces the current contents of an array."""
        check_plain(array, Op(op))
        outs = None if out is None else [out]
        checked_outputs([array], outs, Op(op))
        return lambda: self.all_reduce([array], op, algorithm, outs)[0]

    def reduce(self, array: Array, op: int, root: int, out: Array | None) -> Array | None:
        """Combine the arrays of all ranks on one rank."""
        operation = Op(op)
        check_plain(array, operation)
        result = checked_outputs([array], None if out is None else [out], operation)[0] if self.rank == root else None
        self._call(
            f"reduce({operation.name}, {text_of(array)}, root={root})",
            lambda text: self._reduce(text, array, operation, root, None if result is None else result[0]),
            ends_together=True,
        )
        return None if result is None else result[1]

    def reduce_scatter(self, array: Array, op: int, out: Array | None) -> Array:
        """Combine the arrays of all ranks; each rank receives its block of rows."""
        operation = Op(op)
        check_plain(array, operation)
        if not array.ndim:
            raise _core.Unusable()
        if array.shape[0] % self.num_ranks:
            raise InvalidArgumentError(f"cannot split {array.shape[0]} rows into {self.num_ranks} equal blocks.")
        rows = array.shape[0] // self.num_ranks
        block = array[rows * self.rank : rows * (self.rank + 1)]
        result = checked_outputs([block], None if out is None else [out], operation)[0]
        self._call(
            f"reduce_scatter({operation.name}, {text_of(array)})",
            lambda text: self._reduce_scatter(text, array, operation, result[0]),
        )
        return result[1]

    # --- steps --------------------------------------------------------------------------------------------------------

    def _is_small(self, arrays: Sequence[Array], op: Op) -> bool:
        """Return whether the data of an all-reduce are sent with its first message."""
        # One array is usually prepared by `_small_of`, which sends it without further copies.
        is_one = len(arrays) == 1 and partial_dtype(arrays[0].dtype) == arrays[0].dtype and self._series is None
        most = self._inline_bytes if is_one else min(self._inline_bytes, _COPIED_INLINE_BYTES)
        sizes: Counter[np.dtype[Any]] = Counter()
        for array in arrays:
            sizes[array.dtype] += array.size
        size = sum(size * partial_dtype(dtype).itemsize for dtype, size in sizes.items())
        return size <= most and all(self._sent_dtype(*each, op) == partial_dtype(each[0]) for each in sizes.items())

    def _all_reduce_large(self, text: str, streams: Sequence[Any], op: Op) -> None:
        if len(self.group.hosts) == 2:
            self._all_reduce_directly(text, streams, op)
        else:
            self._meet(text)
            for source, result, _ in streams:
                size, num_hosts = len(source), len(self.group.hosts)
                ends = [min((host + 1) * -(-size // num_hosts), size) for host in range(num_hosts)]
                self._reduce_regions(source, op, list(zip([0, *ends], ends, strict=False)), result, distribute=True)
        for _, result, store in streams:
            store(result)

    def _all_reduce_small(self, text: str, streams: Sequence[Any], op: Op) -> None:
        mine = [self._first_partial(text, source, op) for source, _, _ in streams[:1]]
        mine += [self._local_partial(source, op) for source, _, _ in streams[1:]]
        found = self._meet(text, b"".join([partial.tobytes() for partial in mine]))
        begin = 0
        for (source, result, _), partial in zip(streams, mine, strict=True):
            if self._is_leader:
                parts = [np.frombuffer(data[begin : begin + partial.nbytes], partial.dtype) for _, data in found]
                parts[self.group.host] = partial
                begin += partial.nbytes
                _combine(parts, op, self.num_ranks, source.dtype, result)
        if self._num_local > 1:
            results = [result for _, result, _ in streams]
            self._local.broadcast(results, 0, results)
        for _, result, store in streams:
            store(result)

    def _small_of(self, arrays: Sequence[Array], op: int, outs: Sequence[Array] | None) -> _Small | None:
        """Return the prepared small all-reduce for a call; None if it must be made in general form.

        The result may be None on some ranks only, for example where `out` is a view of the input: that rank runs
        `_all_reduce_small`, which sends the same messages.
        """
        if len(arrays) != 1 or type(arrays[0]) is not np.ndarray or self._series is not None:
            return None
        array = arrays[0]
        key = op, array.dtype, array.shape, outs is None
        if (small := self._smalls.get(key)) is None:
            is_full = len(self._smalls) == _MOST_SMALL or self._small_bytes + array.nbytes > _MOST_SMALL_BYTES
            if array.nbytes > self._inline_bytes or is_full:
                return None
            self._small_bytes += array.nbytes
            small = self._smalls[key] = self._prepare(array, Op(op), outs)
        flags = array.flags
        if not (small.is_usable and flags.c_contiguous and flags.aligned):
            return None
        if outs is not None:
            out = outs[0]
            fits = out is array or (out.shape == array.shape and not np.may_share_memory(out, array))
            flags = out.flags
            if not (fits and out.dtype == small.dtype and flags.writeable and flags.c_contiguous and flags.aligned):
                return None
        return small

    def _prepare(self, array: Array, op: Op, outs: Sequence[Array] | None) -> _Small:
        text = _all_reduce_text(op, [array], outs)
        check_plain(np.empty(0, array.dtype), op)
        dtype = array.dtype
        is_usable = partial_dtype(dtype) == dtype == self._sent_dtype(dtype, array.size, op) and is_description(text)
        exchange = None
        if is_usable and self._is_leader:
            capacity = HEAD_BYTES + self._inline_bytes
            try:
                exchange = self._link.exchange_of(description(text), array.shape, dtype, capacity)
            except PeerFailed:
                is_usable = False  # the general path fails at its first message, and notifies the other ranks
        return _Small(text, op, as_result(dtype, op), exchange, is_usable)

    def _run_small(self, small: _Small, text: str, array: Array, out: Array) -> None:
        own = array
        if self._num_local > 1:  # flat, as in `_all_reduce_small`
            own = self._first_partial(text, array.reshape(-1), small.op).reshape(array.shape)
        if (exchange := small.exchange) is not None:
            exchange.parts[self.group.host][...] = own
            if others := self._link.exchange(exchange):
                texts = [small.text] * self._link.num_hosts
                for message in others:
                    texts[message.host] = described_by(message.frame.payload.tobytes())[0]
                self._refuse(texts)
            if small.op is Op.MEAN:
                parts = [part.reshape(-1) for part in exchange.parts]
                _combine(parts, small.op, self.num_ranks, array.dtype, out.reshape(-1))
            else:  # the partial results have the dtype of the result
                _core.reduce_buffers(exchange.parts, small.op._value_, out)
        if self._num_local > 1:
            flat = out.reshape(-1)
            self._local.broadcast([flat], 0, [flat])

    def _all_reduce_directly(self, text: str, streams: Sequence[Any], op: Op) -> None:
        """Exchange whole partial results with the other host, and combine them on both.

        The messages have as many bytes as those of `_reduce_regions`, and no result is sent back. The messages of one
        piece are in flight while the previous piece is combined.

        MPI reads the pieces where they are. After a failure, a program may change its array while MPI still sends it:
        so no rank returns a result before the other host has confirmed that MPI has read all of its pieces.
        """
        link, heads = self._link, self._announce(text) if self._is_leader else []
        sent, received = hashlib.sha256(), hashlib.sha256()
        pieces, in_flight = list(self._pieces(streams, op)), deque[Any]()
        for number in range(len(pieces) + _MOST_IN_FLIGHT):
            if number >= _MOST_IN_FLIGHT:
                own, incoming, sends, dtype, place = in_flight.popleft()
                if self._is_leader:
                    if heads:
                        self._compare(text, heads, (b"", b""))
                        heads = []
                    arrived = link.wait(incoming, sends)
                    sent.update(_sample(own.view(np.uint8)))
                    for _, payload in arrived:
                        received.update(_sample(payload))
                    is_last = number == len(pieces) + _MOST_IN_FLIGHT - 1
                    ends = self._announce(text, sent.digest()) if is_last else []
                    self._combine(own, arrived, op, dtype, place)
                    if ends:
                        (other,) = link.others
                        if self._compare(text, ends, (b"", b""))[other][1] != received.digest():
                            link.refuse(other, "confirms other bytes than those that arrived")
                if self._num_local > 1:
                    self._local.broadcast([place], 0, [place])
            if number < len(pieces):
                source, place, sent_dtype = pieces[number]
                own = self._local_partial(source, op, sent_dtype)
                incoming, sends = [], []
                if self._is_leader:
                    incoming = [link.receive(host, DATA, _DATA_BYTES, own.nbytes) for host in link.others]
                    sends = link.send_data(link.others, own.view(np.uint8))
                in_flight.append((own, incoming, sends, source.dtype, place))

    def _pieces(self, streams: Iterable[Any], op: Op) -> Iterable[tuple[Array, Array, np.dtype[Any]]]:
        """Yield inputs and outputs in pieces of at most one message, and the dtype in which each is sent."""
        for source, result, _ in streams:
            sent_dtype = self._sent_dtype(source.dtype, len(source), op)
            step = _DATA_BYTES // max(partial_dtype(source.dtype).itemsize, result.dtype.itemsize)
            for begin in range(0, len(source), step):
                yield source[begin : begin + step], result[begin : begin + step], sent_dtype

    def _sent_dtype(self, dtype: np.dtype[Any], size: int, op: Op) -> np.dtype[Any]:
        """Return the dtype in which the partial results of an array of `size` elements are sent to other hosts."""
        rounded, partial = self.group.network_dtype, partial_dtype(dtype)
        applies = op in (Op.SUM, Op.MEAN) and size >= _LEAST_ROUNDED and partial == np.float32
        return partial if rounded is None or not applies else rounded

    def _first_partial(self, text: str, source: Array, op: Op) -> Array:
        """Return the result of :meth:`_local_partial`, in which the ranks of this host also compare the call."""
        partial = self._local_partial(source, op, name=text)
        if self._num_local > 1:
            self._allow(3 * EXTRA_SECONDS)  # time for the leader to wait for other hosts
        return partial

    def _local_partial(
        self,
        source: Array,
        op: Op,
        dtype: np.dtype[Any] | None = None,
        into: Array | None = None,
        name: str = "",
    ) -> Array:
        """On the leader, return this host's partial result, as `dtype` or in `into` if one of them is given.

        On other ranks, the returned array has no meaning.
        """
        source = total = source.astype(partial_dtype(source.dtype), copy=False)
        if not self._is_leader:
            self._local.reduce(source, _partial_op(op).value, 0, None, name)
            return source
        if self._num_local > 1:
            total = np.empty_like(source) if into is None or into.dtype != source.dtype else into
            self._local.reduce(source, _partial_op(op).value, 0, total, name)
        if into is None:
            if dtype in (None, total.dtype):
                return total
            into = np.empty(total.shape, dtype)
        if total is not into:
            with np.errstate(all="ignore"):
                into[...] = total
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

        With `distribute`, all ranks receive all regions in `result`; otherwise `result` is the region, on the leader.
        The messages of one step are in flight while the previous step is combined.
        """
        result_dtype, sent_dtype = as_result(source.dtype, op), self._sent_dtype(source.dtype, len(source), op)
        sent_result_dtype = result_dtype if sent_dtype == partial_dtype(source.dtype) else sent_dtype
        step = PIECE_BYTES // max(partial_dtype(source.dtype).itemsize, result_dtype.itemsize)
        offset = 0 if distribute else regions[self.group.host][0]
        num_steps = max(-(-(end - begin) // step) for begin, end in regions)
        begun: Any = None
        for number in range(num_steps + 1):
            previous, begun = begun, None
            if number < num_steps:
                pieces = [slice(min(b + number * step, e), min(b + (number + 1) * step, e)) for b, e in regions]
                begun = pieces, *self._send_partials(source, op, pieces, sent_dtype)
            if previous is not None:
                pieces, own, incoming = previous
                if own is not None:
                    assert result is not None
                    mine = pieces[self.group.host]
                    place = result[mine.start - offset : mine.stop - offset]
                    self._combine(own, self._link.wait(incoming), op, source.dtype, place)
                if distribute:
                    assert result is not None
                    self._distribute(pieces, result, sent_result_dtype)

    def _send_partials(
        self, source: Array, op: Op, pieces: Sequence[slice], dtype: np.dtype[Any]
    ) -> tuple[Array | None, list[Any]]:
        """Send the other leaders this host's partial results of their pieces, in `dtype`.

        Return the partial result of this host's own piece, or None except on a leader with one, and the messages.
        """
        link, here = self._link, self.group.host
        sizes = [(piece.stop - piece.start) * dtype.itemsize for piece in pieces]
        own: Array | None = None
        incoming = []
        if self._is_leader and sizes[here]:
            incoming = [link.receive(host, PARTIAL, PIECE_BYTES, sizes[here]) for host in link.others]
        for host, piece in enumerate(pieces):
            if not sizes[host]:
                continue
            if not self._is_leader:
                self._local_partial(source[piece], op)
            elif host == here:
                own = self._local_partial(source[piece], op, dtype)
            else:
                frame = link.frame(PIECE_BYTES)
                self._local_partial(source[piece], op, into=frame.payload[: sizes[host]].view(dtype))
                link.send([host], PARTIAL, frame, sizes[host])
        return own, incoming

    def _combine(self, own: Array, arrived: Sequence[Any], op: Op, dtype: np.dtype[Any], place: Array) -> None:
        """Combine the partial results of all hosts for this host's piece, and store its result."""
        parts = [own] * self._link.num_hosts
        for message, payload in arrived:
            parts[message.host] = payload.view(own.dtype)
        _combine(parts, op, self.num_ranks, dtype, place)
        for message, _ in arrived:
            self._link.release(message.frame)

    def _distribute(self, pieces: Sequence[slice], result: Array, dtype: np.dtype[Any]) -> None:
        """Exchange the results of all pieces between the leaders, as `dtype`, and copy them to the host's ranks."""
        parts = [result[piece] for piece in pieces]
        if self._is_leader:
            link = self._link
            mine = parts[self.group.host]
            if len(mine):
                frame = link.frame(PIECE_BYTES)
                size = len(mine) * dtype.itemsize
                frame.payload[:size].view(dtype)[...] = mine
                link.send(link.others, RESULT, frame, size)
            sizes = [(host, len(parts[host]) * dtype.itemsize) for host in link.others]
            incoming = [link.receive(host, RESULT, PIECE_BYTES, size) for host, size in sizes if size]
            for message, payload in link.wait(incoming):
                parts[message.host][...] = payload.view(dtype)
                link.release(message.frame)
        if self._num_local > 1:
            filled = [part for part in parts if len(part)]
            self._local.broadcast(filled, 0, filled)

    def _reduce(self, text: str, array: Array, op: Op, root: int, out: Array | None) -> None:
        self._meet(text)
        flat, home = array.reshape(-1), self._host_of(root)
        regions = [(0, len(flat)) if host == home else (0, 0) for host in range(len(self.group.hosts))]
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


def _sample(data: Array) -> bytes:
    """Return bytes of all parts of the data; at an odd distance, so that they are not all bytes of one significance."""
    return data[:: len(data) // _NUM_SAMPLED | 1].tobytes()


def _all_reduce_text(op: Op, arrays: Sequence[Array], outs: Sequence[Array] | None) -> str:
    where = ", out" if outs is not None else ""
    return f"all_reduce({op.name}, {', '.join(map(text_of, arrays))}{where})"


# --- partial results --------------------------------------------------------------------------------------------------


def partial_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of partial results: `dtype`, but float32 for floats of 8 and 16 bits, which are rounded once."""
    is_narrow = dtype == np.float16 or dtype.type.__module__ == "ml_dtypes"
    return np.dtype(np.float32) if is_narrow else dtype


def _partial_op(op: Op) -> Op:
    return Op.SUM if op is Op.MEAN else op


def _combine(partials: Sequence[Array], op: Op, num_ranks: int, dtype: np.dtype[Any], out: Array) -> None:
    """Combine the partial results of all hosts in the order ((0+1)+(2+3))+((4+5)+...), and store the result.

    For a mean, the sum is divided at the end; floats of 8 and 16 bits are rounded once. `dtype` is that of the inputs.
    If the partial results are rounded, so is the result.
    """
    total = out if out.dtype == partials[0].dtype else np.empty_like(partials[0])
    if len(partials) == 1:
        total[...] = partials[0]
    else:
        _core.reduce_buffers(partials, _partial_op(op).value, total)
    if op is not Op.MEAN and total is out:
        return
    with np.errstate(all="ignore"):
        if op is Op.MEAN:
            total = total.astype(partial_dtype(as_result(dtype, op)), copy=False)
            if total.dtype.kind == "c":  # divide the parts separately: NumPy's complex division rounds differently
                total, out = total.view(total.real.dtype), out.view(total.real.dtype)
            total = total / total.dtype.type(num_ranks)
            if partials[0].dtype != partial_dtype(dtype):
                total = total.astype(partials[0].dtype)
        out[...] = total


def _streams(arrays: Sequence[Array], outs: Sequence[Array]) -> Iterable[tuple[Array, Array, Callable[[Array], None]]]:
    """Yield a flat input, its output and `store` for each dtype; `store(output)` unpacks results of packed arrays."""
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
