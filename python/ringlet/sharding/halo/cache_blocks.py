"""Blocks of outputs whose scratch memory fits in the cache, and the inputs of their windows."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ringlet.sharding.halo.windows import Window, Windows
from ringlet.sharding.layout.layout import Array

Slices = tuple[slice, ...]


class Block(NamedTuple):
    """A block of adjacent outputs; its windows span `places` positions along each dimension, including padding.

    `source` is the range of input elements at these positions, and `target` the range of positions that have elements.
    """

    outputs: Slices
    counts: tuple[int, ...]
    places: tuple[int, ...]
    source: Slices
    target: Slices
    is_inside: bool


def blocks(lengths: tuple[int, ...], counts: tuple[int, ...], windows: Windows, most: int) -> Iterator[Block]:
    """Divide outputs into blocks of about `most` window positions, which extend along the last dimensions first.

    `lengths` are the sizes of the input, `counts` the numbers of outputs; `high` of a window is not used.
    """
    for pieces in itertools.product(*_columns(lengths, counts, windows, most)):
        outputs, numbers, places, source, target, inside = zip(*pieces, strict=True) if pieces else ((),) * 6
        yield Block(outputs, numbers, places, source, target, all(inside))


@lru_cache(maxsize=1024)
def _columns(
    lengths: tuple[int, ...], counts: tuple[int, ...], windows: Windows, most: int
) -> list[list[tuple[slice, int, int, slice, slice, bool]]]:
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
    """Return the inputs of a block's windows: a view if none is padding and `dtype` fits, else a padded copy."""
    part = x[block.source]
    if block.is_inside and part.dtype == dtype:
        return part
    places = np.empty(block.places + x.shape[len(block.places) :], dtype)
    if not block.is_inside:
        places.fill(padding)
    places[block.target] = part
    return places


@lru_cache(maxsize=1024)
def tap_slices(windows: Windows, counts: tuple[int, ...]) -> list[tuple[tuple[int, ...], Slices]]:
    """Return the index of each window element, and the slices of a block's positions that it reads."""
    taps = itertools.product(*(range(window.size) for window in windows))
    return [(tap, tuple(itertools.starmap(_seen, zip(tap, windows, counts, strict=True)))) for tap in taps]


def _seen(tap: int, window: Window, count: int) -> slice:
    first = tap * window.dilation
    return slice(first, first + (count - 1) * window.stride + 1, window.stride)


def wide(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype for sums: float32 for floats of 16 bits or fewer."""
    is_short = dtype == np.float16 or (dtype.kind == "V" and dtype.itemsize <= 2)
    return np.dtype(np.float32) if is_short else dtype
