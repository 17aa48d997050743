"""Order in which several arrays are multiplied."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from ringlet.sharding.layout.factors import Factor, Labels
from ringlet.sharding.layout.layout import Shape

__all__ = ["product_order"]

# Up to this number of arrays every order is tried; beyond, the cheapest pair is taken each time.
_MOST_TRIED = 5

Pairs = tuple[tuple[int, int], ...]


def product_order(labels: Sequence[Labels], shapes: Sequence[Shape], wanted: Labels) -> Pairs:
    """Choose pairs of arrays that minimize the number of multiplications.

    Pairs are positions in the list of arrays; each product replaces its pair at the end of the list.
    """
    if len(labels) == 2:
        return ((0, 1),)
    sizes: dict[Factor, int] = {}
    for given, shape in zip(labels, shapes, strict=True):
        for label, size in zip(given, shape, strict=True):
            sizes[label] = max(size, sizes.get(label, 1))
    terms = tuple(frozenset(given) for given in labels)
    return _best(terms, frozenset(wanted), tuple(sizes.items()))[1]


@lru_cache(maxsize=1024)
def _best(
    terms: tuple[frozenset[Any], ...], wanted: frozenset[Any], sizes: tuple[tuple[Any, int], ...]
) -> tuple[int, Pairs]:
    if len(terms) < 2:
        return 0, ()
    size_of = dict(sizes)
    steps = []
    for i, j in itertools.combinations(range(len(terms)), 2):
        rest = tuple(term for n, term in enumerate(terms) if n not in (i, j))
        both = terms[i] | terms[j]
        left = both & wanted.union(*rest)
        steps.append((math.prod(size_of[label] for label in both), (i, j), (*rest, left)))
    if len(terms) > _MOST_TRIED:
        steps = [min(steps, key=lambda step: step[0])]
    found = []
    for cost, pair, left_terms in steps:
        more, pairs = _best(left_terms, wanted, sizes)
        found.append((cost + more, (pair, *pairs)))
    return min(found, key=lambda order: order[0])
