"""Sharding propagation: chooses layouts of operands and result for which an operation sends the fewest bytes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from ringlet.collectives import Op
from ringlet.sharding.layout.factors import Factor, FactorMap, Labels
from ringlet.sharding.layout.layout import WHOLE, Box, Cut, Layout, Shape, coarser, covers, divisors, joint, shared
from ringlet.sharding.resharding.transfers import moved_bytes

Assignment = dict[Factor, Cut]

# Maximum number of combinations that are tried. If exceeded, tiles coarser than an operand's are left out; if still
# exceeded, only the first candidates are tried.
_MOST_CHOICES = 512


class TileBoxes(NamedTuple):
    """Argument of a kernel: the boxes of the operands that a device reads, and the box of the result that it computes.

    `part` is the number of the part in a partial result.
    """

    device: int
    operands: tuple[Box, ...]
    result: Box
    part: int


class StackView(NamedTuple):
    """Steps to view an array with one dimension for each divided factor, followed by the dimensions of a tile.

    Reshape to `shape`, then transpose to `order`. For a partial result, the array consists of its parts in sequence.
    """

    shape: Shape
    order: tuple[int, ...]


@dataclass(frozen=True)
class Plan:
    """Plan of an operation.

    `tile_numbers` are equal for devices that compute the same tile; `moved` are the operands to be resharded; `stacks`
    view each operand and the result as a stack of tiles (None if that is impossible); `nbytes` is the number of bytes
    sent, including those that combine a partial result.
    """

    operand_layouts: tuple[Layout, ...]
    result_layout: Layout
    result_shape: Shape
    places: tuple[TileBoxes, ...]
    tile_numbers: tuple[int, ...]
    moved: tuple[int, ...]
    stacks: tuple[StackView, ...] | None
    nbytes: int

    @cached_property
    def first_devices(self) -> tuple[int, ...]:
        """Return the first device of each tile; only these compute if all devices share memory."""
        holders = self.result_layout.holders
        first = {self.tile_numbers[device]: device for device in reversed(holders)}
        return tuple(sorted(first.values()))

    @property
    def result_boxes(self) -> tuple[Box, ...]:
        """``[device]``: box of the result that each device computes."""
        return tuple(where.result for where in self.places)


@dataclass(frozen=True)
class _Request:
    factor_map: FactorMap
    shapes: tuple[Shape, ...]
    itemsizes: tuple[int, ...]
    layouts: tuple[Layout | None, ...]  # None for an operand that every device has
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
    """Choose how to divide each factor of an operation.

    The candidates for each factor are the operands' divisions, no division and, if operands disagree, coarser
    divisions. Of the combinations in which each device can compute its tile of the result, the one that sends the
    fewest bytes is chosen, including the bytes to combine a partial result. Ties are broken by the most tiles, then by
    the fewest bytes of the first operand, then of the second, and so on. If an operand is on one device and no other is
    divided or partial, that device computes alone. `layouts` holds None for an operand that every device has; `combine`
    is the operation that combines parts of operands. `result_shape` is required if a dimension of the result differs in
    size from its factor in the operands, or has no factor and a size other than 1.
    """
    if result_shape is None:
        sizes = {
            label: size
            for labels, shape in zip(factor_map.operands, shapes, strict=True)
            for label, size in zip(labels, shape, strict=True)
        }
        result_shape = tuple(1 if label is None else sizes[label] for label in factor_map.result)
    request = _Request(factor_map, shapes, itemsizes, layouts, result_shape, result_itemsize, combine)
    chosen = _on_one_device(request) or min(_choices(request), key=lambda choice: choice[0])
    (nbytes, *_), layouts_used, result_layout = chosen
    operand_layouts, result_layout = tuple(map(shared, layouts_used)), shared(result_layout)
    return Plan(
        operand_layouts,
        result_layout,
        result_shape,
        _places(operand_layouts, shapes, result_layout, result_shape),
        _tile_numbers(result_layout, operand_layouts),
        tuple(n for n, (given, on) in enumerate(zip(layouts, operand_layouts, strict=True)) if given not in (None, on)),
        _stacks(request, operand_layouts, result_layout),
        nbytes,
    )


Choice = tuple[tuple[int, ...], tuple[Layout, ...], Layout]


def _on_one_device(request: _Request) -> Choice | None:
    """Return layouts on the largest one-device operand's device; None without one, or if one is divided or partial."""
    sizes = [math.prod(shape) * size for shape, size in zip(request.shapes, request.itemsizes, strict=True)]
    given = [(size, layout) for size, layout in zip(sizes, request.layouts, strict=True) if layout is not None]
    on_one = [(size, layout.only) for size, layout in given if layout.only is not None]
    if not on_one or not all(layout.only is not None or layout.is_replicated for _, layout in given):
        return None
    _, device = max(on_one, key=lambda item: item[0])
    shapes = (*request.shapes, request.result_shape)
    *on, result = (Layout(request.num_devices, (WHOLE,) * len(shape), only=device) for shape in shapes)
    return (sum(_operand_bytes(request, on)),), tuple(on), result


def _choices(request: _Request) -> Iterator[Choice]:
    for kept in _kept_partial(request):
        parts = next((layout.parts for number in kept if (layout := request.layouts[number])), WHOLE)
        for assignment in _assignments(request, parts):
            on = [
                Layout(request.num_devices, _cuts(labels, assignment), parts if number in kept else WHOLE)
                for number, labels in enumerate(request.factor_map.operands)
            ]
            reduced = tuple(assignment.get(factor, WHOLE) for factor in request.factor_map.reduced)
            result = Layout(request.num_devices, _cuts(request.factor_map.result, assignment), joint((parts, *reduced)))
            moved = _operand_bytes(request, on)
            combining = moved_bytes(request.result_shape, request.result_itemsize, result, result.without_parts())
            tiles = math.prod(cut.count for cut in assignment.values())
            yield (sum(moved) + combining, -tiles, *moved), tuple(on), result


def _kept_partial(request: _Request) -> Iterator[frozenset[int]]:
    rule, combine = request.factor_map, request.combine
    if combine not in rule.linear_ops or (rule.reduced and combine is not rule.combine):
        yield frozenset()
        return
    partial = frozenset(n for n, layout in enumerate(request.layouts) if layout is not None and layout.is_partial)
    for together in rule.linear:
        parts = {layout.parts for n in together if (layout := request.layouts[n]) is not None and layout.is_partial}
        if together <= partial and len(parts) == 1:
            yield together
    yield frozenset()


def _assignments(request: _Request, parts: Cut) -> Iterator[Assignment]:
    """Yield divisions of the factors in which each combination of tiles and parts is on some device."""
    candidates = _candidates(request, with_coarser=True)
    if math.prod(map(len, candidates.values())) > _MOST_CHOICES:
        candidates = _candidates(request, with_coarser=False)
    if math.prod(map(len, candidates.values())) > _MOST_CHOICES:
        yield from _leading(candidates, parts)
        return
    for cuts in itertools.product(*candidates.values()):
        if covers((parts, *cuts)):
            yield dict(zip(candidates, cuts, strict=True))


def _candidates(request: _Request, *, with_coarser: bool) -> dict[Factor, list[Cut]]:
    found: dict[Factor, dict[Cut, None]] = {}
    for labels, layout in zip(request.factor_map.operands, request.layouts, strict=True):
        for label, cut in zip(labels, layout.cuts, strict=True) if layout else ():
            if label is not None and label not in request.factor_map.whole and cut.count > 1:
                found.setdefault(label, {})[cut] = None
    conflict = any(len(cuts) > 1 for cuts in found.values()) or not covers(tuple(c for f in found.values() for c in f))
    if with_coarser and conflict:
        for cuts in found.values():
            for cut in list(cuts):
                cuts.update((coarser(cut, count), None) for count in divisors(cut.count))
    return {factor: [*dict.fromkeys([*cuts, WHOLE])] for factor, cuts in found.items()}


def _leading(candidates: dict[Factor, list[Cut]], parts: Cut) -> Iterator[Assignment]:
    """Yield two assignments: each factor's first candidate that is compatible with earlier ones, and no divisions."""
    taken: Assignment = {}
    for factor, cuts in candidates.items():
        taken[factor] = next(cut for cut in cuts if covers((parts, *taken.values(), cut)))
    yield taken
    yield dict.fromkeys(candidates, WHOLE)


def _cuts(labels: Labels, assignment: Assignment) -> tuple[Cut, ...]:
    return tuple(assignment.get(label, WHOLE) for label in labels)


def _operand_bytes(request: _Request, targets: Sequence[Layout]) -> list[int]:
    return [
        moved_bytes(shape, itemsize, source, target) if source is not None else 0
        for shape, itemsize, source, target in zip(
            request.shapes, request.itemsizes, request.layouts, targets, strict=True
        )
    ]


def _places(
    layouts: tuple[Layout, ...], shapes: tuple[Shape, ...], result: Layout, result_shape: Shape
) -> tuple[TileBoxes, ...]:
    columns = [layout.boxes(shape) for layout, shape in zip(layouts, shapes, strict=True)]
    return tuple(
        TileBoxes(device, tuple(column[device] for column in columns), box, result.parts.tile_of(device))
        for device, box in enumerate(result.boxes(result_shape))
    )


def _tile_numbers(result: Layout, operands: tuple[Layout, ...]) -> tuple[int, ...]:
    """Return the number of each device's tile; devices with the same tiles of all arrays have the same number."""
    layouts = (result, *operands)
    numbers: dict[tuple[int, ...], int] = {}
    return tuple(
        numbers.setdefault(
            tuple(cut.tile_of(device) for layout in layouts for cut in (layout.parts, *layout.cuts)), len(numbers)
        )
        for device in range(result.num_devices)
    )


def _stacks(request: _Request, on: tuple[Layout, ...], result: Layout) -> tuple[StackView, ...] | None:
    """Return views with matching tiles at one index; None for unequal tiles, partial operands or a single device."""
    rule = request.factor_map
    if any(layout.is_partial for layout in on) or result.only is not None:
        return None
    labels, shapes = (*rule.operands, rule.result), (*request.shapes, request.result_shape)
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


def _stack(
    sides: Sequence[tuple[Factor, int, Cut]], counts: Mapping[Factor, int], parts: Sequence[Factor]
) -> StackView:
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
    return StackView(tuple(shape), (*(at[factor] for factor in counts), *tile))
