"""Where chips come to lie: one panel for each slice of equal z, in rows, as large as the width allows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringlet.tpu.drawing.subject import Subject

__all__ = ["MOST_CHIPS", "Layout", "chosen_slices", "lay_out"]

# More chips than any pod has; of more, the rest is left out, or a picture would take its reader's memory.
MOST_CHIPS = 20_000

# Side of a chip and the gap to the next, in pixels.
_SIZES = ((44, 14), (34, 12), (26, 9), (18, 7), (12, 5), (8, 3), (6, 2), (4, 1), (2, 0))

_MARGIN = 14
_HEAD = 36
_TICKS = 20  # for numbers at the upper and left edges
_FREE = 8  # beyond the other edges
_PANEL_TITLE = 18
_LOWEST = 1.4  # times the width


@dataclass(frozen=True, eq=False)
class Layout:
    """Where everything lies, in pixels.

    Attributes
    ----------
    size, gap : int
        Side of a chip, and the way to the next of the same host.
    columns, rows : ndarray of int
        Left of each column and top of each row of chips, in a panel.
    slices : tuple of int
        z of each panel.
    origins : ndarray of int, shape (panels, 2)
        Left and top of each panel's first chip.
    width, bottom : int
        Of the whole, and where the panels end.
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
        """Whether there is room for links between chips."""
        return self.gap >= 5

    @property
    def has_labels(self) -> bool:
        """Whether there is room for words on chips."""
        return self.size >= 18

    def corner(self, x: int, y: int, panel: int) -> tuple[int, int]:
        """Left and top of a chip."""
        left, top = self.origins[panel].tolist()
        return left + int(self.columns[x]), top + int(self.rows[y])

    def is_drawn(self, x: int, y: int) -> bool:
        """Whether a column and a row are in the picture."""
        return x < len(self.columns) and y < len(self.rows)


def chosen_slices(subject: Subject, slices: Iterable[int] | None) -> tuple[int, ...]:
    """Give the slices to draw: all, or those that were asked for.

    Raises
    ------
    ValueError
        If there is no such slice, or none is asked for.
    """
    depth = subject.shape[2]
    if slices is None:
        return tuple(range(depth))
    chosen = tuple(map(int, slices))
    wrong = [z for z in chosen if not 0 <= z < depth]
    if wrong or not chosen:
        what = f"there is no slice z = {wrong[0]}" if wrong else "no slices are given to draw"
        raise ValueError(f"{what}: slices are some of 0 to {depth - 1}")
    return chosen


def lay_out(subject: Subject, slices: Sequence[int], width: int) -> Layout:
    """Choose how large chips are, and in how many rows the panels stand.

    Parameters
    ----------
    subject : Subject
    slices : sequence of int
        z of each panel.
    width : int
        Pixels that the picture may take; it takes less if it can, and more only if the smallest chips do not fit.

    Returns
    -------
    Layout
    """
    shape = _cropped(subject.shape[:2])
    slices = tuple(slices)[: max(1, MOST_CHIPS // (shape[0] * shape[1]))]
    for size, gap in _SIZES:
        layout = _at_size(subject, shape, slices, size=size, gap=gap, width=width)
        if layout.width <= width and layout.bottom <= _LOWEST * width:
            break
    return layout


def _cropped(shape: tuple[int, int]) -> tuple[int, int]:
    """The part of one slice that is drawn: all of it, unless it has too many chips alone."""
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
    """As many as fit, or fewer if the last row is full then with hardly more rows."""
    most = min(count, most)
    rows = math.ceil(count / most)
    even = [n for n in range(most, 0, -1) if count % n == 0 and count // n <= rows + 1]
    return even[0] if even else most


def _starts(host: NDArray[np.int64], axis: int, pitch: int, between_hosts: int) -> NDArray[np.int64]:
    """Where columns (or rows) begin: a little further apart where most neighbours are of different hosts."""
    length = host.shape[axis]
    differ = np.take(host, range(length - 1), axis=axis) != np.take(host, range(1, length), axis=axis)
    other_axes = tuple(other for other in range(3) if other != axis)
    extra = np.where(differ.mean(axis=other_axes) > 0.5, between_hosts, 0)
    return np.concatenate([[0], np.cumsum(pitch + extra)]).astype(np.int64)
