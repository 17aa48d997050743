"""Drawing of link loads: lines, wider with more bytes, or chip colours if space is short."""

from __future__ import annotations

from collections.abc import Iterator

from ringlet.tpu.drawing.chips import places, stub
from ringlet.tpu.drawing.panel_layout import Layout
from ringlet.tpu.drawing.scene import LOADS, Boxes, Item, Lines, Point, Style
from ringlet.tpu.drawing.subject import Loads, Subject


def draw_link_loads(layout: Layout, loads: Loads) -> Iterator[Item]:
    """Draw both directions of each link side by side, each to the right of its direction of travel.

    A link along z is a stroke at the upper right corner of the chip that it leaves upwards, for the busier way.
    """
    panel_of = {z: panel for panel, z in enumerate(layout.slices)}
    strokes: dict[int, list[list[Point]]] = {}
    along_z: dict[tuple[int, int, int], int] = {}
    classes = loads.classes(len(LOADS))
    columns = (loads.source.tolist(), loads.target.tolist(), loads.axis.tolist(), loads.is_wrap.tolist())
    for level, source, target, axis, is_wrap in zip(classes.tolist(), *columns, strict=True):
        if axis == 2:
            lower = target if (target[2] < source[2]) != is_wrap else source
            along_z[(lower[0], lower[1], lower[2])] = max(level, along_z.get((lower[0], lower[1], lower[2]), 0))
        elif level:
            panels = (panel_of.get(source[2]), panel_of.get(target[2]))
            strokes.setdefault(level, []).extend(_strokes(layout, source, target, axis, is_wrap=is_wrap, panels=panels))
    for chip, level in along_z.items():
        if level and chip[2] in panel_of and layout.is_drawn(chip[0], chip[1]):
            strokes.setdefault(level, []).append(_corner_stroke(layout, chip, panel_of[chip[2]]))
    for level, lines in sorted(strokes.items()):
        yield Lines(_narrowed(LOADS[level - 1], layout), lines)


def _narrowed(style: Style, layout: Layout) -> Style:
    """Return the style with lines narrow enough for both directions."""
    most = 5.4 if layout.size >= 26 else 3.6 if layout.size >= 18 else 2.4
    return Style(style.name, stroke=style.stroke, width=max(1.0, style.width * most / LOADS[-1].width))


def _strokes(
    layout: Layout,
    source: list[int],
    target: list[int],
    axis: int,
    *,
    is_wrap: bool,
    panels: tuple[int | None, int | None],
) -> list[list[Point]]:
    """Return the lines of one link; its ends are in different panels only if the torus is twisted."""
    if not (layout.is_drawn(source[0], source[1]) and layout.is_drawn(target[0], target[1])):
        return []
    forwards = (target[axis] > source[axis]) != is_wrap
    # Shift to the right of the direction of travel: rightward links move down, downward links move left.
    shift = (1 if forwards == (axis == 0) else -1) * max(2.0, layout.size / 8)
    if is_wrap:
        outwards = 1 if forwards else -1
        return [
            stub(layout, (chip[0], chip[1]), panel, axis, outwards=way, shift=shift)
            for chip, panel, way in ((source, panels[0], outwards), (target, panels[1], -outwards))
            if panel is not None
        ]
    panel = panels[0]
    if panel is None:
        return []
    start, stop = layout.corner(source[0], source[1], panel), layout.corner(target[0], target[1], panel)
    half, low, high = layout.size / 2 + shift, min(start[axis], stop[axis]) + layout.size, max(start[axis], stop[axis])
    if axis == 0:
        return [[(low, start[1] + half), (high, start[1] + half)]]
    return [[(start[0] + half, low), (start[0] + half, high)]]


def _corner_stroke(layout: Layout, chip: tuple[int, int, int], panel: int) -> list[Point]:
    left, top = layout.corner(chip[0], chip[1], panel)
    right, length = left + layout.size, layout.gap * 0.6 + layout.size * 0.12
    return [(right - length / 2, top + length / 2), (right + length / 2, top - length / 2)]


def draw_chip_loads(subject: Subject, layout: Layout, loads: Loads) -> Iterator[Item]:
    """Colour each chip by the busiest link that leaves it."""
    level = loads.classes_of_chips(len(LOADS), subject.shape)
    boxes: dict[int, list[tuple[float, float, float, float]]] = {}
    for (x, y, z, _), (left, top) in places(subject, layout):
        if level[x, y, z]:
            boxes.setdefault(int(level[x, y, z]), []).append((left, top, layout.size, layout.size))
    styles = chip_styles()
    for number, found in sorted(boxes.items()):
        yield Boxes(styles[number - 1], found)


def chip_styles() -> list[Style]:
    """Return the chip styles of the load classes."""
    return [Style(f"chip-{style.name}", fill=style.stroke) for style in LOADS]
