"""Bytes on every link of a torus or mesh: messages are routed and their bytes added up.

A message is routed axis by axis (*dimension order*), the shorter way round on a ring, and half each way if both ways
are equally long. In a twisted torus it takes the shortest path; equally short paths, at most eight, share the message.

Loads are arrays ``[axis, direction, chip]``: bytes that leave `chip` along `axis` (0, 1, 2 for x, y, z), up (0) or
down (1). Chips are numbered in row-major order. Every axis consists of *lines* of successive chips. If the axis wraps,
its lines are closed; in a twisted torus, a line goes round the axis several times. A message loads a run of
neighbouring links of one line, so a difference array adds up any number of messages in one pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from typing import Any

import numpy as np

IntArray = np.ndarray[Any, np.dtype[np.int64]]
FloatArray = np.ndarray[Any, np.dtype[np.float64]]
Shape = tuple[int, int, int]
Twist = tuple[Shape, Shape, Shape]

# Maximum number of messages routed at a time, to bound the memory for all pairs of a pod.
_BLOCK = 1 << 19
# A shortest path in a twisted torus goes round an axis at most twice: a twist shifts by half an axis.
_ROUNDS = np.array(list(product((-2, -1, 0, 1, 2), repeat=3)), np.int64)


@dataclass(frozen=True, eq=False)
class Lines:
    """The lines of one axis: the chips [line, position], and the line and position of each chip."""

    chip_at: IntArray
    line: IntArray
    position: IntArray

    @classmethod
    def along(cls, shape: Shape, axis: int, shift: Shape) -> Lines:
        """Return the lines of an axis whose wrap links are shifted by `shift` (zeros: a plain ring or line)."""
        chips = np.arange(np.prod(shape), dtype=np.int64).reshape(shape)
        chip_at = np.moveaxis(chips, axis, -1).reshape(-1, shape[axis])
        if any(shift):
            chip_at = _joined(chip_at, np.roll(chips, [-step for step in shift], (0, 1, 2)).reshape(-1))
        line, position = np.empty(chips.size, np.int64), np.empty(chips.size, np.int64)
        line[chip_at] = np.arange(len(chip_at))[:, None]
        position[chip_at] = np.arange(chip_at.shape[1])
        return cls(chip_at, line, position)


def _joined(chip_at: IntArray, shifted: IntArray) -> IntArray:
    """Concatenate lines that a twist connects: the end of one leads to the start of the next."""
    following = shifted[chip_at[:, 0]]  # the first chip of the next line
    starts = {int(line[0]): index for index, line in enumerate(chip_at)}
    rows, seen = [], np.zeros(len(chip_at), np.bool_)
    for first in range(len(chip_at)):
        row, index = [], first
        while not seen[index]:
            seen[index] = True
            row.append(chip_at[index])
            index = starts[int(following[index])]
        if row:
            rows.append(np.concatenate(row))
    return np.stack(rows)


@dataclass(frozen=True)
class Network:
    """The chips of a slice and their links; `twist` holds, for each axis, the shift of its wrap links along x, y, z."""

    shape: Shape
    wrap: tuple[bool, bool, bool]
    twist: Twist | None = None

    @property
    def num_chips(self) -> int:
        """Number of chips."""
        return int(np.prod(self.shape))

    @cached_property
    def lines(self) -> tuple[Lines, Lines, Lines]:
        """The lines of each axis."""
        x, y, z = (Lines.along(self.shape, axis, self.twist[axis] if self.twist else (0, 0, 0)) for axis in range(3))
        return x, y, z

    @cached_property
    def exists(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Mask of the load array entries that are links, in the order of ``Topology.links()``."""
        mask = np.zeros((3, 2, *self.shape), np.bool_)
        for axis, (size, ring) in enumerate(zip(self.shape, self.wrap, strict=True)):
            if size > 1:
                mask[axis] = True
                if not ring:
                    np.moveaxis(mask[axis, 0], axis, 0)[-1] = False
                    np.moveaxis(mask[axis, 1], axis, 0)[0] = False
        return mask.reshape(3, 2, -1)

    def plain(self) -> Network:
        """Return the same network without its twist."""
        return Network(self.shape, self.wrap)

    def coordinates(self, chips: IntArray) -> IntArray:
        """Return the coordinates x, y, z of chips along a new last axis."""
        return np.stack(np.unravel_index(chips, self.shape), -1).astype(np.int64)

    def distances(self, source: IntArray, target: IntArray) -> IntArray:
        """Return the number of hops between chips; arrays broadcast."""
        source, target = np.broadcast_arrays(source, target)
        steps = self.first_ways(source.ravel(), target.ravel())
        hops: IntArray = np.abs(steps).sum(-1).reshape(source.shape)
        return hops

    def first_ways(self, source: IntArray, target: IntArray) -> IntArray:
        """Return one shortest path for each pair of chips, as steps [pair, axis]."""
        return next(self._ways(source, target))[0]

    def route(
        self,
        source: IntArray,
        target: IntArray,
        weight: FloatArray | IntArray | None = None,
        order: Sequence[int] = (0, 1, 2),
    ) -> tuple[FloatArray, IntArray]:
        """Route messages of `weight` each; return loads [axis, direction, chip] and each message's number of links."""
        loads = np.zeros((3, 2, self.num_chips))
        hops = np.zeros(len(source), np.int64)
        for start in range(0, len(source), _BLOCK):
            block = slice(start, start + _BLOCK)
            some = np.ones(len(source[block])) if weight is None else np.asarray(weight[block], np.float64)
            for number, (moves, share) in enumerate(self._ways(source[block], target[block])):
                self._walk(loads, source[block], moves, some * share, order)
                if number == 0:  # all paths are equally long
                    hops[block] = np.abs(moves).sum(-1)
        return loads, hops

    def _walk(
        self, loads: FloatArray, chips: IntArray, moves: IntArray, weight: FloatArray, order: Sequence[int]
    ) -> None:
        """Add messages that start at `chips` and move ``moves[:, axis]`` steps along each axis."""
        for axis in order:
            chips = self.walk_axis(loads, axis, chips, moves[:, axis], weight)

    def walk_axis(self, loads: FloatArray, axis: int, chips: IntArray, steps: IntArray, weight: FloatArray) -> IntArray:
        """Add messages that move `steps` (negative: down) along one axis; return the destination chips."""
        lines = self.lines[axis]
        size = lines.chip_at.shape[1]
        line, position = lines.line[chips], lines.position[chips]
        for way, moving in enumerate((steps > 0, steps < 0)):
            if not moving.any():
                continue
            begin = position[moving] if way == 0 else position[moving] + steps[moving] + 1 + size
            links = _add_runs(lines.chip_at.shape, line[moving], begin, np.abs(steps[moving]), weight[moving])
            loads[axis, way, lines.chip_at] += links
        arrived: IntArray = lines.chip_at[line, (position + steps) % size]
        return arrived

    def axis_steps(self, axis: int, begin: IntArray, end: IntArray) -> Iterator[tuple[IntArray, FloatArray]]:
        """Yield the shortest steps between coordinates of an axis, and their shares: both ways if equally long."""
        size, ring = self.shape[axis], self.wrap[axis]
        ahead = end - begin
        if not ring:
            yield ahead, np.ones(ahead.shape)
            return
        ahead = ahead % size
        tied = 2 * ahead == size
        yield np.where(2 * ahead > size, ahead - size, ahead), np.where(tied, 0.5, 1.0)
        if tied.any():
            yield np.where(tied, -ahead, 0), np.where(tied, 0.5, 0.0)

    def _ways(self, source: IntArray, target: IntArray) -> Iterator[tuple[IntArray, FloatArray]]:
        """Yield the shortest paths as steps [message, axis], and the share [message] that each path carries."""
        begin, end = self.coordinates(source), self.coordinates(target)
        if self.twist is not None:
            yield from self._twisted_ways(end - begin)
            return
        # If several axes are tied, half of a message goes up on all of them and half goes down: the load of each
        # link is the same as for mixed paths, because both directions of an axis lead to the same chip.
        first, second = [], []
        tied = np.zeros(len(source), np.bool_)
        for axis in range(3):
            ways = list(self.axis_steps(axis, begin[:, axis], end[:, axis]))
            first.append(ways[0][0])
            both = ways[0][1] < 1
            second.append(np.where(both, -ways[0][0], ways[0][0]))
            tied |= both
        yield np.stack(first, -1), np.where(tied, 0.5, 1.0)
        if tied.any():
            yield np.stack(second, -1), np.where(tied, 0.5, 0.0)

    def _twisted_ways(self, ahead: IntArray) -> Iterator[tuple[IntArray, FloatArray]]:
        moves, share = _twisted_moves(self.shape, self.twist)
        sizes = np.array(self.shape)
        index = np.ravel_multi_index(tuple((ahead + sizes - 1).T), tuple(2 * sizes - 1))
        for way in range(moves.shape[1]):
            if way == 0 or share[index, way].any():
                yield moves[index, way].astype(np.int64), share[index, way]


def _add_runs(
    shape: tuple[int, ...], line: IntArray, begin: IntArray, length: IntArray, weight: FloatArray
) -> FloatArray:
    """Return sums [line, position] of the weights of runs from `begin` on, modulo size; begin + length <= 2 size."""
    count, size = shape
    width = 2 * size + 1
    row = line * width + begin
    changes = np.bincount(row, weight, count * width) - np.bincount(row + length, weight, count * width)
    runs = changes.reshape(count, width).cumsum(1)
    folded: FloatArray = runs[:, :size] + runs[:, size : 2 * size]
    return folded


@lru_cache(maxsize=4)
def _twisted_moves(shape: Shape, twist: Twist | None) -> tuple[IntArray, FloatArray]:
    """Return the shortest moves [difference, path, axis] between chips of a twisted torus, at most 8, and their shares.

    Going up once round axis ``a`` shifts by ``twist[a]`` along the other axes, so moving by ``shape[a]`` along ``a``
    and by ``-twist[a]`` along the other axes returns to the start: these three moves span a lattice, and the shortest
    of all moves that differ by a lattice point are taken.
    """
    sizes = np.array(shape)
    lattice = np.diag(sizes) - np.array(twist)
    closed = _ROUNDS @ lattice  # dimensions: path, axis
    # Longer closed paths are not part of a shortest path.
    closed = closed[(np.abs(closed) <= 3 * sizes.max()).all(1)]
    ahead = np.stack(np.meshgrid(*(np.arange(1 - n, n) for n in shape), indexing="ij"), -1).reshape(-1, 3)
    picked, shares = [], []
    for block in np.array_split(ahead, max(1, len(ahead) // 4096)):
        ways = block[:, None, :] + closed
        length = np.abs(ways).sum(-1)
        shortest = length == length.min(1, keepdims=True)
        order = np.argsort(~shortest, axis=1, kind="stable")[:, :8]
        taken = np.take_along_axis(shortest, order, 1)
        picked.append(np.where(taken[..., None], np.take_along_axis(ways, order[..., None], 1), 0).astype(np.int16))
        shares.append(taken / taken.sum(1, keepdims=True))
    return np.concatenate(picked), np.concatenate(shares)
