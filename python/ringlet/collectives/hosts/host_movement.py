"""Data movement over several hosts: the leaders exchange the data of the ranks of their hosts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from ringlet import _core
from ringlet.collectives.collective_dtypes import dtype_named
from ringlet.collectives.hosts.host_calls import (
    HEAD_BYTES,
    Array,
    HostCalls,
    check_plain,
    checked_outputs,
    read_only,
    text_of,
)
from ringlet.errors import InvalidArgumentError


class HostMovement(HostCalls):
    """Mixin of a rank: collectives that move values."""

    def broadcast(self, arrays: Sequence[Array] | None, root: int, outs: Sequence[Array] | None) -> list[Array]:
        """Copy the arrays of one rank to all ranks."""
        for array in arrays or ():
            check_plain(array)
        if outs is not None and arrays is not None:
            checked_outputs(arrays, outs, None)
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
        shape = text_of(array) if counts is None else text_of(array[:0])
        result = self._call(f"all_to_all({shape}{ragged})", lambda text: self._exchange_rows(text, array, rows))
        return _stored(result, out)

    def collective_permute(self, array: Array, pairs: Sequence[tuple[int, int]], out: Array | None) -> Array:
        """Send the arrays of sources to targets; other ranks receive zeros."""
        check_plain(array)
        rows = [0] * self.num_ranks
        for source, target in pairs:
            if source == self.rank:
                rows[target] = 1
        one = array.reshape(1, *array.shape)[: sum(rows)]
        text = f"collective_permute({text_of(array)}, pairs={list(map(tuple, pairs))})"
        found = self._call(text, lambda text: self._exchange_rows(text, one, rows))
        return _stored(found[0] if len(found) else np.zeros_like(array), out)

    # --- steps --------------------------------------------------------------------------------------------------------

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
            return self._local.broadcast(arrays if self._is_leader else (outs if arrays is None else arrays), 0, outs)
        assert arrays is not None
        if outs is None:
            is_given = is_here and self._num_local == 1
            return [read_only(array.copy() if is_given else array) for array in arrays]
        for out, array in zip(outs, arrays, strict=True):
            if out is not array:
                out[...] = array
        return list(outs)

    def _meet_described(self, text: str, meta: bytes) -> list[tuple[bytes, bytes]]:
        """Exchange a description and metadata between the leaders; the size of long metadata is sent first."""
        is_long = len(meta) > HEAD_BYTES // 2
        found = self._meet(text, np.int64(len(meta)).tobytes(), b"") if is_long else self._meet(text, b"", meta)
        for host, (_, size) in enumerate(found):
            if size:
                shape = ("uint8", np.frombuffer(size, np.int64).tolist())
                found[host] = self._move_from(host, [np.frombuffer(meta, np.uint8)], [shape])[0].tobytes(), b""
        return found

    def _move_from(
        self, home: int, arrays: Sequence[Array], shapes: Sequence[tuple[str, Sequence[int]]]
    ) -> list[Array]:
        """Send the arrays of one leader to all other leaders, which receive them in new memory."""
        link = self._link
        received: list[Array] = []
        for number, (name, shape) in enumerate(shapes):
            if home == self.group.host:
                array = arrays[number]
                self._send_bytes(link.others, array)
            else:
                array = np.empty(shape, dtype_named(name))
                self._receive_bytes([(home, array)])
            received.append(array)
        return received

    def _gather(self, array: Array, root: int | None, axis: int, out: Array | None) -> Any:
        check_plain(array)
        if not 0 <= axis < array.ndim:
            raise InvalidArgumentError(f"axis is {axis}: the array has axes 0 to {array.ndim - 1}.")
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
        check_plain(array)
        if not array.ndim:
            raise _core.Unusable()
        if counts is not None:
            return [int(count) for count in counts]
        if array.shape[0] % self.num_ranks:
            raise InvalidArgumentError(f"cannot split {array.shape[0]} rows into {self.num_ranks} equal blocks.")
        return [array.shape[0] // self.num_ranks] * self.num_ranks

    def _scatter(self, text: str, array: Array | None, root: int, rows: list[int] | None) -> Array:
        home, is_here = self._host_of(root), self._host_of(root) == self.group.host
        meta = b"null"
        if is_here:
            if self.rank == root and array is not None:
                meta = json.dumps([array.dtype.name, array.shape, rows]).encode()
            if self._num_local > 1 and root != self._begin:  # the leader needs the root's array
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
                mine = np.empty((sum(counts), *shape[1:]), dtype_named(name))
                self._receive_bytes([(home, mine)])
        return self._scatter_here(mine, counts)

    def _exchange_rows(self, text: str, array: Array, rows: Sequence[int]) -> Array:

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
        """Exchange rows between leaders; return this host's rows, ordered by target, and their number per target."""
        link, hosts = self._link, self.group.hosts
        self._meet(text)
        # Number of rows by source and target rank.
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


def _stored(result: Array, out: Array | None) -> Array:
    """Return a result, or copy it to the caller's output and return the output."""
    if out is None:
        return read_only(result)
    if out.shape != result.shape or out.dtype != result.dtype:
        raise InvalidArgumentError(
            f"out is {text_of(out)}, but the result is {text_of(result)}: pass an output of that dtype and shape."
        )
    out[...] = result
    return out
