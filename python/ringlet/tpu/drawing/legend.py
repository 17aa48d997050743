"""Legend of a drawing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from ringlet.tpu.drawing.chips import label_size
from ringlet.tpu.drawing.colours import CATEGORIES, colour_styles, is_gradient
from ringlet.tpu.drawing.hops import Hop, HopKind
from ringlet.tpu.drawing.link_loads import chip_styles
from ringlet.tpu.drawing.panel_layout import Layout
from ringlet.tpu.drawing.rings import shows_rings
from ringlet.tpu.drawing.scene import (
    CHIP,
    HOST,
    LOADS,
    LONG,
    MISSING,
    RING,
    STUB,
    WORDS,
    Boxes,
    Item,
    Lines,
    Style,
    Words,
)
from ringlet.tpu.drawing.subject import Subject
from ringlet.tpu.units import format_bytes

_ROW = 17
_LEFT = 16
_SWATCH = 26
_SIDE = 11


@dataclass(frozen=True)
class LegendRow:
    """A row of the legend: sample styles and text."""

    words: str
    fills: Sequence[Style] = field(default=())
    stroke: Style | None = None


def legend_rows(subject: Subject, layout: Layout, hops: Sequence[Sequence[Hop]]) -> Iterator[LegendRow]:
    """Yield the legend rows for the elements of the drawing."""
    yield from _chip_rows(subject, layout)
    if layout.gap >= 2:
        yield LegendRow("outline: the chips of one host", stroke=HOST)
    elif layout.gap:
        yield LegendRow("the chips of one host stand together")
    yield LegendRow(wraps_in_words(subject), stroke=STUB if layout.has_links and any(subject.wrap[:2]) else None)
    yield from _ring_rows(subject, layout, hops)
    if subject.loads is not None:
        yield from _load_rows(subject, layout)
    shown = len(layout.columns), len(layout.rows), len(layout.slices)
    yield from map(LegendRow, left_out(subject.shape, shown))


def _chip_rows(subject: Subject, layout: Layout) -> Iterator[LegendRow]:
    if subject.num_replicas and subject.loads is None:
        yield _replica_row(subject)
    if label_size(subject, layout):
        yield LegendRow(labels_in_words(subject))
    if subject.num_replicas and ((subject.replica < 0) & (subject.task >= 0)).any():
        yield LegendRow(f"a {subject.unit} without a replica", fills=(CHIP,))
    if (subject.task < 0).any():
        yield LegendRow("missing: no device there", stroke=MISSING)


def labels_in_words(subject: Subject) -> str:
    """Return a description of the labels of chips and cores."""
    if subject.num_replicas == 0:
        return "a:b is device b of host a"
    return "a.b is logical core b of replica a" if subject.num_logical_cores > 1 else "numbers: replicas"


def _replica_row(subject: Subject) -> LegendRow:
    styles, count = colour_styles(subject), subject.num_replicas
    if is_gradient(subject):
        return LegendRow(f"colour: the replica, from 0 to {count - 1:,}", fills=styles)
    if count > len(CATEGORIES):
        return LegendRow("colour: a replica; those that touch differ", fills=styles)
    return LegendRow("colour: the replica" + (f", from 0 to {count - 1}" if count > 1 else ""), styles[:count])


def _ring_rows(subject: Subject, layout: Layout, hops: Sequence[Sequence[Hop]]) -> Iterator[LegendRow]:
    if not any(hops):
        return
    if not shows_rings(layout):
        yield LegendRow(f"{ring_in_words(subject, hops)} (not drawn at this size)")
        return
    yield LegendRow(ring_in_words(subject, hops), stroke=RING)
    kinds = {hop.kind for ring in hops for hop in ring}
    far_along_z = any(hop.kind is HopKind.LONG and hop.source[2] != hop.target[2] for ring in hops for hop in ring)
    if HopKind.LONG in kinds:
        yield LegendRow("a hop over more than one link", stroke=LONG)
    if HopKind.LAYER in kinds or far_along_z:
        yield LegendRow(
            "strokes with a knob leave the slice: to the upper right for z + 1, to the lower left for z - 1"
        )


def ring_in_words(subject: Subject, hops: Sequence[Sequence[Hop]]) -> str:
    """Return a description of the rings and the length of their hops."""
    core = "" if subject.num_logical_cores == 1 else ", logical core 0"
    over_cores = len(hops) > 1 or subject.num_replicas == 1
    what = f"path: the ring over the {f'{subject.unit}s of each replica' if over_cores else f'replicas{core}'}"
    links = Counter(hop.links for ring in hops for hop in ring if hop.links)
    if not links:
        return what
    if set(links) == {1}:
        return f"{what}; every hop is one link"
    far = sum(count for number, count in links.items() if number > 1)
    return f"{what}; {far:,} of {sum(links.values()):,} hops are over more than one link, the longest over {max(links)}"


def wraps_in_words(subject: Subject) -> str:
    """Return a description of the axis directions and the wrapped axes."""
    names = [name for name, wraps in zip("xyz", subject.wrap, strict=True) if wraps]
    twisted = ", twisted" if any(sum(step != 0 for step in period) > 1 for period in subject.periods) else ""
    wraps = f"wraps round along {', '.join(names)}{twisted}" if names else "no axis wraps round"
    return f"x goes right, y down; {wraps}"


def _load_rows(subject: Subject, layout: Layout) -> Iterator[LegendRow]:
    if subject.loads is None:
        return
    fifth = subject.loads.highest / len(LOADS)
    if not layout.has_links:
        if subject.loads.highest:
            yield LegendRow(
                f"colour: load of the busiest link of a chip, in fifths of {format_bytes(subject.loads.highest)}",
                fills=tuple(chip_styles()),
            )
    else:
        for number, style in enumerate(LOADS, 1):
            if subject.loads.highest:
                yield LegendRow(f"up to {format_bytes(fifth * number)} over a link", stroke=style)
        if subject.loads.is_along_z:
            yield LegendRow("strokes at the upper right corner of chips: the link to z + 1")
    yield LegendRow(loads_in_words(subject))


def loads_in_words(subject: Subject) -> str:
    """Return a description of the busiest link, or the statement that no link is used."""
    loads = subject.loads
    if loads is None or loads.highest == 0:
        return "no link is used"
    # Loads that differ only by rounding count as equal: sums depend on the order of their terms.
    at, *others = np.flatnonzero(loads.amount >= loads.highest * (1 - 1e-9)).tolist()
    source, target = (f"({', '.join(map(str, chips[at].tolist()))})" for chips in (loads.source, loads.target))
    words = f"busiest: {source} to {target} with {format_bytes(loads.highest)}"
    return f"{words}, and {len(others):,} more with as much" if others else words


def left_out(shape: tuple[int, int, int], shown: tuple[int, int, int]) -> Iterator[str]:
    """Yield descriptions of the omitted parts of a slice, by the number of shown columns, rows and layers."""
    if shown[:2] != shape[:2]:
        yield f"left out: all chips but those with x below {shown[0]} and y below {shown[1]}"
    if shown[2] < shape[2]:
        yield f"{shape[2] - shown[2]:,} of {shape[2]:,} slices are not shown; slices=[...] chooses them"


def draw_legend(rows: Sequence[LegendRow], top: int) -> Iterator[Item]:
    """Draw the legend from `top` downwards."""
    for number, row in enumerate(rows):
        y = top + number * _ROW
        middle, text_left = y + _ROW / 2, _LEFT + _SWATCH + 8
        if row.stroke is not None:
            yield Lines(row.stroke, [[(_LEFT, middle), (_LEFT + _SWATCH, middle)]])
        for i, style in enumerate(row.fills):
            yield Boxes(style, [(_LEFT + i * (_SIDE + 1), middle - _SIDE / 2, _SIDE, _SIDE)])
        text_left = max(text_left, _LEFT + len(row.fills) * (_SIDE + 1) + 8)
        if row.stroke is None and not row.fills:
            text_left = _LEFT
        yield Words(WORDS, [(text_left, middle + 4, row.words)], 11, "start")


def legend_height(rows: Sequence[LegendRow]) -> int:
    """Return the height of the legend in pixels."""
    return _ROW * len(rows) + 12
