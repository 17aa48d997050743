"""Colours of replicas, distinguishable with colour vision deficiency."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ringlet.tpu.drawing.scene import Style
from ringlet.tpu.drawing.subject import Subject

Integers = NDArray[np.int64]

# M. Okabe and K. Ito, "Color universal design" (2008), dark grey in place of black, ordered so that neighbours also
# differ in brightness.
CATEGORIES = ("#56b4e9", "#e69f00", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7", "#5c5c5c")

# From blue to yellow with increasing brightness, which any kind of colour vision can order. Three stops for light pages
# and three for dark pages; other colours are interpolated.
_STEPS = 12
_LIGHT = ((84, 138, 199), (158, 192, 176), (250, 230, 120))
_DARK = ((22, 62, 122), (56, 104, 104), (130, 110, 14))


def _between(stops: Sequence[tuple[int, int, int]], step: int) -> str:
    at = step * (len(stops) - 1) / (_STEPS - 1)
    red, green, blue = (round(float(np.interp(at, range(len(stops)), channel))) for channel in zip(*stops, strict=True))
    return f"#{red:02x}{green:02x}{blue:02x}"


# Fill styles in the colours of `CATEGORIES`, light enough for text on top.
CATEGORY_STYLES = tuple(
    Style(f"colour{i}", fill=(colour, colour), opacity=(0.6, 0.42)) for i, colour in enumerate(CATEGORIES)
)
GRADIENT_STYLES = tuple(Style(f"order{i}", fill=(_between(_LIGHT, i), _between(_DARK, i))) for i in range(_STEPS))


def is_gradient(subject: Subject) -> bool:
    """Return whether colours form a gradient from the first replica to the last: many replicas of one core each."""
    return subject.num_logical_cores == 1 and subject.num_replicas > len(CATEGORIES)


def colour_styles(subject: Subject) -> tuple[Style, ...]:
    """Return the styles, indexed by the numbers of `replica_colours`."""
    return GRADIENT_STYLES if is_gradient(subject) else CATEGORY_STYLES


def replica_colours(subject: Subject) -> Integers:
    """Return the number of each replica's colour in `colour_styles`.

    Up to eight replicas have distinct colours. More replicas of one core each form a gradient. More replicas of several
    cores are coloured greedily: each takes the first colour, counted from its own number, that no earlier neighbour
    has.
    """
    count = subject.num_replicas
    if is_gradient(subject):
        return np.arange(count) * _STEPS // count
    if count <= len(CATEGORIES):
        return np.arange(count)
    neighbours: list[set[int]] = [set() for _ in range(count)]
    for one, other in _touching(subject.replica):
        neighbours[max(one, other)].add(min(one, other))
    colours = np.zeros(count, np.int64)
    for replica, before in enumerate(neighbours):
        colours[replica] = _free_colour(replica, {int(colours[other]) for other in before})
    return colours


def _free_colour(first: int, taken: set[int]) -> int:
    """Return the next colour, counted from `first`, that is not taken; `first` if all are taken."""
    choices = ((first + step) % len(CATEGORIES) for step in range(len(CATEGORIES)))
    return next((choice for choice in choices if choice not in taken), first % len(CATEGORIES))


def _touching(replica: Integers) -> Iterator[tuple[int, int]]:
    """Yield pairs of different replicas on one chip or on adjacent chips."""
    for axis in range(4):
        length = replica.shape[axis]
        one = np.take(replica, range(length - 1), axis=axis).reshape(-1)
        other = np.take(replica, range(1, length), axis=axis).reshape(-1)
        pairs = np.stack([one, other], axis=1)[(one != other) & (one >= 0) & (other >= 0)]
        yield from ((int(a), int(b)) for a, b in np.unique(pairs, axis=0))
