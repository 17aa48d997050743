"""What is beyond the ends of an array: which of its elements a part that reaches over them has where."""

from __future__ import annotations

import itertools
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ringlet.sharding.halo.windows import Ranges
from ringlet.sharding.layout.layout import Box

__all__ = ["Boundary", "Piece", "boundary_of", "extended", "folded", "pieces", "ranges_of"]

Array = NDArray[Any]
Bounds = tuple[tuple[int, int], ...]
Boundaries = tuple["Boundary", ...]

_NAMES = ("zero", "reflect", "nearest", "periodic")


class Boundary(NamedTuple):
    """What a dimension goes on with.

    Attributes
    ----------
    kind : {"constant", "reflect", "nearest", "periodic"}
    value : number
        That of a constant one.
    """

    kind: str
    value: Any = 0


class Piece(NamedTuple):
    """Elements that a part of an extended dimension has in a row.

    Attributes
    ----------
    at : slice
        Where in the part.
    source : slice
        Which elements of the dimension; backwards where they are reflected. One of them may be for several.
    """

    at: slice
    source: slice


def boundary_of(given: Any, dtype: np.dtype[Any]) -> Boundary:
    """Read what a user gave as boundary: a name, or a number that goes into an array of a dtype.

    Raises
    ------
    ValueError
        If there is no such boundary.

    Examples
    --------
    >>> boundary_of("zero", np.dtype(int)), boundary_of(1.5, np.dtype(float))
    (Boundary(kind='constant', value=0), Boundary(kind='constant', value=1.5))
    """
    if isinstance(given, str):
        if given not in _NAMES:
            raise ValueError(f"there is no boundary {given!r}: give a number, or one of {', '.join(map(repr, _NAMES))}")
        return Boundary("constant") if given == "zero" else Boundary(given)
    if np.ndim(given) or not _goes_into(np.asarray(given), dtype):
        raise ValueError(
            f"boundary {given!r} is no number that an array of {dtype} can go on with: give one, or one of "
            f"{', '.join(map(repr, _NAMES))}"
        )
    return Boundary("constant", given)


def _goes_into(number: Array, dtype: np.dtype[Any]) -> bool:
    """Tell whether an array of a dtype can have a number: a whole one by its value, as with ``np.full``."""
    if number.dtype.kind in "iu" and dtype.kind in "iub":
        least, most = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        return bool(least <= number.item() <= most)
    return np.can_cast(number.dtype, dtype, "same_kind")


@lru_cache(maxsize=4096)
def pieces(length: int, begin: int, end: int, kind: str) -> tuple[Piece, ...]:
    """Tell where the elements of a part come from that may reach over both ends.

    Parameters
    ----------
    length : int
        Of the dimension, 1 or more.
    begin, end : int
        The part; negative, or more than `length`, outside.
    kind : {"constant", "reflect", "nearest", "periodic"}

    Returns
    -------
    tuple of Piece
        Together they are all of the part, but for what has the constant.

    Examples
    --------
    >>> [(piece.source.start, piece.source.stop, piece.source.step) for piece in pieces(4, -2, 5, "reflect")]
    [(1, None, -1), (0, 4, None), (3, 2, -1)]
    >>> [(piece.source.start, piece.source.stop) for piece in pieces(4, -2, 5, "periodic")]
    [(2, 4), (0, 4), (0, 1)]
    """
    if begin >= end:
        return ()
    if kind in ("constant", "nearest"):
        images = [(max(begin, 0), min(end, length), 0)]
    else:
        numbers = range(begin // length, (end - 1) // length + 1)
        images = [(max(begin, n * length), min(end, (n + 1) * length), n) for n in numbers]
    found = [
        Piece(slice(start - begin, stop - begin), _source(start - n * length, stop - n * length, length, kind, n))
        for start, stop, n in images
        if start < stop
    ]
    if kind == "nearest" and begin < 0:
        found.insert(0, Piece(slice(0, min(end, 0) - begin), slice(0, 1)))
    if kind == "nearest" and end > length:
        found.append(Piece(slice(max(begin, length) - begin, end - begin), slice(length - 1, length)))
    return tuple(found)


def _source(start: int, stop: int, length: int, kind: str, number: int) -> slice:
    """The elements of one image of the dimension: every other one is reflected."""
    if kind != "reflect" or number % 2 == 0:
        return slice(start, stop)
    last = length - 1 - stop
    return slice(length - 1 - start, last if last >= 0 else None, -1)


def ranges_of(found: tuple[Piece, ...]) -> Ranges:
    """Give the elements that pieces come from as ranges, in order and apart.

    Examples
    --------
    >>> ranges_of(pieces(8, -2, 4, "periodic"))
    ((0, 4), (6, 8))
    """
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
    """Give a part of an array that may reach over its ends, not to be written to: a view if it does not, else a copy.

    At corners outside of dimensions with different constants, the last one's holds.

    Examples
    --------
    >>> extended(np.arange(4), ((-1, 2),), (Boundary("nearest"),))
    array([0, 0, 1])
    """
    if all(0 <= begin <= end <= length for (begin, end), length in zip(bounds, x.shape, strict=True)):
        part = x[tuple(itertools.starmap(slice, bounds))] if bounds else x[...]
        part.flags.writeable = False
        return part
    part = np.empty([end - begin for begin, end in bounds], x.dtype)
    columns = []
    for axis, ((begin, end), boundary, length) in enumerate(zip(bounds, boundaries, x.shape, strict=True)):
        columns.append(pieces(length, begin, end, boundary.kind))
        if boundary.kind == "constant":
            part[_along(axis, 0, max(0, -begin))] = boundary.value
            part[_along(axis, max(0, length - begin), end - begin)] = boundary.value
    for each in itertools.product(*columns):
        at, source = zip(*each, strict=True)
        part[at] = x[source]
    part.flags.writeable = False
    return part


def folded(part: Array, bounds: Bounds, shape: tuple[int, ...], boundaries: Boundaries, tile: Box) -> Array:
    """Give the gradient of a tile's elements from that of a part that they are in, beyond the ends too.

    Parameters
    ----------
    part : ndarray
        The gradient of what :func:`extended` gives of an array.
    bounds, boundaries
        What that is given.
    shape : tuple of int
        Of the array.
    tile : Box
        Whose gradient it is to be.

    Examples
    --------
    >>> folded(np.ones(4), ((-1, 3),), (4,), (Boundary("reflect"),), (slice(0, 2),))
    array([2., 1.])
    """
    for axis, ((begin, end), length, boundary, side) in enumerate(zip(bounds, shape, boundaries, tile, strict=True)):
        if 0 <= begin <= side.start and side.stop <= end <= length:
            part = part[_along(axis, side.start - begin, side.stop - begin)]
        else:
            part = _folded_along(axis, part, pieces(length, begin, end, boundary.kind), side)
    return part


def _folded_along(axis: int, part: Array, found: tuple[Piece, ...], side: slice) -> Array:
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
