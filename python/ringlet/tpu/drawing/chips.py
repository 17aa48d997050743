"""Drawing of chips, hosts and the links between chips."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ringlet.tpu.drawing.colours import colour_styles, replica_colours
from ringlet.tpu.drawing.panel_layout import Layout
from ringlet.tpu.drawing.scene import (
    CHIP,
    HOST,
    INK,
    LINK,
    MISSING,
    PLAIN_CHIP,
    STUB,
    WORDS,
    Boxes,
    Hint,
    Item,
    Lines,
    Point,
    Words,
)
from ringlet.tpu.drawing.subject import Subject

_MOST_HINTS = 512
_CORNER = 4
_SMALLEST_LETTER = 6

Place = tuple[int, int, int, int]


def places(subject: Subject, layout: Layout) -> Iterator[tuple[Place, tuple[int, int]]]:
    """Yield the coordinates x, y, z and the panel of every drawn chip, with its left and top edges."""
    for panel, z in enumerate(layout.slices):
        for y in range(len(layout.rows)):
            for x in range(len(layout.columns)):
                yield (x, y, z, panel), layout.corner(x, y, panel)


def draw_chips(subject: Subject, layout: Layout) -> Iterator[Item]:
    """Draw chips as squares divided into cores, in the colours of their replicas unless there are loads."""
    colours = replica_colours(subject) if subject.loads is None else None
    styles = colour_styles(subject)
    filled: dict[int, list[tuple[float, float, float, float]]] = {}
    outlines, missing, crosses = [], [], []
    part, is_small = layout.size / subject.cores, layout.size < 8
    for (x, y, z, _), (left, top) in places(subject, layout):
        if subject.host[x, y, z] < 0:
            missing.append((left, top, layout.size, layout.size))
            crosses += _cross(left, top, layout.size)
            continue
        if not is_small or colours is None or (subject.replica[x, y, z] < 0).any():
            outlines.append((left, top, layout.size, layout.size))
        for core, replica in enumerate(subject.replica[x, y, z].tolist()):
            if replica >= 0 and colours is not None:
                filled.setdefault(int(colours[replica]), []).append((left + core * part, top, part, layout.size))
    radius = _CORNER if layout.has_labels else 0
    yield Boxes(PLAIN_CHIP if is_small else CHIP, outlines, radius)
    if missing:
        yield Boxes(MISSING, missing, radius)
        yield Lines(MISSING, crosses)
    for colour, boxes in sorted(filled.items()):
        yield Boxes(styles[colour], boxes, radius if subject.cores == 1 else 0)
    if subject.cores > 1:
        yield from _core_borders(subject, layout)


def _core_borders(subject: Subject, layout: Layout) -> Iterator[Item]:
    part = layout.size / subject.cores
    borders, crosses = [], []
    for (x, y, z, _), (left, top) in places(subject, layout):
        cores = subject.task[x, y, z]
        if (cores < 0).all():
            continue
        borders += [[(left + k * part, top), (left + k * part, top + layout.size)] for k in range(1, subject.cores)]
        for core in np.flatnonzero(cores < 0).tolist():
            crosses += _cross(left + core * part, top, part, layout.size)
    if layout.size >= 8:
        yield Lines(CHIP, borders)
    if crosses:
        yield Lines(MISSING, crosses)


def _cross(left: float, top: float, width: float, height: float | None = None) -> list[list[tuple[float, float]]]:
    right, bottom = left + width, top + (height or width)
    return [[(left, top), (right, bottom)], [(left, bottom), (right, top)]]


def draw_hosts(subject: Subject, layout: Layout) -> Iterator[Item]:
    """Draw an outline around the chips of each host, or each chip if they form no rectangle; none in narrow gaps."""
    if layout.gap < 2:
        return
    off = layout.gap / 2 - 0.5 if layout.gap < 5 else layout.gap / 2 - 1
    boxes = []
    for panel, z in enumerate(layout.slices):
        host = subject.host[: len(layout.columns), : len(layout.rows), z]
        for number in np.unique(host[host >= 0]).tolist():
            for x0, y0, x1, y1 in rectangles(host == number):
                left, top = layout.corner(x0, y0, panel)
                right, bottom = layout.corner(x1, y1, panel)
                width, height = right - left + layout.size, bottom - top + layout.size
                boxes.append((left - off, top - off, width + 2 * off, height + 2 * off))
    yield Boxes(HOST, boxes, _CORNER + 2 if layout.has_labels else 0)


def rectangles(mask: np.ndarray) -> list[tuple[int, int, int, int]]:
    """Return the rectangle (x0, y0, x1, y1) that the chips of a mask fill, or each chip if they fill no rectangle."""
    x, y = np.nonzero(mask)
    x0, x1, y0, y1 = int(x.min()), int(x.max()), int(y.min()), int(y.max())
    if (x1 - x0 + 1) * (y1 - y0 + 1) == len(x):
        return [(x0, y0, x1, y1)]
    return [(a, b, a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)]


def draw_links(subject: Subject, layout: Layout) -> Iterator[Item]:
    """Draw the links along x and y; wrap links are dotted stubs beyond the chips at the edges."""
    if not layout.has_links:
        return
    columns, rows, half = len(layout.columns), len(layout.rows), layout.size / 2
    links: list[list[Point]] = []
    stubs: list[list[Point]] = []
    for (x, y, _, panel), (left, top) in places(subject, layout):
        if x + 1 < columns:
            right = layout.corner(x + 1, y, panel)[0]
            links.append([(left + layout.size, top + half), (right, top + half)])
        if y + 1 < rows:
            bottom = layout.corner(x, y + 1, panel)[1]
            links.append([(left + half, top + layout.size), (left + half, bottom)])
        for axis in (0, 1):
            if subject.wrap[axis] and (x, y)[axis] in (0, subject.shape[axis] - 1):
                stubs.append(stub(layout, (x, y), panel, axis, outwards=-1 if (x, y)[axis] == 0 else 1))
    yield Lines(LINK, links)
    if stubs:
        yield Lines(STUB, stubs)


def stub(
    layout: Layout, chip: tuple[int, int], panel: int, axis: int, *, outwards: int, shift: float = 0.0
) -> list[Point]:
    """Return the visible end of a wrap link: from the edge of a chip to beyond its host's outline."""
    left, top = layout.corner(*chip, panel)
    half, length = layout.size / 2, layout.gap + 3
    if axis == 0:
        x, y = left + half + outwards * half, top + half + shift
        return [(x, y), (x + outwards * length, y)]
    x, y = left + half + shift, top + half + outwards * half
    return [(x, y), (x, y + outwards * length)]


def node(subject: Subject, layout: Layout, core: Place, panel: int) -> tuple[float, float]:
    """Return the point at which paths touch a core: its middle in small chips, otherwise beside or below its label.

    The points of a chip's cores differ in height, so that paths along x over different cores do not coincide.
    """
    left, top = layout.corner(core[0], core[1], panel)
    part = layout.size / subject.cores
    across, down = (0.5, 0.5) if layout.size < 26 else (0.76, 0.72) if subject.cores == 1 else (0.9, 0.72)
    down += 0.2 * (core[3] - (subject.cores - 1) / 2)
    return left + (core[3] + across) * part, top + down * layout.size


def label_size(subject: Subject, layout: Layout) -> float:
    """Return the letter height in pixels at which the longest label fits; 0 if it would be illegible."""
    if not layout.has_labels:
        return 0.0
    if subject.core_assignment.size == 0:
        numbers = (subject.task.max(), subject.device.max())
    else:
        numbers = (subject.replica.max(), subject.logical_core.max() if subject.num_logical_cores > 1 else "")
    letters = len("".join(map(str, numbers))) + (numbers[1] != "")
    free = 3 if subject.cores == 1 else 6  # columns beside the label, used for paths along y
    size = min(11.0, (layout.size / subject.cores - free) / (0.6 * letters))
    return size if size >= _SMALLEST_LETTER else 0.0


def draw_labels(subject: Subject, layout: Layout) -> Iterator[Item]:
    """Draw the replica and logical core of each core, or its host and device."""
    size, part, centred = label_size(subject, layout), layout.size / subject.cores, layout.size < 26
    if size == 0:
        return
    labels = [
        (left + (core + (0.5 if centred else 0)) * part, top, label(subject, (x, y, z, core)))
        for (x, y, z, _), (left, top) in places(subject, layout)
        for core in range(subject.cores)
    ]
    down, right, anchor = (layout.size / 2 + size * 0.36, 0, "middle") if centred else (size + 1, 3, "start")
    yield Words(INK, [(x + right, y + down, text) for x, y, text in labels if text], size, anchor)


def label_boxes(subject: Subject, layout: Layout, panel: int) -> NDArray[np.float64]:
    """Return the left, top, right and bottom edges of the labels that paths avoid in one panel; none in small chips."""
    size, part = label_size(subject, layout), layout.size / subject.cores
    boxes = [
        (
            left + core * part,
            top,
            left + core * part + 4 + 0.6 * size * len(label(subject, (x, y, z, core))),
            top + size + 3,
        )
        for (x, y, z, place), (left, top) in places(subject, layout)
        for core in range(subject.cores)
        if place == panel and size and layout.size >= 26  # labels of smaller chips are centred; paths may cross them
    ]
    return np.array(boxes, np.float64).reshape(-1, 4)


def label(subject: Subject, core: tuple[int, int, int, int]) -> str:
    """Return the label of a core: replica and logical core, or host and device; empty for an unused core."""
    if subject.core_assignment.size == 0:
        return "" if subject.task[core] < 0 else f"{subject.task[core]}:{subject.device[core]}"
    if subject.replica[core] < 0:
        return ""
    if subject.num_logical_cores == 1:
        return str(subject.replica[core])
    return f"{subject.replica[core]}.{subject.logical_core[core]}"


def draw_edges(subject: Subject, layout: Layout) -> Iterator[Item]:
    """Draw the numbers of columns and rows, and z above each panel if the slice has several."""
    every = 1 if layout.size >= 18 else 4
    off = layout.gap + 6
    above, beside, titles = [], [], []
    for panel, z in enumerate(layout.slices):
        left, top = layout.origins[panel].tolist()
        above += [(left + int(at) + layout.size / 2, top - off, str(x)) for x, at in enumerate(layout.columns)][::every]
        rows = [(left - off, top + int(at) + layout.size / 2 + 3, str(y)) for y, at in enumerate(layout.rows)]
        beside += rows[::every]
        titles.append((left, top - off - 12, f"z = {z}"))
    yield Words(WORDS, above, 9)
    yield Words(WORDS, beside, 9, "end")
    if subject.shape[2] > 1:
        yield Words(INK, titles, 11, "start")


def draw_hints(subject: Subject, layout: Layout) -> Iterator[Item]:
    """Draw the tooltip of each chip, unless there are too many chips."""
    chips = list(places(subject, layout))
    if len(chips) <= _MOST_HINTS:
        size = layout.size
        yield Hint([((left, top, size, size), _described(subject, place[:3])) for place, (left, top) in chips])


def _described(subject: Subject, chip: tuple[int, int, int]) -> str:
    words = [f"chip ({', '.join(map(str, chip))})"]
    for core in range(subject.cores):
        place = (*chip, core)
        begin = f"core {core}: " if subject.unit == "core" else ""
        if subject.task[place] < 0:
            words.append(f"{begin}no device")
            continue
        what = f"{begin}/task:{subject.task[place]}/device:TPU:{subject.device[place]}"
        if subject.replica[place] >= 0:
            what += f", replica {subject.replica[place]}, logical core {subject.logical_core[place]}"
        words.append(what)
    return "\n".join(words)
