"""Arithmetic of dimension shardings: joint cuts, coarser cuts, coverage."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache

from ringlet.sharding.layout.layout import WHOLE, Cut

__all__ = ["coarser", "covers", "divisors", "joint"]


@lru_cache(maxsize=4096)
def joint(cuts: tuple[Cut, ...]) -> Cut:
    """Return the cut of the product of dimensions, the first of them major."""
    cut_ones = [cut for cut in cuts if cut.count > 1]
    if len(cut_ones) < 2:
        return cut_ones[0] if cut_ones else WHOLE
    first, *rest = cut_ones
    minor = joint(tuple(rest))
    tile = tuple(i * minor.count + j for i, j in zip(first.tile, minor.tile, strict=True))
    return Cut(first.count * minor.count, tile)


@lru_cache(maxsize=4096)
def covers(cuts: tuple[Cut, ...]) -> bool:
    """Return whether each combination of tiles is on some device, as the cuts of one operation require."""
    together = joint(cuts)
    return len(set(together.tile) or {0}) == math.prod(cut.count for cut in cuts)


@lru_cache(maxsize=4096)
def coarser(cut: Cut, count: int) -> Cut:
    """Return the cut into `count` tiles, each made of consecutive tiles of `cut`; `count` divides ``cut.count``."""
    merged = cut.count // count
    return Cut(count, tuple(tile // merged for tile in cut.tile)) if count > 1 else WHOLE


def divisors(number: int) -> Iterable[int]:
    """Return the divisors of a number in descending order."""
    return (d for d in range(number, 0, -1) if number % d == 0)
