"""Rings as paths over the chips that they visit.

Hops over one link are lines between chips. A hop along z leaves its panel as a short stroke with a knob: to the upper
right for the slice of the next z, to the lower left for that before. A hop that passes other chips is a dashed arc.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ringlet.tpu.drawing import chips
from ringlet.tpu.drawing.hops import Coordinate, Hop, HopKind, ring_hops
from ringlet.tpu.drawing.panel_layout import Layout
from ringlet.tpu.drawing.scene import LONG, RING, Curves, Discs, Item, Lines, Point
from ringlet.tpu.drawing.subject import Integers, Subject

__all__ = ["draw_rings", "hops_of", "shows_rings"]

_SMALLEST = 6  # pixels of a chip below which a path is a blur


def shows_rings(layout: Layout) -> bool:
    """Whether chips are large enough for paths over them."""
    return layout.size >= _SMALLEST


def hops_of(subject: Subject, rings: Sequence[Integers]) -> list[list[Hop]]:
    """Give the hops of each ring."""
    return [ring_hops(ring, subject.periods) for ring in rings]


def draw_rings(subject: Subject, layout: Layout, hops: Sequence[Sequence[Hop]]) -> Iterator[Item]:
    """Draw rings, given as their hops; nothing if chips are too small."""
    if not shows_rings(layout):
        return
    paths = _Paths(subject, layout)
    for ring in hops:
        paths.add(ring)
    width = 2.0 if layout.size >= 18 else 1.2 if layout.size >= 8 else 0.8
    style = type(RING)(f"ring{int(width * 10)}", stroke=RING.stroke, width=width)
    knob = type(RING)("knob", fill=RING.stroke)
    far_knob = type(LONG)("far", fill=LONG.stroke)
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
    """The shapes of rings, as they are found hop by hop."""

    subject: Subject
    layout: Layout
    lines: list[list[Point]] = field(default_factory=list)
    arcs: list[tuple[Point, Point, Point]] = field(default_factory=list)
    far_lines: list[list[Point]] = field(default_factory=list)
    far_knobs: list[Point] = field(default_factory=list)
    knobs: list[Point] = field(default_factory=list)
    starts: list[Point] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.panel_of = {z: panel for panel, z in enumerate(self.layout.slices)}

    def add(self, ring: Sequence[Hop]) -> None:
        """Add the hops of one ring."""
        if ring:
            self.starts += [point for point in [self.node(ring[0].source)] if point]
        end: Coordinate | None = None
        for hop in ring:
            start, stop = self.node(hop.source), self.node(hop.target)
            if hop.kind in (HopKind.STAY, HopKind.STEP):
                if start and stop:
                    self.go_on(start, stop, joins=hop.source == end)
                end = hop.target if start and stop else None
                continue
            end = None
            if hop.kind is HopKind.WRAP:
                self.leave_edge(hop.source, hop.axis, hop.direction)
                self.leave_edge(hop.target, hop.axis, -hop.direction)
            elif hop.kind is HopKind.LAYER:
                self.leave_slice(start, hop.direction, self.lines, self.knobs)
                self.leave_slice(stop, -hop.direction, self.lines, self.knobs)
            else:
                self.pass_chips(hop, start, stop)

    def node(self, core: Coordinate) -> Point | None:
        """Where paths touch a core; None if it is not in the picture."""
        if core[2] not in self.panel_of or not self.layout.is_drawn(core[0], core[1]):
            return None
        return chips.node(self.subject, self.layout, core, self.panel_of[core[2]])

    def go_on(self, start: Point, stop: Point, joins: bool) -> None:
        """Draw a line, as part of the last one if that ends where it begins."""
        if joins and self.lines:
            self.lines[-1].append(stop)
        else:
            self.lines.append([start, stop])

    def leave_edge(self, core: Coordinate, axis: int, outwards: int) -> None:
        """Draw the visible end of a hop that wraps round."""
        point = self.node(core)
        if point is None:
            return
        _, tip = chips.stub(self.layout, (core[0], core[1]), self.panel_of[core[2]], axis, outwards=outwards)
        tip = (tip[0], point[1]) if axis == 0 else (point[0], tip[1])
        self.lines.append([point, tip])

    def leave_slice(self, point: Point | None, direction: int, lines: list[list[Point]], knobs: list[Point]) -> None:
        """Draw a stroke to the slice of the next z or of the one before."""
        if point is None:
            return
        length = direction * max(2.0, 0.24 * self.layout.size)
        tip = (point[0] + length, point[1] - length)
        lines.append([point, tip])
        knobs.append(tip)

    def pass_chips(self, hop: Hop, start: Point | None, stop: Point | None) -> None:
        """Draw an arc within the slice, or strokes out of it at both ends."""
        if hop.source[2] != hop.target[2]:
            direction = 1 if hop.target[2] > hop.source[2] else -1
            self.leave_slice(start, direction, self.far_lines, self.far_knobs)
            self.leave_slice(stop, -direction, self.far_lines, self.far_knobs)
        elif (
            start
            and stop
            and any(
                abs(there - here) != abs(way) for here, there, way in zip(hop.source, hop.target, hop.way, strict=False)
            )
        ):
            self.far_lines += self.way_round(hop, start, stop)
        elif start and stop:
            across, down = stop[0] - start[0], stop[1] - start[1]
            middle = (start[0] + across / 2 - 0.18 * down, start[1] + down / 2 + 0.18 * across)
            self.arcs.append((start, middle, stop))

    def way_round(self, hop: Hop, start: Point, stop: Point) -> list[list[Point]]:
        """The way along x and then along y, out of one edge and in at the other where that is shorter."""
        panel = self.panel_of[hop.source[2]]
        corner = (stop[0], start[1])
        return [
            *self.along(0, panel, hop.way[0], start, corner),
            *self.along(1, panel, hop.way[1], corner, stop),
        ]

    def along(self, axis: int, panel: int, way: int, start: Point, stop: Point) -> list[list[Point]]:
        """Lines along one axis, which go out of the panel where they would have to turn."""
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
