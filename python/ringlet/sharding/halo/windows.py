"""What part of a dimension the windows of a convolution or of pooling reach: integer arithmetic."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from ringlet.sharding.layout.layout import Box, tile_bounds
from ringlet.sharding.layout.partition import whole_number

__all__ = [
    "POINTWISE",
    "Needs",
    "Padding",
    "Ranges",
    "Window",
    "all_see",
    "needs_of",
    "per_dimension",
    "seen_from",
    "windows_of",
]

Padding = str | Sequence[tuple[int, int]]
Ranges = tuple[tuple[int, int], ...]
# For each dimension of an array, the ranges that each of its tiles needs, in order; None for just the tile.
Needs = tuple[tuple[Ranges, ...] | None, ...]


class Window(NamedTuple):
    """How windows lie on one dimension.

    Between neighbours of the input, ``base - 1`` places are thought empty; before it `low` more, after it `high` more.
    Output o sees the places ``o * stride + j * dilation``, for j below `size`, counted from the first empty one.

    Attributes
    ----------
    size : int
        Elements that a window sees.
    stride : int
        From one window to the next.
    low, high : int
        Padding; a negative one leaves out as many places.
    base : int
        From one element of the input to the next.
    dilation : int
        From one element of a window to the next.

    Examples
    --------
    >>> Window(3, stride=2, low=1, high=1).count(8)
    4
    """

    size: int
    stride: int = 1
    low: int = 0
    high: int = 0
    base: int = 1
    dilation: int = 1

    @property
    def reach(self) -> int:
        """From the first to the last place that a window sees."""
        return (self.size - 1) * self.dilation + 1 if self.size else 0

    def places(self, length: int) -> int:
        """Tell between how many places windows lie, on an input of a length."""
        return ((length - 1) * self.base + 1 if length else 0) + self.low + self.high

    def count(self, length: int) -> int:
        """Tell how many windows there are on an input of a length."""
        return max(0, (self.places(length) - self.reach) // self.stride + 1)

    def needs(self, length: int, begin: int, end: int) -> tuple[int, int]:
        """Tell which part of an input of a length the outputs from `begin` to `end` see; an empty part if none.

        Examples
        --------
        >>> Window(3, low=1, high=1).needs(16, 4, 8), Window(3, low=1, high=1).needs(16, 0, 4)
        ((3, 9), (0, 5))
        """
        if begin >= end or not self.size:
            return 0, 0
        first = begin * self.stride - self.low
        last = (end - 1) * self.stride - self.low + self.reach - 1
        start = min(max(-(-first // self.base), 0), length)
        return start, max(start, min(last // self.base + 1, length))

    def seen_from(self, start: int, begin: int) -> Window:
        """Give the window of the same places, for an input that begins at `start` and outputs that begin at `begin`."""
        return self._replace(low=self.low + start * self.base - begin * self.stride)

    def transposed(self, length: int) -> Window:
        """Give the window with which the gradient of the outputs, an input, makes that of an input of a length.

        Its elements are in opposite order.
        """
        low = self.reach - 1 - self.low
        places = (length - 1) * self.base + self.reach
        outputs = self.count(length)
        high = places - low - ((outputs - 1) * self.stride + 1 if outputs else 0)
        return Window(self.size, self.base, low, high, self.stride, self.dilation)


POINTWISE = Window(1)


@lru_cache(maxsize=1024)
def needs_of(
    windows: tuple[Window, ...], dimensions: tuple[int, ...], shape: tuple[int, ...], counts: tuple[int, ...]
) -> Needs:
    """Tell what tiles of an input need, exactly, for as many tiles of outputs.

    Parameters
    ----------
    windows : tuple of Window
    dimensions : tuple of int
        Of the input: which each window is along.
    shape : tuple of int
        Of the input.
    counts : tuple of int
        Into how many tiles each dimension of the input, and the outputs along it, are cut.

    Examples
    --------
    18 rows are in tiles of 5, 5, 5 and 3; what tiles of 4 outputs need begins up to 3 rows before them:

    >>> needs_of((Window(3),), (0,), (18,), (4,))
    ((((0, 6),), ((4, 10),), ((8, 14),), ((12, 18),)),)
    """
    needs: list[tuple[Ranges, ...] | None] = [None] * len(shape)
    for window, dimension in zip(windows, dimensions, strict=True):
        length = shape[dimension]
        bounds = tile_bounds(window.count(length), counts[dimension])
        needs[dimension] = tuple((window.needs(length, *bound),) for bound in bounds)
    return tuple(needs)


@lru_cache(maxsize=1024)
def all_see(windows: tuple[Window, ...], lengths: tuple[int, ...], counts: tuple[int, ...]) -> bool:
    """Tell whether each tile of outputs sees some of the input.

    Parameters
    ----------
    windows : tuple of Window
    lengths, counts : tuple of int
        Along each of their dimensions, of the input, and how many tiles there are.

    Examples
    --------
    >>> all_see((Window(3, low=2),), (4,), (4,)), all_see((Window(3, low=5),), (4,), (4,))
    (True, False)
    """
    needs = needs_of(windows, tuple(range(len(windows))), lengths, counts)
    return all(start < stop for ranges in needs for tile in ranges or () for start, stop in tile)


def seen_from(
    windows: tuple[Window, ...], seen: Box, dimensions: Sequence[int], outputs: Box, out_dimensions: Sequence[int]
) -> tuple[Window, ...]:
    """Give the windows of a tile: of the part of an input that its outputs see.

    Parameters
    ----------
    windows : tuple of Window
    seen : Box
        Which part of the input.
    dimensions, out_dimensions : sequence of int
        For each window the dimension of the input, and that of the outputs.
    outputs : Box
        Which outputs.

    Examples
    --------
    >>> seen_from((Window(3, low=1),), (slice(3, 9),), (0,), (slice(4, 8),), (0,))
    (Window(size=3, stride=1, low=0, high=0, base=1, dilation=1),)
    """
    starts = tuple([seen[dimension].start for dimension in dimensions])
    begins = tuple([outputs[dimension].start for dimension in out_dimensions])
    return _seen_from(windows, starts, begins)


@lru_cache(maxsize=4096)
def _seen_from(windows: tuple[Window, ...], starts: tuple[int, ...], begins: tuple[int, ...]) -> tuple[Window, ...]:
    return tuple(window.seen_from(start, begin) for window, start, begin in zip(windows, starts, begins, strict=True))


def windows_of(
    lengths: Sequence[int],
    sizes: Sequence[int],
    strides: int | Sequence[int] | None,
    padding: Padding,
    *,
    base_dilation: int | Sequence[int] | None = None,
    window_dilation: int | Sequence[int] | None = None,
    names: tuple[str, str, str] = ("window_strides", "base_dilation", "window_dilation"),
) -> tuple[Window, ...]:
    """Give the windows of an operation, of each dimension.

    Parameters
    ----------
    lengths, sizes : sequence of int
        Of the input and of the windows.
    strides, base_dilation, window_dilation : int, sequence of int or None
        One number for each dimension, or one for all; None is 1.
    padding : str or sequence of (int, int)
        ``"VALID"``: none. ``"SAME"``: as many outputs as inputs, divided by the stride and rounded up, with the odd
        place after them; ``"SAME_LOWER"``, before them. Else what to pad before and after each dimension.
    names : tuple of str
        What the user calls strides and dilations.

    Raises
    ------
    ValueError
        If there is not one number for each dimension, or one is too small, or negative padding leaves out more than
        there is.

    References
    ----------
    jax-ml/jax, ``jax/_src/lax/lax.py``, ``padtype_to_pads``: which padding the names mean. The space between elements
    of the input does not count.

    Examples
    --------
    >>> [(w.low, w.high) for w in windows_of((5, 5), (2, 3), (1, 2), "same")]
    [(0, 1), (1, 1)]
    """
    ndim = len(sizes)
    columns = zip(
        sizes,
        per_dimension(names[0], strides, ndim),
        per_dimension(names[1], base_dilation, ndim),
        per_dimension(names[2], window_dilation, ndim),
        strict=True,
    )
    bare = [Window(size, stride, 0, 0, base, dilation) for size, stride, base, dilation in columns]
    pads = _pads(lengths, bare, padding)
    windows = tuple(window._replace(low=low, high=high) for window, (low, high) in zip(bare, pads, strict=True))
    for length, window in zip(lengths, windows, strict=True):
        if window.places(length) < 0:
            raise ValueError(
                f"padding {[(w.low, w.high) for w in windows]} leaves out more than there is: the input has sizes "
                f"{tuple(lengths)}. Negative padding takes away at most the size"
            )
    return windows


def per_dimension(what: str, given: int | Sequence[int] | None, ndim: int, least: int = 1) -> tuple[int, ...]:
    """Give one number for each dimension.

    Examples
    --------
    >>> per_dimension("window_strides", 2, 3)
    (2, 2, 2)
    """
    if given is None:
        given = 1
    one = whole_number(given)
    numbers = _whole_numbers(given) if one is None else (one,) * ndim
    if len(numbers) != ndim or any(number is None or number < least for number in numbers):
        raise ValueError(f"{what} is {given!r}: expected {ndim} whole numbers of {least} or more, or one for all")
    return numbers  # type: ignore[return-value]


def _whole_numbers(given: object) -> tuple[int | None, ...]:
    """The elements of what was given as numbers: None for one that is none, no elements if there are none."""
    return tuple(map(whole_number, given)) if isinstance(given, Iterable) else ()


def _pads(lengths: Sequence[int], windows: Sequence[Window], padding: object) -> list[tuple[int, int]]:
    if not isinstance(padding, str):
        given = [_whole_numbers(pair) for pair in padding] if isinstance(padding, Iterable) else []
        if len(given) != len(windows) or any(len(pair) != 2 or None in pair for pair in given):
            raise ValueError(
                f"padding is {padding!r}: expected a pair (before, after) for each of {len(windows)} dimensions, or "
                "'SAME', 'SAME_LOWER' or 'VALID'"
            )
        return given  # type: ignore[return-value]
    name = padding.upper()
    if name not in ("SAME", "SAME_LOWER", "VALID"):
        raise ValueError(f"there is no padding {padding!r}: give 'SAME', 'SAME_LOWER', 'VALID' or pairs of numbers")
    if name == "VALID":
        return [(0, 0)] * len(windows)
    pads = []
    for length, window in zip(lengths, windows, strict=True):
        total = max((-(-length // window.stride) - 1) * window.stride + window.reach - length, 0)
        less, more = total // 2, total - total // 2
        pads.append((less, more) if name == "SAME" else (more, less))
    return pads
