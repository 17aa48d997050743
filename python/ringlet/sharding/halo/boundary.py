"""Boundary conditions: which values an array has beyond its ends."""

from __future__ import annotations

import itertools
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ringlet.collectives.argument_parsing import shortened
from ringlet.sharding.halo.windows import Ranges
from ringlet.sharding.layout.layout import Array, Box, Shape

Bounds = tuple[tuple[int, int], ...]
Boundaries = tuple["Boundary", ...]

_NAMES = ("zero", "reflect", "nearest", "periodic")


class Boundary(NamedTuple):
    """Continuation of a dimension beyond its ends: "constant", "reflect", "nearest" or "periodic"."""

    kind: str
    value: Any = 0


class Segment(NamedTuple):
    """A slice of a region, `at`, and `source`, the slice of the dimension whose elements are copied there.

    `source` is descending where the dimension is reflected; a single element is repeated.
    """

    at: slice
    source: slice


def boundary_of(given: Any, dtype: np.dtype[Any]) -> Boundary:
    """Parse a boundary argument: a name, or a number that an array of a dtype can hold."""
    if isinstance(given, str):
        if given not in _NAMES:
            raise ValueError(
                f"{shortened(given)} is not a boundary: pass a number, or one of {', '.join(map(repr, _NAMES))}"
            )
        return Boundary("constant") if given == "zero" else Boundary(given)
    if np.ndim(given) or not _can_hold(np.asarray(given), dtype):
        raise ValueError(
            f"boundary {shortened(given)} is not a number that an array of {dtype} can hold: pass a number that fits, "
            f"or one of {', '.join(map(repr, _NAMES))}"
        )
    return Boundary("constant", given)


def _can_hold(number: Array, dtype: np.dtype[Any]) -> bool:
    """Return whether an array of a dtype can hold a number; integers are checked by their values, as in ``np.full``."""
    if number.dtype.kind in "iu" and dtype.kind in "iub":
        least, most = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        return bool(least <= number.item() <= most)
    return np.can_cast(number.dtype, dtype, "same_kind")


@lru_cache(maxsize=4096)
def segments(length: int, begin: int, end: int, kind: str) -> tuple[Segment, ...]:
    """Divide positions `begin` to `end` of a dimension of `length` elements into segments.

    Positions beyond the ends take elements according to `kind`; positions of constants are in no segment.
    """
    if begin >= end:
        return ()
    if kind in ("constant", "nearest"):
        images = [(max(begin, 0), min(end, length), 0)]
    else:
        numbers = range(begin // length, (end - 1) // length + 1)
        images = [(max(begin, n * length), min(end, (n + 1) * length), n) for n in numbers]
    found = [
        Segment(slice(start - begin, stop - begin), _source(start - n * length, stop - n * length, length, kind, n))
        for start, stop, n in images
        if start < stop
    ]
    if kind == "nearest" and begin < 0:
        found.insert(0, Segment(slice(0, min(end, 0) - begin), slice(0, 1)))
    if kind == "nearest" and end > length:
        found.append(Segment(slice(max(begin, length) - begin, end - begin), slice(length - 1, length)))
    return tuple(found)


def _source(start: int, stop: int, length: int, kind: str, number: int) -> slice:
    """Return the source of a slice of repetition `number`; with "reflect", odd repetitions are reversed."""
    if kind != "reflect" or number % 2 == 0:
        return slice(start, stop)
    last = length - 1 - stop
    return slice(length - 1 - start, last if last >= 0 else None, -1)


def ranges_of(found: tuple[Segment, ...]) -> Ranges:
    """Return the source elements of segments as ordered disjoint ranges."""
    bounds = sorted(
        (s.start, s.stop) if s.step is None else (0 if s.stop is None else s.stop + 1, s.start + 1) for _, s in found
    )
    merged: list[tuple[int, int]] = []
    for start, stop in bounds:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        else:
            merged.append((start, stop))
    return tuple(merged) or ((0, 0),)


def extended(x: Array, bounds: Bounds, boundaries: Boundaries) -> Array:
    """Return a read-only region of an array: a view if the region lies inside the array, else a copy.

    An element beyond the ends of several dimensions takes the constant of the last of these dimensions with a
    constant boundary.
    """
    if all(0 <= begin <= end <= length for (begin, end), length in zip(bounds, x.shape, strict=True)):
        part = x[tuple(itertools.starmap(slice, bounds))] if bounds else x[...]
        part.flags.writeable = False
        return part
    part = np.empty([end - begin for begin, end in bounds], x.dtype)
    columns = []
    for axis, ((begin, end), boundary, length) in enumerate(zip(bounds, boundaries, x.shape, strict=True)):
        columns.append(segments(length, begin, end, boundary.kind))
        if boundary.kind == "constant":
            part[_along(axis, 0, max(0, -begin))] = boundary.value
            part[_along(axis, max(0, length - begin), end - begin)] = boundary.value
    for each in itertools.product(*columns):
        at, source = zip(*each, strict=True)
        part[at] = x[source]
    part.flags.writeable = False
    return part


def folded(part: Array, bounds: Bounds, shape: Shape, boundaries: Boundaries, tile: Box) -> Array:
    """Return the gradient of a tile, given `part`, the gradient of a region that :func:`extended` returns.

    Gradients of repeated elements are added to the gradients of their sources; those of constants are dropped.
    """
    for axis, ((begin, end), length, boundary, side) in enumerate(zip(bounds, shape, boundaries, tile, strict=True)):
        if 0 <= begin <= side.start and side.stop <= end <= length:
            part = part[_along(axis, side.start - begin, side.stop - begin)]
        else:
            part = _folded_along(axis, part, segments(length, begin, end, boundary.kind), side)
    return part


def _folded_along(axis: int, part: Array, found: tuple[Segment, ...], side: slice) -> Array:
    size = side.stop - side.start
    total = np.zeros((*part.shape[:axis], size, *part.shape[axis + 1 :]), part.dtype)
    for at, source in found:
        values, begin, end = part[_along(axis, at.start, at.stop)], source.start, source.stop
        if source.step is not None:
            values, begin, end = np.flip(values, axis), 0 if end is None else end + 1, begin + 1
        elif at.stop - at.start != end - begin:
            values = values.sum(axis=axis, keepdims=True)
        start, stop = max(begin, side.start), min(end, side.stop)
        if start < stop:
            shared = values[_along(axis, start - begin, stop - begin)]
            total[_along(axis, start - side.start, stop - side.start)] += shared
    return total


def _along(axis: int, start: int, stop: int) -> Box:
    return (slice(None),) * axis + (slice(start, stop),)
