"""Windows of convolutions and pooling: their positions along each dimension, in integer arithmetic."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from ringlet.collectives.argument_parsing import shortened
from ringlet.sharding.layout.layout import Box, Shape, tile_bounds
from ringlet.sharding.layout.partition import whole_number

Numbers = int | Sequence[int]
Padding = str | Sequence[tuple[int, int]]
Ranges = tuple[tuple[int, int], ...]
# For each dimension of an array, the ranges that its tiles need, in order; None if a tile needs only its own elements.
Needs = tuple[tuple[Ranges, ...] | None, ...]


class Window(NamedTuple):
    """Windows along one dimension.

    The input has ``base - 1`` empty positions between adjacent elements, `low` positions before the first element and
    `high` after the last (negative: cropped). Output o uses the positions ``o * stride + j * dilation``, for j below
    `size`, counted from the first position.
    """

    size: int
    stride: int = 1
    low: int = 0
    high: int = 0
    base: int = 1
    dilation: int = 1

    @property
    def reach(self) -> int:
        """Number of positions from the first to the last element of a window, inclusive."""
        return (self.size - 1) * self.dilation + 1 if self.size else 0

    def places(self, length: int) -> int:
        """Return the number of positions of an input with `length` elements."""
        return ((length - 1) * self.base + 1 if length else 0) + self.low + self.high

    def count(self, length: int) -> int:
        """Return the number of windows on an input with `length` elements."""
        return max(0, (self.places(length) - self.reach) // self.stride + 1)

    def needs(self, length: int, begin: int, end: int) -> tuple[int, int]:
        """Return the range of inputs, possibly empty, for the outputs from `begin` to `end`."""
        if begin >= end or not self.size:
            return 0, 0
        first = begin * self.stride - self.low
        last = (end - 1) * self.stride - self.low + self.reach - 1
        start = min(max(-(-first // self.base), 0), length)
        return start, max(start, min(last // self.base + 1, length))

    def relative_windows(self, start: int, begin: int) -> Window:
        """Return the same window relative to an input that starts at `start` and outputs that start at `begin`."""
        return self._replace(low=self.low + start * self.base - begin * self.stride)

    def transposed(self, length: int) -> Window:
        """Return the window that computes the gradient of an input, with `length` elements, from the outputs' gradient.

        The window's elements are in reverse order.
        """
        low = self.reach - 1 - self.low
        places = (length - 1) * self.base + self.reach
        outputs = self.count(length)
        high = places - low - ((outputs - 1) * self.stride + 1 if outputs else 0)
        return Window(self.size, self.base, low, high, self.stride, self.dilation)


POINTWISE = Window(1)
Windows = tuple[Window, ...]


def counted(shape: Shape, windows: Windows) -> Shape:
    """Return the shape of the windows' results."""
    return tuple(window.count(length) for window, length in zip(windows, shape, strict=True))


@lru_cache(maxsize=1024)
def needs_of(windows: Windows, dimensions: tuple[int, ...], shape: Shape, counts: tuple[int, ...]) -> Needs:
    """Return the ranges of an input that its tiles need to compute the corresponding tiles of outputs.

    `counts` has the number of tiles along each dimension, and `dimensions` the dimension of the input for each window.
    """
    needs: list[tuple[Ranges, ...] | None] = [None] * len(shape)
    for window, dimension in zip(windows, dimensions, strict=True):
        length = shape[dimension]
        bounds = tile_bounds(window.count(length), counts[dimension])
        needs[dimension] = tuple((window.needs(length, *bound),) for bound in bounds)
    return tuple(needs)


@lru_cache(maxsize=1024)
def all_have_inputs(windows: Windows, lengths: tuple[int, ...], counts: tuple[int, ...]) -> bool:
    """Return whether each tile of outputs has inputs."""
    needs = needs_of(windows, tuple(range(len(windows))), lengths, counts)
    return all(start < stop for ranges in needs for tile in ranges or () for start, stop in tile)


def relative_windows(
    windows: Windows, seen: Box, dimensions: Sequence[int], outputs: Box, out_dimensions: Sequence[int]
) -> Windows:
    """Return the windows of a tile, relative to the box `seen` of the input that its outputs use.

    `dimensions` and `out_dimensions` have the dimension of the input and of the outputs for each window.
    """
    starts = tuple([seen[dimension].start for dimension in dimensions])
    begins = tuple([outputs[dimension].start for dimension in out_dimensions])
    return _relative_windows(windows, starts, begins)


@lru_cache(maxsize=4096)
def _relative_windows(windows: Windows, starts: tuple[int, ...], begins: tuple[int, ...]) -> Windows:
    return tuple(
        window.relative_windows(start, begin) for window, start, begin in zip(windows, starts, begins, strict=True)
    )


def windows_of(
    lengths: Sequence[int],
    sizes: Sequence[int],
    strides: Numbers | None,
    padding: Padding,
    *,
    base_dilation: Numbers | None = None,
    window_dilation: Numbers | None = None,
    names: tuple[str, str, str] = ("window_strides", "base_dilation", "window_dilation"),
) -> Windows:
    """Return the windows of an operation along each dimension; raise ValueError for inconsistent numbers.

    A single stride or dilation applies to all dimensions. Padding "VALID" adds no elements. "SAME" adds elements on
    both sides so that the number of outputs is the number of inputs divided by the stride, rounded up. If the number of
    added elements is odd, "SAME" adds one more after the input, "SAME_LOWER" before it (jax-ml/jax,
    ``jax/_src/lax/lax.py``, ``padtype_to_pads``). Spaces that `base_dilation` inserts are not counted as inputs.
    `names` are the names of strides and dilations in errors.
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
                f"padding {[(w.low, w.high) for w in windows]} removes more elements than the input of shape "
                f"{tuple(lengths)} has: in each dimension of size n, low + high must be at least -n"
            )
    return windows


def per_dimension(what: str, given: Numbers | None, ndim: int, least: int = 1) -> tuple[int, ...]:
    """Return one number for each dimension; one given number applies to all, and None means 1."""
    if given is None:
        given = 1
    one = whole_number(given)
    numbers = _whole_numbers(given) if one is None else (one,) * ndim
    if len(numbers) != ndim or any(number is None or number < least for number in numbers):
        raise ValueError(
            f"{what} is {shortened(given)}: expected an integer of {least} or more, or a sequence of length {ndim}"
        )
    return numbers  # type: ignore[return-value]


def _whole_numbers(given: object) -> tuple[int | None, ...]:
    """Return the items of an argument, with None for items that are not whole numbers; () if it is not iterable."""
    return tuple(map(whole_number, given)) if isinstance(given, Iterable) else ()


def _pads(lengths: Sequence[int], windows: Sequence[Window], padding: object) -> list[tuple[int, int]]:
    if not isinstance(padding, str):
        given = [_whole_numbers(pair) for pair in padding] if isinstance(padding, Iterable) else []
        if len(given) != len(windows) or any(len(pair) != 2 or None in pair for pair in given):
            raise ValueError(
                f"padding is {shortened(padding)}: expected a pair (before, after) for each of {len(windows)} "
                "dimensions, or "
                "'SAME', 'SAME_LOWER' or 'VALID'"
            )
        return given  # type: ignore[return-value]
    name = padding.upper()
    if name not in ("SAME", "SAME_LOWER", "VALID"):
        raise ValueError(
            f"{shortened(padding)} is not a padding: pass 'SAME', 'SAME_LOWER', 'VALID' or pairs of numbers"
        )
    if name == "VALID":
        return [(0, 0)] * len(windows)
    pads = []
    for length, window in zip(lengths, windows, strict=True):
        total = max((-(-length // window.stride) - 1) * window.stride + window.reach - length, 0)
        less, more = total // 2, total - total // 2
        pads.append((less, more) if name == "SAME" else (more, less))
    return pads
