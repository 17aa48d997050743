"""Elements of a drawing, independent of the output format.

Coordinates are in pixels, x to the right and y down. A `Style` has colours for light mode and for dark mode.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

Point = tuple[float, float]
Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Style:
    """Fill and stroke of shapes, as pairs for light and dark mode; a colour of None draws nothing."""

    name: str
    fill: tuple[str, str] | None = None
    stroke: tuple[str, str] | None = None
    width: float = 1.0
    dash: tuple[float, float] | None = None
    opacity: tuple[float, float] = (1.0, 1.0)


# Names are CSS classes, which the style sheet restricts to elements of drawings.
CARD = Style("card", fill=("#ffffff", "#0d1117"), stroke=("#d0d7de", "#30363d"))
INK = Style("ink", fill=("#1f2328", "#e6edf3"))
WORDS = Style("words", fill=("#59636e", "#9198a1"))
CHIP = Style("chip", fill=("#eef1f4", "#21262d"), stroke=("#8c959f", "#6e7681"))
PLAIN_CHIP = Style("plain-chip", fill=("#d8dee4", "#30363d"))
MISSING = Style("missing", stroke=("#8c959f", "#6e7681"), dash=(3, 2))
HOST = Style("host", stroke=("#57606a", "#9aa4af"), width=1.2)
LINK = Style("link", stroke=("#c4ccd4", "#444c56"), width=1.2)
STUB = Style("stub", stroke=("#8c959f", "#6e7681"), width=1.2, dash=(2, 2))
RING = Style("ring", stroke=("#1f2328", "#e6edf3"), width=2.0)
LONG = Style("long", stroke=("#c2410c", "#ff9a62"), width=1.8, dash=(5, 3))

# One style per fifth of the highest load: wider with more load, and darker in light mode, lighter in dark mode.
LOADS = (
    Style("load1", stroke=("#f3c969", "#5f4315"), width=1.6),
    Style("load2", stroke=("#ec9f3c", "#8f5716"), width=2.4),
    Style("load3", stroke=("#d9701e", "#c2711f"), width=3.2),
    Style("load4", stroke=("#ad3f0f", "#f0a14a"), width=4.2),
    Style("load5", stroke=("#661f06", "#ffdca6"), width=5.4),
)


@dataclass(frozen=True)
class Boxes:
    """Rectangles of one style, each as left, top, width and height."""

    style: Style
    boxes: Sequence[Box]
    radius: float = 0.0


@dataclass(frozen=True)
class Lines:
    """Polylines of one style."""

    style: Style
    lines: Sequence[Sequence[Point]]


@dataclass(frozen=True)
class Curves:
    """Quadratic curves of one style: start, control point, end."""

    style: Style
    curves: Sequence[tuple[Point, Point, Point]]


@dataclass(frozen=True)
class Discs:
    """Circles of one style and radius."""

    style: Style
    centres: Sequence[Point]
    radius: float


@dataclass(frozen=True)
class Words:
    """Texts of one style and size, each with its anchor point on the baseline: start, middle or end."""

    style: Style
    texts: Sequence[tuple[float, float, str]]
    size: float = 11.0
    anchor: str = "middle"


@dataclass(frozen=True)
class Hint:
    """Tooltips of regions."""

    places: Sequence[tuple[Box, str]]


Item = Boxes | Lines | Curves | Discs | Words | Hint


@dataclass
class Scene:
    """Items in drawing order, on a card of `width` times `height` pixels."""

    width: float
    height: float
    title: str
    description: str
    items: list[Item] = field(default_factory=list)

    def styles(self) -> Iterator[Style]:
        """Yield each style in use once, in order of first use."""
        seen = {item.style.name: item.style for item in self.items if not isinstance(item, Hint)}
        yield from seen.values()
