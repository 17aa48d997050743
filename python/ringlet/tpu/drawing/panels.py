"""Chips of equal z as text: boxes with rings and loads, dense columns, or one character per core."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from ringlet.tpu.drawing.canvas import Canvas
from ringlet.tpu.drawing.chips import label, rectangles
from ringlet.tpu.drawing.colours import CATEGORIES, is_gradient, replica_colours
from ringlet.tpu.drawing.hops import Coordinate, Hop, HopKind
from ringlet.tpu.drawing.subject import Subject

MISSING, UNUSED = "x", "·"

Chip = tuple[int, int, int]


def load_digits(subject: Subject) -> tuple[dict[tuple[Chip, int], int], dict[tuple[Chip, int, int], int]]:
    """Return two tables of link loads in the busier direction, in ninths of the highest load, rounded up.

    The first table has, by chip and axis, the loads of links to the next chip along the axis; wrap links only along z.
    The second has, by chip, axis and direction, the loads of wrap links along x and y. Both are empty without loads.
    """
    inside: dict[tuple[Chip, int], int] = {}
    edges: dict[tuple[Chip, int, int], int] = {}
    loads = subject.loads
    if loads is None or loads.highest == 0:
        return inside, edges
    digits = loads.classes(9).tolist()
    columns = (loads.source.tolist(), loads.target.tolist(), loads.axis.tolist(), loads.is_wrap.tolist())
    for digit, (sx, sy, sz), (tx, ty, tz), axis, is_wrap in zip(digits, *columns, strict=True):
        source, target = (sx, sy, sz), (tx, ty, tz)
        if is_wrap and axis < 2:
            way = 1 if source[axis] > target[axis] else -1
            for edge in ((source, axis, way), (target, axis, -way)):
                edges[edge] = max(digit, edges.get(edge, 0))
        else:
            lower = source if (target[axis] > source[axis]) != is_wrap else target
            inside[lower, axis] = max(digit, inside.get((lower, axis), 0))
    return inside, edges


class _Labelled:
    def __init__(self, subject: Subject, columns: int) -> None:
        self.subject, self.columns, self.rows = subject, columns, subject.shape[1]
        self.colours = None if subject.loads is not None else replica_colours(subject)

    def parts(self, x: int, y: int, z: int) -> Iterator[tuple[str, int | None]]:
        """Yield the label of each core of a chip, and its colour number or None."""
        for core in range(self.subject.cores):
            place = (x, y, z, core)
            replica = int(self.subject.replica[place])
            if self.subject.task[place] < 0:
                yield MISSING, None
            elif self.colours is None or replica < 0:
                yield label(self.subject, place) or UNUSED, None
            else:
                yield label(self.subject, place), int(self.colours[replica])

    @cached_property
    def longest(self) -> int:
        x, y, z, _ = self.subject.task.shape
        return max(
            sum(len(text) + 1 for text, _ in self.parts(i, j, k)) - 1
            for i in range(x) for j in range(y) for k in range(z)
        )  # fmt: skip


class WidePanel(_Labelled):
    """Labels in boxes of hosts, with rings as thick lines between them, or loads as digits."""

    def __init__(self, subject: Subject, hops: Sequence[Sequence[Hop]], columns: int) -> None:
        super().__init__(subject, columns)
        self.hops = [hop for ring in hops for hop in ring]
        self.inside, self.edges = load_digits(subject)
        self.marks = self._marks()
        self.label_width = self.longest + max(map(len, self.marks.values()), default=0)
        wraps = {hop.axis for hop in self.hops if hop.kind is HopKind.WRAP}
        wraps |= {axis for (_, axis, _), digit in self.edges.items() if digit}
        self.margin, self.top = int(0 in wraps), int(1 in wraps)

    @property
    def pitch(self) -> int:
        """Distance in characters from one column to the next."""
        return self.label_width + 3

    @property
    def width(self) -> int:
        """Width in characters."""
        return 2 * self.margin + self.columns * self.pitch + 1

    @property
    def height(self) -> int:
        """Height in lines."""
        return 2 * self.top + 2 * self.rows + 1

    def draw(self, z: int) -> Canvas:
        """Draw the chips at this z coordinate."""
        canvas = Canvas(self.width, self.height)
        self._boxes(canvas, z)
        spans = {(x, y): self._label(canvas, x, y, z) for x in range(self.columns) for y in range(self.rows)}
        self._loads(canvas, z)
        for hop in self.hops:
            self._hop(canvas, hop, z, spans)
        return canvas

    def _at(self, x: int, y: int) -> tuple[int, int]:
        return self.margin + 2 + x * self.pitch, self.top + 1 + 2 * y

    def _middle(self, x: int) -> int:
        """Return the column of vertical lines at a chip."""
        return self._at(x, 0)[0] + (self.label_width - 1) // 2

    def _boxes(self, canvas: Canvas, z: int) -> None:
        host = self.subject.host[: self.columns, :, z]
        for number in np.unique(host[host >= 0]).tolist():
            for x0, y0, x1, y1 in rectangles(host == number):
                left, top = self._at(x0, y0)
                right, bottom = self._at(x1 + 1, y1 + 1)
                canvas.box(left - 2, top - 1, right - 2, bottom - 1)

    def _label(self, canvas: Canvas, x: int, y: int, z: int) -> tuple[int, int]:
        """Write the label of a chip and return its start and end."""
        parts, mark = list(self.parts(x, y, z)), self.marks.get((x, y, z), "")
        length = sum(len(text) + 1 for text, _ in parts) - 1 + len(mark)
        left, row = self._at(x, y)
        begin = at = left + (self.label_width - length) // 2
        for text, colour in parts:
            canvas.write(at, row, text, colour)
            at += len(text) + 1
        canvas.write(at - 1, row, mark)
        return begin, begin + length

    def _marks(self) -> dict[Chip, str]:
        """Return marks after labels: hops along z, hops over several links, and loads of links to z + 1."""
        leaves: dict[Chip, set[int]] = {}
        far: set[Chip] = set()
        for hop in self.hops:
            ends = ((hop.source[:3], hop.direction), (hop.target[:3], -hop.direction))
            for chip, way in ends:
                if hop.kind is HopKind.LAYER:
                    leaves.setdefault(chip, set()).add(way)
                elif hop.kind is HopKind.LONG:
                    far.add(chip)
        arrows = {chip: "↕" if len(ways) > 1 else "↗" if 1 in ways else "↙" for chip, ways in leaves.items()}
        marks = {chip: arrows.get(chip, "") + ("!" if chip in far else "") for chip in leaves.keys() | far}
        marks |= {chip: f"↗{digit}" for (chip, axis), digit in self.inside.items() if axis == 2 and digit}
        return marks

    def _loads(self, canvas: Canvas, z: int) -> None:
        for ((x, y, layer), axis), digit in self.inside.items():
            if layer == z and digit and axis < 2 and x + (axis == 0) < self.columns:
                left, row = self._at(x + 1, y + 1)
                place = (left - 2, row - 2) if axis == 0 else (self._middle(x), row - 1)
                canvas.write(*place, str(digit))
        for ((x, y, layer), axis, way), digit in self.edges.items():
            if layer == z and digit and x < self.columns:
                across = (self.width - 1 if way > 0 else 0, self._at(x, y)[1])
                down = (self._middle(x), self.height - 1 if way > 0 else 0)
                canvas.write(*(across if axis == 0 else down), str(digit))

    def _hop(self, canvas: Canvas, hop: Hop, z: int, spans: dict[tuple[int, int], tuple[int, int]]) -> None:
        if hop.kind is HopKind.STEP and hop.source[2] == z:
            self._leave(canvas, hop.source, hop.axis, hop.direction, spans)
            self._leave(canvas, hop.target, hop.axis, -hop.direction, spans)
        elif hop.kind is HopKind.WRAP:
            for end, way in ((hop.source, hop.direction), (hop.target, -hop.direction)):
                if end[2] == z:
                    self._leave(canvas, end, hop.axis, way, spans)
                    if (end[0], end[1]) in spans:
                        row = self._at(end[0], end[1])[1]
                        edge = self.width - 1 if way > 0 else 0
                        foot = self.height - 1 if way > 0 else 0
                        draw = canvas.thick_across if hop.axis == 0 else canvas.thick_down
                        draw(*((edge, row) if hop.axis == 0 else (self._middle(end[0]), foot)))

    def _leave(
        self, canvas: Canvas, core: Coordinate, axis: int, way: int, spans: dict[tuple[int, int], tuple[int, int]]
    ) -> None:
        """Draw a thick line from a label to the border of its cell."""
        if (core[0], core[1]) not in spans:
            return
        left, row = self._at(core[0], core[1])
        begin, end = spans[core[0], core[1]]
        if axis == 1:
            canvas.thick_down(self._middle(core[0]), row + way)
            return
        for x in range(end, left + self.pitch - 1) if way > 0 else range(left - 2, begin):
            canvas.thick_across(x, row)


class ClosePanel(_Labelled):
    """Labels in dense columns."""

    @property
    def width(self) -> int:
        """Width in characters."""
        return self.columns * (self.longest + 1) - 1

    @property
    def height(self) -> int:
        """Height in lines."""
        return self.rows

    def draw(self, z: int) -> Canvas:
        """Draw the chips at this z coordinate."""
        canvas = Canvas(self.width, self.height)
        for x in range(self.columns):
            for y in range(self.rows):
                parts = list(self.parts(x, y, z))
                at = (x + 1) * (self.longest + 1) - sum(len(text) + 1 for text, _ in parts)
                for text, colour in parts:
                    canvas.write(at, y, text, colour)
                    at += len(text) + 1
        return canvas


class TinyPanel:
    """One character per core, or per chip if there are loads."""

    def __init__(self, subject: Subject, columns: int, rows: int) -> None:
        self.subject, self.columns, self.rows = subject, columns, rows
        self.cores = 1 if subject.loads is not None else subject.cores
        self.colours = replica_colours(subject)
        # Load of the busiest link that leaves each chip, from 0 to 9.
        self.busy = None if subject.loads is None else subject.loads.classes_of_chips(9, subject.shape)

    @property
    def width(self) -> int:
        """Width in characters."""
        return self.columns * self.cores

    @property
    def height(self) -> int:
        """Height in lines."""
        return self.rows

    def draw(self, z: int) -> Canvas:
        """Draw the chips at this z coordinate."""
        canvas = Canvas(self.width, self.height)
        for x in range(self.columns):
            for y in range(self.rows):
                for core in range(self.cores):
                    canvas.write(x * self.cores + core, y, *self._letter((x, y, z, core)))
        return canvas

    def _letter(self, place: Coordinate) -> tuple[str, int | None]:
        task, replica = int(self.subject.task[place]), int(self.subject.replica[place])
        if task < 0:
            return MISSING, None
        if self.busy is not None:
            return str(self.busy[place[:3]]), None
        if self.subject.num_replicas == 0:
            return chr(ord("a") + task % 26), None
        if replica < 0:
            return UNUSED, None
        colour = int(self.colours[replica])
        if is_gradient(self.subject):
            return str(replica * 10 // self.subject.num_replicas), colour
        return str(replica) if self.subject.num_replicas <= len(CATEGORIES) else chr(ord("A") + colour), colour


Panel = WidePanel | ClosePanel | TinyPanel
