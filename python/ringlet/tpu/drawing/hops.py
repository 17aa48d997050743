"""Hops of a closed ring through chips: single links, wrap links, and hops over several links."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray

Period = tuple[int, int, int]
Coordinate = tuple[int, int, int, int]


class HopKind(enum.Enum):
    """Kind of a hop from one core of a ring to the next."""

    STAY = "to another core of the chip"
    STEP = "over a link"
    WRAP = "over a link that wraps round"
    LAYER = "over a link along z"
    LONG = "over several links"


@dataclass(frozen=True)
class Hop:
    """One hop of a ring between cores; `way` is the signed number of links along each axis."""

    source: Coordinate
    target: Coordinate
    kind: HopKind
    way: tuple[int, int, int]

    @property
    def links(self) -> int:
        """Number of links of the shortest path."""
        return sum(map(abs, self.way))

    @property
    def axis(self) -> int:
        """First axis along which the hop moves; -1 if it stays on its chip."""
        return next((axis for axis, step in enumerate(self.way) if step), -1)

    @property
    def direction(self) -> int:
        """Direction along `axis`: 1 or -1; 0 if the hop stays on its chip."""
        return 0 if self.axis < 0 else 1 if self.way[self.axis] > 0 else -1


def shortest_ways(source: ArrayLike, target: ArrayLike, periods: Sequence[Period]) -> NDArray[np.int64]:
    """Return the shortest paths between chips as signed steps along each axis, wrap links included.

    Each of the `periods` leads, as steps along x, y and z, back to the same chip; the core of a coordinate is ignored.
    """
    way = np.asarray(target, np.int64)[:, :3] - np.asarray(source, np.int64)[:, :3]
    # In a twisted torus a wrap link also shifts along other axes, which two periods of these axes may have to undo. The
    # direct path is the first candidate and is chosen in a tie.
    most = 1 if all(sum(step != 0 for step in period) == 1 for period in periods) else 2
    choices = sorted(product(range(-most, most + 1), repeat=len(periods)), key=lambda choice: sum(map(abs, choice)))
    rounds = np.array([np.array(choice) @ np.reshape(periods, (-1, 3)) for choice in choices], np.int64)
    ways = way[:, np.newaxis] + rounds
    best = np.abs(ways).sum(axis=2).argmin(axis=1)
    shortest: NDArray[np.int64] = ways[np.arange(len(ways)), best]
    return shortest


def ring_hops(ring: ArrayLike, periods: Sequence[Period]) -> list[Hop]:
    """Return the hops of a closed ring of cores, one per core; a ring of two has one hop, a ring of one has none."""
    cores = np.asarray(ring, np.int64).reshape(-1, 4)
    count = len(cores) if len(cores) > 2 else len(cores) - 1
    if count < 1:
        return []
    source, target = cores[:count], np.roll(cores, -1, axis=0)[:count]
    way = shortest_ways(source, target, periods)
    ends = zip(source.tolist(), target.tolist(), way.tolist(), strict=True)
    return [Hop(tuple(a), tuple(b), _kind(a, b, step), tuple(step)) for a, b, step in ends]


def _kind(source: Sequence[int], target: Sequence[int], way: Sequence[int]) -> HopKind:
    links = sum(map(abs, way))
    if links == 0:
        return HopKind.STAY
    if links > 1:
        return HopKind.LONG
    if way[2]:
        return HopKind.LAYER
    axis = 0 if way[0] else 1
    return HopKind.STEP if target[axis] - source[axis] == way[axis] else HopKind.WRAP
