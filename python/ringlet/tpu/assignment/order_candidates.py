"""Candidate orders of positions of a torus, for rings and grids.

A *position* has integer coordinates; neighbours differ by one along one axis.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations

import numpy as np

from ringlet.tpu.cost.link_traffic import IntArray, Network

# Maximum number of positions for `shorten`: the table of all distances grows with the square of the number.
_MOST_SHORTENED = 768
_MOST_REVERSALS = 400


def walks(places: IntArray, network: Network) -> Iterator[IntArray]:
    """Yield candidate orders of positions for rings and grids, as arrays of indices.

    `places` has the coordinates x, y, z and optionally core of each position. The positions of a chip are adjacent,
    except in some of the orders by :func:`sweeps`.
    """
    chips, inverse, counts = np.unique(places[:, :3], axis=0, return_inverse=True, return_counts=True)
    sides = np.argsort(inverse.reshape(-1), kind="stable")
    starts = np.cumsum(counts) - counts

    def expanded(order: IntArray) -> IntArray:
        return np.concatenate([sides[starts[chip] : starts[chip] + counts[chip]] for chip in order])

    # Origins of replicas may be several steps apart: each coordinate is replaced by its rank.
    ranks = [np.unique(column, return_inverse=True) for column in chips.T]
    compact = np.stack([rank.reshape(-1) for _, rank in ranks], -1)
    sizes = [len(values) for values, _ in ranks]
    closed = [
        wraps and length % size == 0 and bool((np.diff(values) == length // size).all())
        for wraps, length, size, (values, _) in zip(network.wrap, network.shape, sizes, ranks, strict=True)
    ]
    walk = closed_walk(compact, sizes, closed)
    yield expanded(walk)
    if len(chips) <= _MOST_SHORTENED:
        numbers = np.ravel_multi_index(tuple(chips.T), network.shape).astype(np.int64)
        distance = network.distances(numbers[:, None], numbers[None, :])
        yield expanded(shorten(walk, distance))
        yield expanded(shorten(next(sweeps(compact)), distance))
    yield from sweeps(places)


def sweeps(places: IntArray) -> Iterator[IntArray]:
    """Yield, for each order of the axes, a row-by-row order, and an order whose direction alternates by row."""
    ranks = np.stack([np.unique(column, return_inverse=True)[1].reshape(-1) for column in places.T], -1)
    long = [axis for axis in range(ranks.shape[1]) if ranks[:, axis].any()]
    for axes in permutations(long):
        straight = turning = np.zeros(len(places), np.int64)  # sort keys, built from the slowest axis on
        for axis in axes:
            rank, last = ranks[:, axis], int(ranks[:, axis].max())
            straight = straight * (last + 1) + rank
            turning = turning * (last + 1) + np.where(turning % 2, last - rank, rank)
        yield np.argsort(straight, kind="stable")
        yield np.argsort(turning, kind="stable")


def closed_walk(places: IntArray, sizes: Sequence[int], wrap: Sequence[bool]) -> IntArray:
    """Return a closed walk through all positions, as indices; its steps lead to neighbours where possible.

    Positions are covered by 2 x 2 squares, each a ring of four; adjacent rings are joined without longer steps.
    Uncovered positions are inserted afterwards, in pairs of neighbours if possible. Any connected set of whole squares,
    even with holes, thus has a ring of one-step hops.
    """
    board = _RingJoiner([tuple(place) for place in places.tolist()], tuple(sizes), tuple(wrap))
    board.lay_squares()
    board.join_rings()
    board.insert_pairs()
    board.insert_rest()
    return np.array(board.walk(), np.int64)


class _RingJoiner:
    """Rings under construction: each covered position has two neighbours on its ring."""

    def __init__(self, places: list[tuple[int, ...]], sizes: tuple[int, ...], wrap: tuple[bool, ...]) -> None:
        self.places = places
        self.sizes = sizes
        self.wrap = wrap
        self.number = {place: index for index, place in enumerate(places)}
        self.ring_next: dict[int, list[int]] = {}
        self.leader = list(range(len(places)))

    def step(self, index: int, axis: int, way: int) -> int | None:
        place = list(self.places[index])
        place[axis] += way
        if self.wrap[axis] and self.sizes[axis] > 2:
            place[axis] %= self.sizes[axis]
        return self.number.get(tuple(place))

    def neighbours(self, index: int) -> Iterator[tuple[int, int, int]]:
        for axis in range(3):
            for way in (1, -1):
                if (found := self.step(index, axis, way)) is not None:
                    yield found, axis, way

    def find(self, index: int) -> int:
        """Return the representative of a position's ring."""
        while self.leader[index] != index:
            self.leader[index] = self.leader[self.leader[index]]
            index = self.leader[index]
        return index

    def lay_squares(self) -> None:
        """Cover positions by disjoint 2 x 2 squares, in the plane in which most of them fit."""
        planes = [self._squares(*plane) for plane in ((0, 1), (0, 2), (1, 2))]
        for square in max(planes, key=len):
            for corner in range(4):
                self.ring_next[square[corner]] = [square[corner - 1], square[(corner + 1) % 4]]
                self.leader[square[corner]] = square[0]

    def _squares(self, first: int, second: int) -> list[tuple[int, int, int, int]]:
        squares = []
        for index, place in enumerate(self.places):
            if place[first] % 2 or place[second] % 2:
                continue
            right = self._beside(place, (first,))
            across = self._beside(place, (first, second))
            below = self._beside(place, (second,))
            if right is not None and across is not None and below is not None:
                squares.append((index, right, across, below))
        return squares

    def _beside(self, place: tuple[int, ...], axes: tuple[int, ...]) -> int | None:
        return self.number.get(tuple(at + (axis in axes) for axis, at in enumerate(place)))

    def join_rings(self) -> None:
        """Join rings that have adjacent parallel steps."""
        for index in sorted(self.ring_next):
            for other, axis, way in list(self.neighbours(index)):
                if other in self.ring_next and self.find(index) != self.find(other):
                    self._join(index, other, axis, way)

    def _join(self, index: int, other: int, axis: int, way: int) -> None:
        for along in self.ring_next[index]:
            beside = self.step(along, axis, way)
            if beside is not None and beside in self.ring_next[other]:
                self._replace(index, along, other)
                self._replace(along, index, beside)
                self._replace(other, beside, index)
                self._replace(beside, other, along)
                self.leader[self.find(other)] = self.find(index)
                return

    def _replace(self, index: int, old: int, new: int) -> None:
        ends = self.ring_next[index]
        ends[ends.index(old)] = new

    def insert_pairs(self) -> None:
        """Insert pairs of uncovered neighbours between two adjacent positions of a ring."""
        waiting = [index for index in range(len(self.places)) if index not in self.ring_next]
        before = -1
        while before != len(self.ring_next):
            before = len(self.ring_next)
            for index in waiting:
                if index not in self.ring_next:
                    self._insert_pair(index)

    def _insert_pair(self, index: int) -> None:
        for mate, _, _ in self.neighbours(index):
            if mate in self.ring_next:
                continue
            for beside, axis, way in self.neighbours(index):
                across = self.step(mate, axis, way)
                if beside in self.ring_next and across in self.ring_next[beside]:
                    self._replace(beside, across, index)
                    self._replace(across, beside, mate)
                    self.ring_next[index], self.ring_next[mate] = [beside, mate], [index, across]
                    self.leader[index] = self.leader[mate] = self.find(beside)
                    return

    def insert_rest(self) -> None:
        """Insert each remaining position after a neighbour on a ring, if any; the next is at most two hops away."""
        for index in range(len(self.places)):
            if index in self.ring_next:
                continue
            beside = next((found for found, _, _ in self.neighbours(index) if found in self.ring_next), None)
            if beside is not None:
                across = self.ring_next[beside][1]
                self._replace(beside, across, index)
                self._replace(across, beside, index)
                self.ring_next[index] = [beside, across]
                self.leader[index] = self.find(beside)

    def walk(self) -> list[int]:
        """Return all rings concatenated, with positions on no ring in order of occurrence."""
        seen: dict[int, None] = {}
        for start in range(len(self.places)):
            index: int | None = start
            while index is not None and index not in seen:
                seen[index] = None
                index = next((found for found in reversed(self.ring_next.get(index, [])) if found not in seen), None)
        return list(seen)


def shorten(order: IntArray, distance: IntArray) -> IntArray:
    """Reverse sections of a closed walk, up to a limit, while this reduces the sum of its squared steps (2-opt).

    `distance` has the number of hops between every two positions; the first position of `order` stays first. Walks of
    fewer than 4 or more than 768 positions are returned unchanged.
    """
    if len(order) < 4 or len(order) > _MOST_SHORTENED:
        return order
    length = distance.astype(np.int64) ** 2
    for _ in range(_MOST_REVERSALS):
        following = np.roll(order, -1)
        steps = length[order, following]
        # Reversing the section between steps i and j replaces these steps with the steps (order[i], order[j]) and
        # (following[i], following[j]).
        gain = steps[:, None] + steps - length[np.ix_(order, order)] - length[np.ix_(following, following)]
        np.fill_diagonal(gain, 0)
        first, second = sorted(divmod(int(gain.argmax()), len(order)))
        if gain[first, second] <= 0:
            break
        order = np.concatenate([order[: first + 1], order[second:first:-1], order[second + 1 :]])
    return order
