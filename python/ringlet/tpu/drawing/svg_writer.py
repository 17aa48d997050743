"""SVG writer: one self-contained element without scripts, fonts or addresses.

Colours of light mode are attributes, so they survive the removal of style sheets. The style sheet has the colours of
dark mode only, restricted to elements of this class: in a notebook a style sheet applies to the whole page.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

from ringlet.tpu.drawing.scene import CARD, Boxes, Discs, Hint, Item, Lines, Scene, Style, Words

_CLASS = "ringlet-tpu"
_FONT = "font-family=\"ui-sans-serif, system-ui, 'Segoe UI', 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif\""
# Characters that XML 1.0 cannot represent, even escaped.
_UNWRITABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def escape(text: str) -> str:
    """Return a string escaped for an XML element or quoted attribute; characters that XML excludes become U+FFFD."""
    return html.escape(_UNWRITABLE.sub("\ufffd", text))


def figure_of(picture: str, title: str, words: str) -> str:
    """Return an SVG picture as a ``<figure>`` for a notebook, with a collapsible description below."""
    return (
        f'<figure style="margin: 0">\n<div style="overflow-x: auto">\n{picture}</div>\n'
        f"<details><summary>{escape(title)}</summary><pre>{escape(words)}</pre></details>\n</figure>\n"
    )


def number(value: float) -> str:
    """Return a coordinate as short text, rounded to tenths of a pixel."""
    text = f"{value:.1f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def scene_to_svg(scene: Scene) -> str:
    """Return a scene as one ``<svg>`` element: well-formed and deterministic XML."""
    width, height = number(scene.width), number(scene.height)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{_CLASS}" role="img" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" {_FONT}>'
    )
    card = Boxes(CARD, [(0.5, 0.5, scene.width - 1, scene.height - 1)], 6)
    lines = [
        head,
        f"<title>{escape(scene.title)}</title>",
        f"<desc>{escape(scene.description)}</desc>",
        _style_sheet([CARD, *scene.styles()]),
        *(_element(item) for item in (card, *scene.items)),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _style_sheet(styles: Iterable[Style]) -> str:
    rules = []
    for style in dict.fromkeys(styles):
        dark = [f"fill:{style.fill[1]}"] if style.fill else []
        dark += [f"stroke:{style.stroke[1]}"] if style.stroke else []
        dark += [f"fill-opacity:{number(style.opacity[1])}"] if style.opacity[0] != style.opacity[1] else []
        rules.append(f".{_CLASS} .{style.name}{{{';'.join(dark)}}}")
    return "<style>@media (prefers-color-scheme:dark){\n" + "\n".join(rules) + "\n}</style>"


def _attributes(style: Style) -> str:
    """Return the class, the colours of light mode and the strokes of a style as attributes."""
    words = [f'class="{style.name}"', f'fill="{style.fill[0] if style.fill else "none"}"']
    if style.stroke:
        words += [f'stroke="{style.stroke[0]}"', f'stroke-width="{number(style.width)}"']
    if style.dash:
        words.append(f'stroke-dasharray="{number(style.dash[0])} {number(style.dash[1])}"')
    if style.opacity[0] != 1:
        words.append(f'fill-opacity="{number(style.opacity[0])}"')
    return " ".join(words)


def _element(item: Item) -> str:
    if isinstance(item, Hint):
        return _hints(item)
    if isinstance(item, Words):
        texts = "".join(f'<text x="{number(x)}" y="{number(y)}">{escape(text)}</text>' for x, y, text in item.texts)
        return f'<g {_attributes(item.style)} font-size="{number(item.size)}" text-anchor="{item.anchor}">{texts}</g>'
    if isinstance(item, Boxes):
        return _boxes(item)
    if isinstance(item, Discs):
        radius = number(item.radius)
        discs = "".join(f'<circle cx="{number(x)}" cy="{number(y)}" r="{radius}"/>' for x, y in item.centres)
        return f"<g {_attributes(item.style)}>{discs}</g>"
    if isinstance(item, Lines):
        data = "".join("M" + "L".join(f"{number(x)} {number(y)}" for x, y in line) for line in item.lines)
    else:
        data = "".join(
            f"M{number(ax)} {number(ay)}Q{number(bx)} {number(by)} {number(cx)} {number(cy)}"
            for (ax, ay), (bx, by), (cx, cy) in item.curves
        )
    return f'<path {_attributes(item.style)} stroke-linecap="round" stroke-linejoin="round" d="{data}"/>'


def _boxes(item: Boxes) -> str:
    """Return one path for all boxes, or one element each if corners are round."""
    if item.radius:
        radius = number(item.radius)
        rects = "".join(
            f'<rect x="{number(x)}" y="{number(y)}" width="{number(w)}" height="{number(h)}" rx="{radius}"/>'
            for x, y, w, h in item.boxes
        )
        return f"<g {_attributes(item.style)}>{rects}</g>"
    # Each box starts at the closing point of the previous box: relative moves are shorter than positions.
    steps: list[str] = []
    left, top = 0.0, 0.0
    for x, y, w, h in item.boxes:
        steps.append(f"m{number(x - left)} {number(y - top)}h{number(w)}v{number(h)}h{number(-w)}z")
        left, top = x, y
    return f'<path {_attributes(item.style)} d="{"".join(steps)}"/>'


def _hints(item: Hint) -> str:
    rects = "".join(
        f'<rect x="{number(x)}" y="{number(y)}" width="{number(w)}" height="{number(h)}">'
        f"<title>{escape(text)}</title></rect>"
        for (x, y, w, h), text in item.places
    )
    return f'<g fill-opacity="0">{rects}</g>'
