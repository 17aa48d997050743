"""Arrays put together from pieces of others: which device needs what from which, as arithmetic on boxes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ringlet.sharding.layout.layout import Box, Layout
from ringlet.sharding.resharding.collective_record import Collective

__all__ = [
    "Copies",
    "Copy",
    "Held",
    "Piece",
    "Run",
    "collectives_of",
    "copies_between",
    "held",
    "plan_pieces",
    "viewed_boxes",
]

Bounds = tuple[tuple[int, int], ...]


class Run(NamedTuple):
    """Indices at equal distances along one dimension: ``start + step * i`` for each i below `length`.

    Negative steps go backwards, and with a step of 0 the same index comes `length` times.
    """

    start: int
    step: int
    length: int

    def within(self, begin: int, end: int) -> tuple[int, int]:
        """Tell which of the run's places, from and up to, have indices from `begin` up to `end`.

        Examples
        --------
        >>> Run(1, 2, 4).within(2, 6), Run(7, -1, 8).within(0, 2), Run(3, 0, 5).within(2, 4)
        ((1, 3), (6, 8), (0, 5))
        """
        if self.step == 0:
            return (0, self.length) if begin <= self.start < end else (0, 0)
        if self.step > 0:
            low, high = -((self.start - begin) // self.step), -((self.start - end) // self.step)
        else:
            low, high = (self.start - end) // -self.step + 1, (self.start - begin) // -self.step + 1
        low, high = max(low, 0), min(high, self.length)
        return (low, high) if low < high else (0, 0)

    @property
    def key(self) -> slice:
        """The slice that takes the indices, one of them if they are all the same."""
        if self.step == 0:
            return slice(self.start, self.start + min(self.length, 1))
        stop = self.start + self.step * self.length
        return slice(self.start, stop if stop >= 0 else None, self.step) if self.length else slice(0, 0)


class Piece(NamedTuple):
    """A box of a result that has values of an operand.

    Attributes
    ----------
    operand : int
        Which.
    offset : tuple of int
        Where the box begins.
    runs : tuple of Run
        Along each dimension, what it takes of the operand: the lengths are the shape of the box.
    """

    operand: int
    offset: tuple[int, ...]
    runs: tuple[Run, ...]


class Held(NamedTuple):
    """What each device has of a piece.

    Attributes
    ----------
    boxes : tuple of tuple of (int, int)
        For each device, from where up to where in the result, along each dimension.
    parts : tuple of int
        For each device, which part of a partial array its values are of; -1 if it has nothing, which the box of an
        array without dimensions cannot say.
    """

    boxes: tuple[Bounds, ...]
    parts: tuple[int, ...]


class Copy(NamedTuple):
    """A box of the result, and the device and the piece from which a device gets it."""

    piece: int
    source: int
    target: int
    box: Box


class Copies(NamedTuple):
    """What each device copies.

    Attributes
    ----------
    of_device : tuple of tuple of Copy
    messages : tuple of Copy
        Those between two devices.
    collectives : tuple of Collective
        What they are, as it is reported.
    """

    of_device: tuple[tuple[Copy, ...], ...]
    messages: tuple[Copy, ...]
    collectives: tuple[Collective, ...]

    @property
    def nbytes(self) -> int:
        """Bytes that all devices send together."""
        return sum(collective.nbytes for collective in self.collectives)


class Form(NamedTuple):
    """What an array is to be."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    layout: Layout


@lru_cache(maxsize=4096)
def held(layout: Layout, shape: tuple[int, ...]) -> Held:
    """Tell what each device has of an array of a layout and shape.

    Examples
    --------
    >>> held(Layout.replicated(2, 1), (3,)).boxes
    (((0, 3),), ((0, 3),))
    """
    boxes = tuple(tuple((side.start, side.stop) for side in box) for box in layout.boxes(shape))
    devices = range(layout.num_devices)
    return Held(boxes, tuple(layout.parts.tile_of(device) if device in layout.holders else -1 for device in devices))


def viewed_boxes(layout: Layout, shape: tuple[int, ...], piece: Piece) -> Held:
    """Tell what each device has of a piece of an array of a layout and shape.

    Examples
    --------
    >>> from ringlet.sharding.layout.layout import Cut
    >>> viewed_boxes(Layout(2, (Cut(2, (0, 1)),)), (8,), Piece(0, (10,), (Run(1, 2, 4),))).boxes
    (((10, 12),), ((12, 14),))
    """
    whole = held(layout, shape)
    boxes = []
    for bounds in whole.boxes:
        sides = [run.within(*bound) for run, bound in zip(piece.runs, bounds, strict=True)]
        boxes.append(tuple((a + at, b + at) for at, (a, b) in zip(piece.offset, sides, strict=True)))
    return Held(tuple(boxes), whole.parts)


Layouts = tuple[Layout, ...]
Shapes = tuple[tuple[int, ...], ...]


@lru_cache(maxsize=4096)
def plan_pieces(pieces: tuple[Piece, ...], layouts: Layouts, shapes: Shapes, form: Form) -> Copies:
    """Plan how devices get their tiles of an array that is made of pieces.

    Parameters
    ----------
    pieces : tuple of Piece
    layouts, shapes : tuple
        Of the operands.
    form : Form
        Of the array.
    """
    sources = [viewed_boxes(layouts[piece.operand], shapes[piece.operand], piece) for piece in pieces]
    return copies_between(sources, held(form.layout, form.shape), form.dtype)


@lru_cache(maxsize=4096)
def plan_assignment(value: Piece, given: Form, target: Piece, written: Form) -> tuple[Held, Copies]:
    """Plan how devices get what they write of a piece of an array.

    Parameters
    ----------
    value : Piece
        What goes there, of an array that is as `given` says.
    given : Form
    target : Piece
        Where it goes, in an array that is as `written` says.
    written : Form

    Returns
    -------
    Held
        What each device has of the place.
    Copies
    """
    places = viewed_boxes(written.layout, written.shape, target)
    return places, copies_between([viewed_boxes(given.layout, given.shape, value)], places, given.dtype)


def copies_between(sources: Sequence[Held], target: Held, dtype: np.dtype[Any]) -> Copies:
    """Plan copies: a device takes what it has itself, and of several others that have the rest one for each like it.

    Parameters
    ----------
    sources : sequence of Held
        What devices have: disjoint boxes, or the same one, of each piece.
    target : Held
        What they shall have.
    dtype : dtype
        As of :func:`plan_pieces`.
    """
    cells = [_cells(source) for source in sources]
    wanted = _holders(target)
    of_device: list[tuple[Copy, ...]] = []
    for device, (bounds, part) in enumerate(zip(target.boxes, target.parts, strict=True)):
        rank = wanted[bounds, part].index(device) if (bounds, part) in wanted else 0
        copies = []
        for number, cells_of in enumerate(cells):
            for box, holders in _meeting(cells_of.get(part, {}), bounds):
                source = device if device in holders else holders[rank % len(holders)]
                copies.append(Copy(number, source, device, box))
        of_device.append(tuple(copies))
    messages = tuple(copy for copies in of_device for copy in copies if copy.source != copy.target)
    return Copies(tuple(of_device), messages, collectives_of(messages, dtype))


def _holders(held: Held) -> dict[tuple[Bounds, int], list[int]]:
    holders: dict[tuple[Bounds, int], list[int]] = {}
    for device, (bounds, part) in enumerate(zip(held.boxes, held.parts, strict=True)):
        if part >= 0 and all(begin < end for begin, end in bounds):
            holders.setdefault((bounds, part), []).append(device)
    return holders


# The boxes of a part as a tree: by their sides along the first dimension, then along the next, at last who has them.
Cells = dict[Any, Any]


def _cells(held: Held) -> Cells:
    cells: Cells = {}
    for (bounds, part), holders in _holders(held).items():
        place, key = cells, part
        for side in bounds:
            place, key = place.setdefault(key, {}), side  # type: ignore[assignment]
        place[key] = holders
    return cells


def _meeting(cells: Any, bounds: Bounds, sides: Box = ()) -> Iterator[tuple[Box, list[int]]]:
    """Give what boxes have of a box, and who has them."""
    if not bounds:
        if cells:
            yield sides, cells
        return
    (begin, end), *rest = bounds
    for (start, stop), deeper in cells.items():
        if start < end and begin < stop:
            yield from _meeting(deeper, tuple(rest), (*sides, slice(max(begin, start), min(end, stop))))


def collectives_of(messages: Iterable[Copy], dtype: np.dtype[Any]) -> tuple[Collective, ...]:
    """Say in collectives what messages there are: broadcasts of what several devices need, and permutations.

    Parameters
    ----------
    messages : iterable of Copy
    dtype : dtype

    Examples
    --------
    >>> row = (slice(0, 1), slice(0, 4))
    >>> [it.pairs for it in collectives_of([Copy(0, 1, 0, row), Copy(0, 2, 1, row)], np.dtype("float32"))]
    [((1, 0), (2, 1))]
    """
    targets: dict[tuple[int, Bounds], list[Copy]] = {}
    for copy in messages:
        bounds = tuple((side.start, side.stop) for side in copy.box)
        targets.setdefault((copy.source, bounds), []).append(copy)
    several = [copies for copies in targets.values() if len(copies) > 1]
    made = []
    if several:
        groups = tuple((copies[0].source, *(copy.target for copy in copies)) for copies in several)
        sent = [copy for copies in several for copy in copies]
        made.append(Collective("broadcast", _shape(sent), str(dtype), groups, (), _nbytes(sent, dtype)))
    for sent in _permutations(copies[0] for copies in targets.values() if len(copies) == 1):
        pairs = tuple((copy.source, copy.target) for copy in sent)
        made.append(Collective("collective-permute", _shape(sent), str(dtype), (), pairs, _nbytes(sent, dtype)))
    return tuple(made)


def _permutations(messages: Iterable[Copy]) -> list[list[Copy]]:
    """Messages in rounds, in each of which no device sends or receives twice."""
    rounds: list[list[Copy]] = []
    for copy in messages:
        for sent in rounds:
            if all(copy.source != other.source and copy.target != other.target for other in sent):
                sent.append(copy)
                break
        else:
            rounds.append([copy])
    return rounds


def _shape(copies: Sequence[Copy]) -> tuple[int, ...]:
    columns = zip(*(copy.box for copy in copies), strict=True)
    return tuple(max(side.stop - side.start for side in column) for column in columns)


def _nbytes(copies: Sequence[Copy], dtype: np.dtype[Any]) -> int:
    elements: int = sum(math.prod(side.stop - side.start for side in copy.box) for copy in copies)
    return elements * dtype.itemsize
