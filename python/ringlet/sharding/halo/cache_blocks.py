"""Outputs in blocks whose scratch memory stays in the processor's cache, and what the windows of each lie on."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ringlet.sharding.halo.windows import Window

__all__ = ["Block", "Slices", "blocks", "filled", "tap_slices", "wide"]

Array = NDArray[Any]
Slices = tuple[slice, ...]


class Block(NamedTuple):
    """Some outputs next to each other.

    Attributes
    ----------
    outputs : tuple of slice
        Which, along each dimension.
    counts : tuple of int
        How many.
    places : tuple of int
        How many places their windows lie on, padding and all.
    source : tuple of slice
        What of the input is at some of the places.
    target : tuple of slice
        At which.
    is_inside : bool
        Whether there is input at all the places.
    """

    outputs: Slices
    counts: tuple[int, ...]
    places: tuple[int, ...]
    source: Slices
    target: Slices
    is_inside: bool


def blocks(
    lengths: tuple[int, ...], counts: tuple[int, ...], windows: tuple[Window, ...], most: int
) -> Iterator[Block]:
    """Cut outputs into blocks of a size, whole along the last dimensions first.

    Parameters
    ----------
    lengths, counts : tuple of int
        Of the input and of the outputs.
    windows : tuple of Window
        `high` does not matter.
    most : int
        Places that the windows of a block are to lie on, about.

    Examples
    --------
    >>> [(block.outputs, block.places) for block in blocks((9,), (9,), (Window(3, low=1),), 5)]
    [((slice(0, 5, None),), (7,)), ((slice(5, 9, None),), (6,))]
    """
    for pieces in itertools.product(*_columns(lengths, counts, windows, most)):
        outputs, numbers, places, source, target, inside = zip(*pieces, strict=True) if pieces else ((),) * 6
        yield Block(outputs, numbers, places, source, target, all(inside))


@lru_cache(maxsize=1024)
def _columns(
    lengths: tuple[int, ...], counts: tuple[int, ...], windows: tuple[Window, ...], most: int
) -> list[list[tuple[slice, int, int, slice, slice, bool]]]:
    """The part of blocks that each dimension has."""
    columns: list[list[tuple[slice, int, int, slice, slice, bool]]] = []
    for length, count, window in reversed(list(zip(lengths, counts, windows, strict=True))):
        step = max(1, min(count, most // window.stride))
        most //= step * window.stride
        bounds = [(begin, min(begin + step, count)) for begin in range(0, count, step)]
        columns.insert(0, [_piece(length, window, begin, end) for begin, end in bounds])
    return columns


def _piece(length: int, window: Window, begin: int, end: int) -> tuple[slice, int, int, slice, slice, bool]:
    first = begin * window.stride - window.low
    places = (end - begin - 1) * window.stride + window.reach
    start, stop = window.needs(length, begin, end)
    at = start * window.base - first
    target = slice(at, at + (stop - start - 1) * window.base + 1, window.base) if start < stop else slice(0, 0)
    return slice(begin, end), end - begin, places, slice(start, stop), target, stop - start == places


def filled(x: Array, block: Block, dtype: np.dtype[Any], padding: Any = 0) -> Array:
    """Give the places that the windows of a block lie on: a view where all are in the input, else a padded copy.

    Parameters
    ----------
    x : ndarray [*places, ...]
    block : Block
    dtype : dtype
        Of what is given.
    padding : scalar
        What is where the input is not.

    Examples
    --------
    >>> x = np.arange(1, 5)
    >>> [filled(x, block, x.dtype).tolist() for block in blocks((4,), (4,), (Window(3, low=1),), 2)]
    [[0, 1, 2, 3], [2, 3, 4, 0]]
    """
    part = x[block.source]
    if block.is_inside and part.dtype == dtype:
        return part
    places = np.empty(block.places + x.shape[len(block.places) :], dtype)
    if not block.is_inside:
        places.fill(padding)
    places[block.target] = part
    return places


@lru_cache(maxsize=1024)
def tap_slices(windows: tuple[Window, ...], counts: tuple[int, ...]) -> list[tuple[tuple[int, ...], Slices]]:
    """Give, for each element of a window, which of the places of a block of outputs it sees.

    Examples
    --------
    >>> tap_slices((Window(2, stride=3),), (4,))
    [((0,), (slice(0, 10, 3),)), ((1,), (slice(1, 11, 3),))]
    """
    taps = itertools.product(*(range(window.size) for window in windows))
    return [(tap, tuple(itertools.starmap(_seen, zip(tap, windows, counts, strict=True)))) for tap in taps]


def _seen(tap: int, window: Window, count: int) -> slice:
    first = tap * window.dilation
    return slice(first, first + (count - 1) * window.stride + 1, window.stride)


def wide(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Give the dtype in which to add up: float32 for floats of 16 bits and fewer.

    Examples
    --------
    >>> wide(np.dtype("float16")), wide(np.dtype("int16"))
    (dtype('float32'), dtype('int16'))
    """
    is_short = dtype == np.float16 or (dtype.kind == "V" and dtype.itemsize <= 2)
    return np.dtype(np.float32) if is_short else dtype
