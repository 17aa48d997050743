"""Arithmetic of cuts: which of them agree, what they are together, what their coarser forms are."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache

from ringlet.sharding.layout.layout import WHOLE, Cut

__all__ = ["coarser", "covers", "divisors", "joint"]


@lru_cache(maxsize=4096)
def joint(cuts: tuple[Cut, ...]) -> Cut:
    """Give the cut of the product of dimensions, the first of them major.

    Examples
    --------
    >>> joint((Cut(2, (0, 0, 1, 1)), Cut(2, (0, 1, 0, 1))))
    Cut(count=4, tile=(0, 1, 2, 3))
    """
    cut_ones = [cut for cut in cuts if cut.count > 1]
    if len(cut_ones) < 2:
        return cut_ones[0] if cut_ones else WHOLE
    first, *rest = cut_ones
    minor = joint(tuple(rest))
    tile = tuple(i * minor.count + j for i, j in zip(first.tile, minor.tile, strict=True))
    return Cut(first.count * minor.count, tile)


@lru_cache(maxsize=4096)
def covers(cuts: tuple[Cut, ...]) -> bool:
    """Tell whether each combination of the tiles is on some device: whether the cuts may be those of one operation.

    Examples
    --------
    >>> rows, columns = Cut(2, (0, 0, 1, 1)), Cut(2, (0, 1, 0, 1))
    >>> covers((rows, columns)), covers((rows, rows))
    (True, False)
    """
    together = joint(cuts)
    return len(set(together.tile) or {0}) == math.prod(cut.count for cut in cuts)


@lru_cache(maxsize=4096)
def coarser(cut: Cut, count: int) -> Cut:
    """Give the cut into fewer tiles, each of them several neighbours of the cut; `count` divides that of the cut.

    Examples
    --------
    >>> coarser(Cut(4, (0, 1, 2, 3)), 2)
    Cut(count=2, tile=(0, 0, 1, 1))
    """
    merged = cut.count // count
    return Cut(count, tuple(tile // merged for tile in cut.tile)) if count > 1 else WHOLE


def divisors(number: int) -> Iterable[int]:
    """Give the divisors of a number, from the largest down to 1.

    Examples
    --------
    >>> list(divisors(6))
    [6, 3, 2, 1]
    """
    return (d for d in range(number, 0, -1) if number % d == 0)
