"""Links between the chips of a mesh or torus."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ringlet.tpu.topology.generation import ChipShape

IntArray = np.ndarray[Any, np.dtype[np.int32]]
BoolArray = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True, eq=False)
class Links:
    """Every link between two chips, one entry per direction; returned by :meth:`Topology.links`.

    Chips are numbered in row-major order. The arrays are read-only with one entry per directed link. Links are sorted
    by axis, then by direction (up before down), then by source.

    Attributes
    ----------
    source, target : ndarray of int32, shape (links,)
        Numbers of the chips at the ends of each link.
    axis : ndarray of int32, shape (links,)
        Axis of each link: 0, 1 or 2.
    is_wrap : ndarray of bool, shape (links,)
        Whether the link connects the two ends of its axis.

    Examples
    --------
    >>> import ringlet
    >>> links = ringlet.tpu.Topology.from_accelerator_type("v4-8").links()
    >>> list(zip(links.source.tolist(), links.target.tolist(), links.axis.tolist()))
    [(0, 2, 0), (1, 3, 0), (2, 0, 0), (3, 1, 0), (0, 1, 1), (2, 3, 1), (1, 0, 1), (3, 2, 1)]
    """

    source: IntArray
    target: IntArray
    axis: IntArray
    is_wrap: BoolArray

    def __len__(self) -> int:
        return len(self.source)

    def __repr__(self) -> str:
        return f"<Links: {len(self)} directed links, {int(self.is_wrap.sum())} of them wrap>"


def twist_of(shape: ChipShape) -> tuple[ChipShape, ChipShape, ChipShape] | None:
    """Return, by axis of the link, the shift of wrap links along x, y and z; None if the torus cannot be twisted.

    A torus of n x n x 2n or n x 2n x 2n chips can be twisted: a wrap link of a short axis arrives n chips further along
    each long axis.
    """
    short, long = min(shape), max(shape)
    if long != 2 * short or any(length not in (short, long) for length in shape):
        return None
    x, y, z = (short if length == long else 0 for length in shape)
    first, second, third = ((x, y, z) if length == short else (0, 0, 0) for length in shape)
    return first, second, third


def links_of(
    shape: ChipShape, wrap: Sequence[bool], twist: tuple[ChipShape, ChipShape, ChipShape] | None = None
) -> Links:
    """Return the links of a mesh. A ring of two chips has a second, parallel link; a single chip has none."""
    sources, targets, axes, wraps = [], [], [], []
    chips = np.arange(shape[0] * shape[1] * shape[2], dtype=np.int32).reshape(shape)
    for axis in range(3):
        if shape[axis] == 1:
            continue
        for way in (1, -1):
            neighbour, is_wrap = _neighbours(chips, axis, way, twist[axis] if twist else None)
            kept = ~is_wrap | bool(wrap[axis])
            sources.append(chips[kept])
            targets.append(neighbour[kept])
            axes.append(np.full(len(sources[-1]), axis, np.int32))
            wraps.append(is_wrap[kept])
    whole = [
        np.concatenate([np.empty(0, dtype), *parts])
        for dtype, parts in ((np.int32, sources), (np.int32, targets), (np.int32, axes), (np.bool_, wraps))
    ]
    for array in whole:
        array.flags.writeable = False
    return Links(*whole)


def _neighbours(chips: IntArray, axis: int, way: int, shift: ChipShape | None) -> tuple[IntArray, BoolArray]:
    """Return each chip's neighbour in one direction along an axis, and whether the link to it is a wrap link."""
    neighbour = np.roll(chips, -way, axis)
    is_wrap = np.zeros(chips.shape, np.bool_)
    end = [slice(None)] * 3
    end[axis] = slice(-1, None) if way == 1 else slice(0, 1)
    is_wrap[tuple(end)] = True
    if shift is not None and any(shift):
        # A link up arrives `shift` further along; the same link in the other direction is shifted back.
        shifted = np.roll(neighbour, [-way * step for step in shift], (0, 1, 2))
        neighbour = np.where(is_wrap, shifted, neighbour)
    return neighbour, is_wrap
