"""Drawing of a topology, an assignment or a cost as text.

With enough space, a chip is a label in the box of its host, rings are thick lines between labels, and loads are digits.
With less space, labels are in dense columns; with little space, each core, or each chip with loads, is one character.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from numpy.typing import ArrayLike

from ringlet.tpu.drawing.canvas import Canvas
from ringlet.tpu.drawing.colours import CATEGORIES, colour_styles, is_gradient
from ringlet.tpu.drawing.hops import Hop, HopKind, ring_hops
from ringlet.tpu.drawing.legend import labels_in_words, left_out, loads_in_words, ring_in_words, wraps_in_words
from ringlet.tpu.drawing.panel_layout import chosen_slices
from ringlet.tpu.drawing.panels import ClosePanel, Panel, TinyPanel, WidePanel
from ringlet.tpu.drawing.subject import Drawn, Subject, rings_of, subject_of
from ringlet.tpu.drawing.terminal import paint_of
from ringlet.tpu.units import format_bytes

# Maximum height of the panels, in lines. If exceeded, chips are drawn smaller; if still exceeded, slices are omitted.
_MOST_LINES = 60
_NARROWEST = 20
_BETWEEN_PANELS = 3
_TITLE_WIDTH = len("z = 10 to 19")


def text_lines(
    drawn: Drawn,
    loads: ArrayLike | None = None,
    rings: str = "auto",
    slices: Iterable[int] | None = None,
    *,
    width: int = 80,
    in_colours: bool = False,
) -> list[str]:
    """Return the lines of a drawing; other parameters as for `ringlet.tpu.drawing.text`."""
    if width < _NARROWEST:
        raise ValueError(f"width must be at least {_NARROWEST} characters, got width={width}")
    subject = subject_of(drawn, loads)
    hops = [ring_hops(ring, subject.periods) for ring in rings_of(subject, rings)]
    sheet = _sheet(subject, hops, chosen_slices(subject, slices), width, slices is None)
    lines = textwrap.wrap(subject.title, width)
    lines += sheet.canvas().lines(paint_of(colour_styles(subject)) if in_colours else None)
    for words in _legend(subject, hops, sheet):
        lines += textwrap.wrap(words, width, subsequent_indent="  ")
    return lines


@dataclass(frozen=True, eq=False)
class _Sheet:
    """Panels in rows, each of one slice or of several identical slices."""

    subject: Subject
    panel: Panel
    groups: tuple[tuple[int, ...], ...]
    across: int

    @property
    def num_slices(self) -> int:
        return sum(map(len, self.groups))

    @property
    def has_titles(self) -> bool:
        return self.subject.shape[2] > 1

    @property
    def block_height(self) -> int:
        return self.panel.height + (2 if self.has_titles else 0)

    @property
    def height(self) -> int:
        return math.ceil(len(self.groups) / self.across) * self.block_height

    def canvas(self) -> Canvas:
        step = max(self.panel.width, _TITLE_WIDTH) + _BETWEEN_PANELS
        canvas = Canvas(self.across * step, self.height)
        for number, group in enumerate(self.groups):
            left, top = number % self.across * step, number // self.across * self.block_height
            if self.has_titles:
                canvas.write(left, top, f"z = {group[0]}" + (f" to {group[-1]}" if len(group) > 1 else ""))
            canvas.paste(self.panel.draw(group[0]), left, top + self.has_titles)
        return canvas


def _sheet(
    subject: Subject, hops: Sequence[Sequence[Hop]], slices: tuple[int, ...], width: int, may_leave_out: bool
) -> _Sheet:
    """Return the largest rendering that fits; if none does, the smallest, without the parts that do not fit."""
    columns, rows = subject.shape[:2]
    most = _MOST_LINES if may_leave_out else math.inf
    if columns * 2 <= width:
        for panel in (WidePanel(subject, hops, columns), ClosePanel(subject, columns)):
            sheet = _in_rows(subject, panel, tuple((z,) for z in slices), width)
            if panel.width <= width and sheet.height <= most:
                return sheet
    cores = 1 if subject.loads is not None else subject.cores
    tiny = TinyPanel(subject, min(columns, width // cores), min(rows, _MOST_LINES))
    sheet = _in_rows(subject, tiny, _identical_slices(tiny, slices), width)
    if sheet.height <= most:
        return sheet
    kept = max(1, _MOST_LINES // sheet.block_height) * sheet.across
    return _Sheet(subject, tiny, sheet.groups[:kept], sheet.across)


def _in_rows(subject: Subject, panel: Panel, groups: tuple[tuple[int, ...], ...], width: int) -> _Sheet:
    step = max(panel.width, _TITLE_WIDTH) + _BETWEEN_PANELS
    return _Sheet(subject, panel, groups, max(1, min(len(groups), (width + _BETWEEN_PANELS) // step)))


def _identical_slices(panel: Panel, slices: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Return groups of adjacent slices whose drawings are identical."""
    groups: list[tuple[int, ...]] = []
    last: list[str] = []
    for z in slices:
        lines = list(panel.draw(z).lines())
        if groups and lines == last and z == groups[-1][-1] + 1:
            groups[-1] += (z,)
        else:
            groups.append((z,))
        last = lines
    return tuple(groups)


def _legend(subject: Subject, hops: Sequence[Sequence[Hop]], sheet: _Sheet) -> Iterator[str]:
    is_wide, is_tiny = isinstance(sheet.panel, WidePanel), isinstance(sheet.panel, TinyPanel)
    yield _letters(subject) if is_tiny else labels_in_words(subject) + _unused(subject)
    notes = ["x: no device there"] if (subject.task < 0).any() else []
    notes += ["boxes: hosts"] if is_wide else []
    yield "; ".join([*notes, wraps_in_words(subject)])
    if any(hops):
        words = ring_in_words(subject, hops)
        kinds = {hop.kind for ring in hops for hop in ring}
        if not is_wide:
            words += "; not drawn at this size"
        elif HopKind.LAYER in kinds:
            words += "; ↗ leads to z + 1, ↙ to z - 1, ↕ both"
        if is_wide and HopKind.LONG in kinds:
            words += "; ! stands where a hop over more than one link begins or ends"
        yield words
    if subject.loads is not None:
        yield from _loads(subject, is_wide, is_tiny)
    panel = sheet.panel
    columns, rows = (panel.columns, panel.rows) if isinstance(panel, TinyPanel) else subject.shape[:2]
    yield from left_out(subject.shape, (columns, rows, sheet.num_slices))


def _letters(subject: Subject) -> str:
    if subject.loads is not None:
        return "digits: load of the busiest link of a chip"
    if subject.num_replicas == 0:
        return "letters: hosts, from a to z and again from a"
    unused = _unused(subject)
    if is_gradient(subject):
        return f"digits: tenths of the replicas, from 0 for the first{unused}"
    if subject.num_replicas <= len(CATEGORIES):
        return f"digits: replicas{unused}"
    return f"letters: replicas; those that touch differ{unused}"


def _unused(subject: Subject) -> str:
    is_one_unused = subject.num_replicas and ((subject.replica < 0) & (subject.task >= 0)).any()
    return f"; · is a {subject.unit} without a replica" if is_one_unused else ""


def _loads(subject: Subject, is_wide: bool, is_tiny: bool) -> Iterator[str]:
    loads = subject.loads
    if loads is not None and loads.highest and (is_wide or is_tiny):
        along_z = "; ↗ is before that to z + 1" if is_wide and loads.is_along_z else ""
        what = "1 to 9 between chips: the busier direction of a link" if is_wide else "1 to 9"
        yield f"{what}, in ninths of {format_bytes(loads.highest)}{along_z}"
    yield loads_in_words(subject)
