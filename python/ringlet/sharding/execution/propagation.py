"""Where the operands of an operation have to be, and where its result comes to be: what costs the fewest bytes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from ringlet.collectives import Op
from ringlet.sharding.layout.dim_sharding import coarser, covers, divisors, joint
from ringlet.sharding.layout.factors import Factor, FactorMap, Labels
from ringlet.sharding.layout.layout import WHOLE, Box, Cut, Layout
from ringlet.sharding.resharding.transfer_bytes import moved_bytes

__all__ = ["Plan", "Where", "plan"]

Shape = tuple[int, ...]
Assignment = dict[Factor, Cut]

# Beyond as many ways to cut the factors, those with coarser tiles than an operand has are not looked at.
_MOST_CHOICES = 512


class Where(NamedTuple):
    """The place of a tile, as a kernel is told it.

    Attributes
    ----------
    device : int
    operands : tuple of Box
        What each operand's tile is of the whole.
    result : Box
        What the result's tile is of the whole.
    part : int
        Which part of the result it is, 0 if there is only one.
    """

    device: int
    operands: tuple[Box, ...]
    result: Box
    part: int


class Stack(NamedTuple):
    """How a view of an array is made that has a dimension for each factor that is cut, and then those of a tile.

    Of a partial result the array is that of its parts, one after another.

    Attributes
    ----------
    shape : tuple of int
        To which the array is reshaped.
    order : tuple of int
        In which its dimensions are then brought.
    """

    shape: tuple[int, ...]
    order: tuple[int, ...]


@dataclass(frozen=True)
class Plan:
    """How an operation runs.

    Attributes
    ----------
    operand_layouts : tuple of Layout
        Where each operand has to be.
    result_layout : Layout
        Where the result comes to be, with parts if it is to be combined.
    result_shape : tuple of int
    places : tuple of Where
        What each device computes, and from what.
    tile_numbers : tuple of int
        ``[device]``: equal numbers for devices that compute the same.
    moved : tuple of int
        Which operands are not where they have to be.
    stacks : tuple of Stack or None
        How each operand, and the result, is a stack of its tiles; None if they are not all of one size.
    nbytes : int
        What devices send before the result has its values, as estimated.
    """

    operand_layouts: tuple[Layout, ...]
    result_layout: Layout
    result_shape: Shape
    places: tuple[Where, ...]
    tile_numbers: tuple[int, ...]
    moved: tuple[int, ...]
    stacks: tuple[Stack, ...] | None
    nbytes: int

    @cached_property
    def first_devices(self) -> tuple[int, ...]:
        """The first device of each tile: those that compute where all share memory."""
        holders = self.result_layout.holders
        first = {self.tile_numbers[device]: device for device in reversed(holders)}
        return tuple(sorted(first.values()))

    @property
    def result_boxes(self) -> tuple[Box, ...]:
        """``[device]``: what each device computes of the result."""
        return tuple(where.result for where in self.places)


@dataclass(frozen=True)
class _Question:
    """What `plan` was asked."""

    factor_map: FactorMap
    shapes: tuple[Shape, ...]
    itemsizes: tuple[int, ...]
    layouts: tuple[Layout | None, ...]  # None: an operand that each device has, for nothing
    result_shape: Shape
    result_itemsize: int
    combine: Op | None

    @property
    def num_devices(self) -> int:
        return next(layout.num_devices for layout in self.layouts if layout is not None)


@lru_cache(maxsize=4096)
def plan(
    factor_map: FactorMap,
    shapes: tuple[Shape, ...],
    itemsizes: tuple[int, ...],
    layouts: tuple[Layout | None, ...],
    result_itemsize: int,
    *,
    result_shape: Shape | None = None,
    combine: Op | None = None,
) -> Plan:
    """Choose how each factor of an operation is cut.

    The cuts that operands have and none at all are tried for each factor, and where operands contradict each other
    coarser forms of the cuts, in every combination in which each device can compute its tile of the result. The one
    that moves the fewest bytes is taken, those that combining a partial result will move included; among equals the one
    that cuts the work into most tiles, then the one that moves less of the first operand, then of the second, and so
    on.

    Parameters
    ----------
    factor_map : FactorMap
    shapes, itemsizes : tuple of tuple of int, tuple of int
        Of the operands.
    layouts : tuple of (Layout or None)
        Where they are; None for one that every device has anyway. One at least is a layout.
    result_itemsize : int
        Bytes of an element of the result.
    result_shape : tuple of int or None
        For results with dimensions of other sizes than their factors have in the operands, or than 1 without one.
    combine : Op or None
        How the parts of partial operands combine; None if that is not the same for all.

    Examples
    --------
    Rows of a matrix times columns of another, on two devices: the smaller one, the second, is gathered.

    >>> from ringlet.collectives import Op
    >>> matmul = FactorMap((("i", "j"), ("j", "k")), ("i", "k"), {"j": Op.SUM})
    >>> half = Cut(2, (0, 1))
    >>> rows, columns = Layout(2, (half, WHOLE)), Layout(2, (WHOLE, half))
    >>> made = plan(matmul, ((8, 4), (4, 4)), (8, 8), (rows, columns), 8)
    >>> made.operand_layouts[1].is_replicated, made.result_layout == rows, made.nbytes
    (True, True, 128)
    """
    if result_shape is None:
        sizes = {
            label: size
            for labels, shape in zip(factor_map.operands, shapes, strict=True)
            for label, size in zip(labels, shape, strict=True)
        }
        result_shape = tuple(1 if label is None else sizes[label] for label in factor_map.result)
    question = _Question(factor_map, shapes, itemsizes, layouts, result_shape, result_itemsize, combine)
    chosen = _on_one_device(question) or min(_choices(question), key=lambda choice: choice[0])
    (nbytes, *_), operand_layouts, result_layout = chosen
    return Plan(
        operand_layouts,
        result_layout,
        result_shape,
        _places(operand_layouts, shapes, result_layout, result_shape),
        _tile_numbers(result_layout, operand_layouts),
        tuple(n for n, (given, on) in enumerate(zip(layouts, operand_layouts, strict=True)) if given not in (None, on)),
        _stacks(question, operand_layouts, result_layout),
        nbytes,
    )


Choice = tuple[tuple[int, ...], tuple[Layout, ...], Layout]


def _on_one_device(question: _Question) -> Choice | None:
    """Stay on one device if operands are there, and the others everywhere; on that of the largest if there are more."""
    sizes = [math.prod(shape) * size for shape, size in zip(question.shapes, question.itemsizes, strict=True)]
    given = [(size, layout) for size, layout in zip(sizes, question.layouts, strict=True) if layout is not None]
    on_one = [(size, layout.only) for size, layout in given if layout.only is not None]
    if not on_one or not all(layout.only is not None or layout.is_replicated for _, layout in given):
        return None
    _, device = max(on_one, key=lambda item: item[0])
    shapes = (*question.shapes, question.result_shape)
    *on, result = (Layout(question.num_devices, (WHOLE,) * len(shape), only=device) for shape in shapes)
    return (sum(_operand_bytes(question, on)),), tuple(on), result


def _choices(question: _Question) -> Iterator[Choice]:
    """Give each way to run the operation with what it costs."""
    for kept in _kept_partial(question):
        parts = next((layout.parts for number in kept if (layout := question.layouts[number])), WHOLE)
        for assignment in _assignments(question, parts):
            on = [
                Layout(question.num_devices, _cuts(labels, assignment), parts if number in kept else WHOLE)
                for number, labels in enumerate(question.factor_map.operands)
            ]
            reduced = tuple(assignment.get(factor, WHOLE) for factor in question.factor_map.reduced)
            result = Layout(
                question.num_devices, _cuts(question.factor_map.result, assignment), joint((parts, *reduced))
            )
            moved = _operand_bytes(question, on)
            combining = moved_bytes(question.result_shape, question.result_itemsize, result, result.without_parts())
            tiles = math.prod(cut.count for cut in assignment.values())
            yield (sum(moved) + combining, -tiles, *moved), tuple(on), result


def _kept_partial(question: _Question) -> Iterator[frozenset[int]]:
    """Give the sets of operands that may stay partial, and none at all."""
    rule, combine = question.factor_map, question.combine
    if combine not in rule.linear_ops or (rule.reduced and combine is not rule.combine):
        yield frozenset()
        return
    partial = frozenset(n for n, layout in enumerate(question.layouts) if layout is not None and layout.is_partial)
    for together in rule.linear:
        parts = {layout.parts for n in together if (layout := question.layouts[n]) is not None and layout.is_partial}
        if together <= partial and len(parts) == 1:
            yield together
    yield frozenset()


def _assignments(question: _Question, parts: Cut) -> Iterator[Assignment]:
    """Give the ways to cut the factors in which each combination of tiles and parts is on some device."""
    candidates = _candidates(question, with_coarser=True)
    if math.prod(map(len, candidates.values())) > _MOST_CHOICES:
        candidates = _candidates(question, with_coarser=False)
    if math.prod(map(len, candidates.values())) > _MOST_CHOICES:
        yield from _leading(candidates, parts)
        return
    for cuts in itertools.product(*candidates.values()):
        if covers((parts, *cuts)):
            yield dict(zip(candidates, cuts, strict=True))


def _candidates(question: _Question, *, with_coarser: bool) -> dict[Factor, list[Cut]]:
    """Give the cuts to try for each factor that an operand has cut; the others are not cut."""
    found: dict[Factor, dict[Cut, None]] = {}
    for labels, layout in zip(question.factor_map.operands, question.layouts, strict=True):
        for label, cut in zip(labels, layout.cuts, strict=True) if layout else ():
            if label is not None and label not in question.factor_map.whole and cut.count > 1:
                found.setdefault(label, {})[cut] = None
    conflict = any(len(cuts) > 1 for cuts in found.values()) or not covers(tuple(c for f in found.values() for c in f))
    if with_coarser and conflict:
        for cuts in found.values():
            for cut in list(cuts):
                cuts.update((coarser(cut, count), None) for count in divisors(cut.count))
    return {factor: [*dict.fromkeys([*cuts, WHOLE])] for factor, cuts in found.items()}


def _leading(candidates: dict[Factor, list[Cut]], parts: Cut) -> Iterator[Assignment]:
    """Give the one way that takes for each factor in turn the first cut that goes with those before it, and no cuts."""
    taken: Assignment = {}
    for factor, cuts in candidates.items():
        taken[factor] = next(cut for cut in cuts if covers((parts, *taken.values(), cut)))
    yield taken
    yield dict.fromkeys(candidates, WHOLE)


def _cuts(labels: Labels, assignment: Assignment) -> tuple[Cut, ...]:
    return tuple(assignment.get(label, WHOLE) for label in labels)


def _operand_bytes(question: _Question, targets: Sequence[Layout]) -> list[int]:
    """Give what each operand costs to move."""
    return [
        moved_bytes(shape, itemsize, source, target) if source is not None else 0
        for shape, itemsize, source, target in zip(
            question.shapes, question.itemsizes, question.layouts, targets, strict=True
        )
    ]


def _places(
    layouts: tuple[Layout, ...], shapes: tuple[Shape, ...], result: Layout, result_shape: Shape
) -> tuple[Where, ...]:
    columns = [layout.boxes(shape) for layout, shape in zip(layouts, shapes, strict=True)]
    return tuple(
        Where(device, tuple(column[device] for column in columns), box, result.parts.tile_of(device))
        for device, box in enumerate(result.boxes(result_shape))
    )


def _tile_numbers(result: Layout, operands: tuple[Layout, ...]) -> tuple[int, ...]:
    """Number the tiles of the work: two devices that have the same tiles of everything compute the same."""
    layouts = (result, *operands)
    numbers: dict[tuple[int, ...], int] = {}
    return tuple(
        numbers.setdefault(
            tuple(cut.tile_of(device) for layout in layouts for cut in (layout.parts, *layout.cuts)), len(numbers)
        )
        for device in range(result.num_devices)
    )


def _stacks(question: _Question, on: tuple[Layout, ...], result: Layout) -> tuple[Stack, ...] | None:
    """Give the views of operands and result in which tiles that belong together are at the same place."""
    rule = question.factor_map
    if any(layout.is_partial for layout in on) or result.only is not None:
        return None
    labels, shapes = (*rule.operands, rule.result), (*question.shapes, question.result_shape)
    sides = [
        [*zip(given, shape, layout.cuts, strict=True)]
        for given, shape, layout in zip(labels, shapes, (*on, result), strict=True)
    ]
    if any(size % cut.count for each in sides for _, size, cut in each):
        return None
    counts = {label: cut.count for each in sides for label, _, cut in each if cut.count > 1}
    parts = [factor for factor in rule.reduced if factor in counts]
    *operands, last = sides
    return (*(_stack(each, counts, ()) for each in operands), _stack(last, counts, parts))


def _stack(sides: Sequence[tuple[Factor, int, Cut]], counts: Mapping[Factor, int], parts: Sequence[Factor]) -> Stack:
    at = {factor: place for place, factor in enumerate(parts)}
    shape = [counts[factor] for factor in parts]
    tile: list[int] = []
    for label, size, cut in sides:
        if cut.count > 1:
            at[label] = len(shape)
            shape.append(cut.count)
        tile.append(len(shape))
        shape.append(size // cut.count)
    for factor in counts:
        if factor not in at:
            at[factor] = len(shape)
            shape.append(1)
    return Stack(tuple(shape), (*(at[factor] for factor in counts), *tile))
