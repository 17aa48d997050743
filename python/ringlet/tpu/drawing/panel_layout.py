"""Positions of chips: one panel per z coordinate, in rows, with the largest chips that fit the width and height."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringlet.tpu.drawing.subject import Subject

# Maximum number of drawn chips, to bound the memory of the viewer: more than any pod has. Further chips are omitted.
MOST_CHIPS = 20_000

# Side of a chip and gap to the next, in pixels.
_SIZES = ((44, 14), (34, 12), (26, 9), (18, 7), (12, 5), (8, 3), (6, 2), (4, 1), (2, 0))

_MARGIN = 14
_HEAD = 36
_TICKS = 20  # margin for numbers at the upper and left edges
_FREE = 8  # margin at the other edges
_PANEL_TITLE = 18
_LOWEST = 1.4  # maximum height, as a multiple of the width


@dataclass(frozen=True, eq=False)
class Layout:
    """Positions in pixels; `gap` separates the chips of a host, and `slices` are the z coordinates of the panels.

    `width` is the width of the whole drawing, `bottom` the lower edge of the panels.
    """

    size: int
    gap: int
    columns: NDArray[np.int64]
    rows: NDArray[np.int64]
    slices: tuple[int, ...]
    origins: NDArray[np.int64]
    width: int
    bottom: int

    @property
    def has_links(self) -> bool:
        """Whether links between chips fit."""
        return self.gap >= 5

    @property
    def has_labels(self) -> bool:
        """Whether labels on chips fit."""
        return self.size >= 18

    def corner(self, x: int, y: int, panel: int) -> tuple[int, int]:
        """Return the coordinates of the top left corner of a chip."""
        left, top = self.origins[panel].tolist()
        return left + int(self.columns[x]), top + int(self.rows[y])

    def is_drawn(self, x: int, y: int) -> bool:
        """Return whether a column and a row are drawn."""
        return x < len(self.columns) and y < len(self.rows)


def chosen_slices(subject: Subject, slices: Iterable[int] | None) -> tuple[int, ...]:
    """Return the z coordinates to draw; default: all. Raise ValueError if one does not exist, or `slices` is empty."""
    depth = subject.shape[2]
    if slices is None:
        return tuple(range(depth))
    chosen = tuple(map(int, slices))
    wrong = [z for z in chosen if not 0 <= z < depth]
    if wrong or not chosen:
        what = f"slice z = {wrong[0]} does not exist" if wrong else "slices is empty"
        raise ValueError(f"{what}: pass z coordinates from 0 to {depth - 1}")
    return chosen


def lay_out(subject: Subject, slices: Sequence[int], width: int) -> Layout:
    """Return the layout, at most `width` pixels wide unless the smallest chips do not fit."""
    shape = _cropped(subject.shape[:2])
    slices = tuple(slices)[: max(1, MOST_CHIPS // (shape[0] * shape[1]))]
    for size, gap in _SIZES:
        layout = _at_size(subject, shape, slices, size=size, gap=gap, width=width)
        if layout.width <= width and layout.bottom <= _LOWEST * width:
            break
    return layout


def _cropped(shape: tuple[int, int]) -> tuple[int, int]:
    """Return the number of columns and rows to draw: all, unless one panel has too many chips."""
    x, y = shape
    if x * y <= MOST_CHIPS:
        return x, y
    side = math.isqrt(MOST_CHIPS)
    return min(x, max(side, MOST_CHIPS // y)), min(y, max(side, MOST_CHIPS // x))


def _at_size(
    subject: Subject, shape: tuple[int, int], slices: tuple[int, ...], *, size: int, gap: int, width: int
) -> Layout:
    between_hosts = (gap + 1) // 2 + 1 if gap else 0
    columns = _starts(subject.host[: shape[0]], 0, size + gap, between_hosts)
    rows = _starts(subject.host[:, : shape[1]], 1, size + gap, between_hosts)
    edge, edges = _TICKS + gap, _TICKS + _FREE + 2 * gap
    panel_width, panel_height = int(columns[-1]) + size + edges, int(rows[-1]) + size + edges
    panel_height += _PANEL_TITLE if subject.shape[2] > 1 else 0
    across = _panels_in_a_row(len(slices), max(1, (width - 2 * _MARGIN) // panel_width))
    index = np.arange(len(slices))
    lefts = _MARGIN + edge + index % across * panel_width
    tops = _HEAD + edge + index // across * panel_height + (_PANEL_TITLE if subject.shape[2] > 1 else 0)
    return Layout(
        size=size,
        gap=gap,
        columns=columns,
        rows=rows,
        slices=slices,
        origins=np.stack([lefts, tops], axis=1),
        width=2 * _MARGIN + across * panel_width,
        bottom=_HEAD + math.ceil(len(slices) / across) * panel_height,
    )


def _panels_in_a_row(count: int, most: int) -> int:
    """Return the panels per row: as many as fit; fewer if that fills the last row and adds at most one row."""
    most = min(count, most)
    rows = math.ceil(count / most)
    even = [n for n in range(most, 0, -1) if count % n == 0 and count // n <= rows + 1]
    return even[0] if even else most


def _starts(host: NDArray[np.int64], axis: int, pitch: int, between_hosts: int) -> NDArray[np.int64]:
    """Return the starts of columns (or rows), with wider gaps between hosts."""
    length = host.shape[axis]
    differ = np.take(host, range(length - 1), axis=axis) != np.take(host, range(1, length), axis=axis)
    other_axes = tuple(other for other in range(3) if other != axis)
    extra = np.where(differ.mean(axis=other_axes) > 0.5, between_hosts, 0)
    return np.concatenate([[0], np.cumsum(pitch + extra)]).astype(np.int64)
