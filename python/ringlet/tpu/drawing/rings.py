"""Drawing of rings as paths over the chips that they visit.

Hops over one link are lines between chips, or lines from both chips outwards if the link wraps. A hop along z is a
short stroke with a disc at both of its chips: to the upper right towards z + 1, to the lower left towards z - 1. A hop
over several links is dashed: an arc, lines that end at the panel's edges if it wraps, or strokes as along z if the
chips differ in z.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ringlet.tpu.drawing import chips
from ringlet.tpu.drawing.hops import Coordinate, Hop, HopKind
from ringlet.tpu.drawing.panel_layout import Layout
from ringlet.tpu.drawing.scene import LONG, RING, Curves, Discs, Item, Lines, Point, Style
from ringlet.tpu.drawing.subject import Subject

_SMALLEST = 6  # minimum chip size in pixels for legible paths
# Bends of an arc, in multiples of its length; the first bend with the fewest points on labels is used.
_BENDS = (0.18, 0.1, -0.1, 0.04, -0.04, -0.18, 0.3, -0.3)


def shows_rings(layout: Layout) -> bool:
    """Return whether chips are large enough for paths over them."""
    return layout.size >= _SMALLEST


def draw_rings(subject: Subject, layout: Layout, hops: Sequence[Sequence[Hop]]) -> Iterator[Item]:
    """Draw rings, given as their hops, unless chips are too small."""
    if not shows_rings(layout):
        return
    paths = _Paths(subject, layout)
    for ring in hops:
        paths.add(ring)
    width = 2.0 if layout.size >= 18 else 1.2 if layout.size >= 8 else 0.8
    style = Style(f"ring{int(width * 10)}", stroke=RING.stroke, width=width)
    knob = Style("knob", fill=RING.stroke)
    far_knob = Style("far", fill=LONG.stroke)
    yield Lines(style, paths.lines)
    if paths.arcs:
        yield Curves(LONG, paths.arcs)
    if paths.far_lines:
        yield Lines(LONG, paths.far_lines)
        yield Discs(far_knob, paths.far_knobs, max(1.2, width))
    if paths.knobs:
        yield Discs(knob, paths.knobs, max(1.2, width))
    yield Discs(knob, paths.starts, 2.2 * width)


@dataclass
class _Paths:
    subject: Subject
    layout: Layout
    lines: list[list[Point]] = field(default_factory=list)
    arcs: list[tuple[Point, Point, Point]] = field(default_factory=list)
    far_lines: list[list[Point]] = field(default_factory=list)
    far_knobs: list[Point] = field(default_factory=list)
    knobs: list[Point] = field(default_factory=list)
    starts: list[Point] = field(default_factory=list)
    labels: dict[int, NDArray[np.float64]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.panel_of = {z: panel for panel, z in enumerate(self.layout.slices)}

    def add(self, ring: Sequence[Hop]) -> None:
        if ring:
            self.starts += [point for point in [self.node(ring[0].source)] if point]
        end: Coordinate | None = None
        for hop in ring:
            start, stop = self.node(hop.source), self.node(hop.target)
            if hop.kind in (HopKind.STAY, HopKind.STEP):
                if start and stop:
                    self.extend_line(start, stop, joins=hop.source == end)
                end = hop.target if start and stop else None
                continue
            end = None
            if hop.kind is HopKind.WRAP:
                self.draw_wrap_end(hop.source, hop.axis, hop.direction)
                self.draw_wrap_end(hop.target, hop.axis, -hop.direction)
            elif hop.kind is HopKind.LAYER:
                self.draw_exit(start, hop.direction, self.lines, self.knobs)
                self.draw_exit(stop, -hop.direction, self.lines, self.knobs)
            else:
                self.draw_long_hop(hop, start, stop)

    def node(self, core: Coordinate) -> Point | None:
        """Return the point where paths touch a core; None if it is not drawn."""
        if core[2] not in self.panel_of or not self.layout.is_drawn(core[0], core[1]):
            return None
        return chips.node(self.subject, self.layout, core, self.panel_of[core[2]])

    def extend_line(self, start: Point, stop: Point, joins: bool) -> None:
        if joins and self.lines:
            self.lines[-1].append(stop)
        else:
            self.lines.append([start, stop])

    def draw_wrap_end(self, core: Coordinate, axis: int, outwards: int) -> None:
        point = self.node(core)
        if point is None:
            return
        _, tip = chips.stub(self.layout, (core[0], core[1]), self.panel_of[core[2]], axis, outwards=outwards)
        tip = (tip[0], point[1]) if axis == 0 else (point[0], tip[1])
        self.lines.append([point, tip])

    def draw_exit(self, point: Point | None, direction: int, lines: list[list[Point]], knobs: list[Point]) -> None:
        if point is None:
            return
        length = direction * max(2.0, 0.24 * self.layout.size)
        tip = (point[0] + length, point[1] - length)
        lines.append([point, tip])
        knobs.append(tip)

    def draw_long_hop(self, hop: Hop, start: Point | None, stop: Point | None) -> None:
        """Draw an arc or a wrapped path within a panel, or strokes out of it at both ends."""
        if hop.source[2] != hop.target[2]:
            direction = 1 if hop.target[2] > hop.source[2] else -1
            self.draw_exit(start, direction, self.far_lines, self.far_knobs)
            self.draw_exit(stop, -direction, self.far_lines, self.far_knobs)
        elif start and stop:
            moves = zip(hop.source, hop.target, hop.way, strict=False)
            if any(abs(there - here) != abs(way) for here, there, way in moves):
                self.far_lines += self.wrapped_path(hop, start, stop)
            else:
                self.arcs.append(self.clear_arc(start, stop, self.panel_of[hop.source[2]]))

    def clear_arc(self, start: Point, stop: Point, panel: int) -> tuple[Point, Point, Point]:
        """Return the arc that overlaps labels least among arcs with different bends."""
        if panel not in self.labels:
            self.labels[panel] = chips.label_boxes(self.subject, self.layout, panel)
        boxes, along = self.labels[panel], np.linspace(0.0, 1.0, 48)
        across, down = stop[0] - start[0], stop[1] - start[1]
        found = []
        for bend in _BENDS:
            middle = (start[0] + across / 2 - bend * down, start[1] + down / 2 + bend * across)
            weights = np.stack([(1 - along) ** 2, 2 * along * (1 - along), along**2], 1)
            points = weights @ np.array([start, middle, stop])
            is_inside = (points[:, None] >= boxes[:, :2]) & (points[:, None] <= boxes[:, 2:])
            found.append((int(is_inside.all(2).sum()), middle))
        return start, min(found, key=lambda arc: arc[0])[1], stop

    def wrapped_path(self, hop: Hop, start: Point, stop: Point) -> list[list[Point]]:
        """Return the path along x, then y, which wraps at the edges if that is shorter."""
        panel = self.panel_of[hop.source[2]]
        corner = (stop[0], start[1])
        return [
            *self.along(0, panel, hop.way[0], start, corner),
            *self.along(1, panel, hop.way[1], corner, stop),
        ]

    def along(self, axis: int, panel: int, way: int, start: Point, stop: Point) -> list[list[Point]]:
        """Return a line along one axis, or two lines that end at the panel's edges if the path wraps."""
        if way == 0:
            return []
        if (stop[axis] > start[axis]) == (way > 0):
            return [[start, stop]]
        first, last = self.layout.corner(0, 0, panel)[axis], self.layout.corner(-1, -1, panel)[axis]
        edges = [first - self.layout.gap - 3, last + self.layout.size + self.layout.gap + 3]
        out, back = (edges[1], edges[0]) if way > 0 else (edges[0], edges[1])
        if axis == 0:
            return [[start, (out, start[1])], [(back, stop[1]), stop]]
        return [[start, (start[0], out)], [(stop[0], back), stop]]
