"""Scene of a topology, an assignment or a cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from numpy.typing import ArrayLike

from ringlet.tpu.drawing import chips
from ringlet.tpu.drawing.hops import ring_hops
from ringlet.tpu.drawing.legend import draw_legend, legend_height, legend_rows
from ringlet.tpu.drawing.link_loads import draw_chip_loads, draw_link_loads
from ringlet.tpu.drawing.panel_layout import Layout, chosen_slices, lay_out
from ringlet.tpu.drawing.rings import draw_rings
from ringlet.tpu.drawing.scene import INK, Item, Scene, Words
from ringlet.tpu.drawing.subject import Drawn, Subject, rings_of, subject_of

WIDTH = 960

# Average width of an 11-pixel letter, rounded up so that no line is cut off.
_LETTER = 5.9
_NARROWEST = 200


def scene_of(
    drawn: Drawn,
    loads: ArrayLike | None = None,
    rings: str = "auto",
    slices: Iterable[int] | None = None,
    width: int = WIDTH,
) -> Scene:
    """Return the scene of a drawing; parameters as for `ringlet.tpu.drawing.svg`."""
    if width < _NARROWEST:
        raise ValueError(f"width must be at least {_NARROWEST} pixels, got width={width}")
    subject = subject_of(drawn, loads)
    hops = [ring_hops(ring, subject.periods) for ring in rings_of(subject, rings)]
    layout = lay_out(subject, chosen_slices(subject, slices), width)
    rows = list(legend_rows(subject, layout, hops))
    longest = max(len(subject.title) * 1.2, *(len(row.words) + 6 + 2 * len(row.fills) for row in rows))
    scene = Scene(
        width=max(layout.width, round(longest * _LETTER) + 40),
        height=layout.bottom + legend_height(rows),
        title=subject.title,
        description="; ".join(row.words for row in rows),
    )
    scene.items += [Words(INK, [(16, 24, subject.title)], 13, "start")]
    scene.items += _panels(subject, layout)
    scene.items += draw_rings(subject, layout, hops)
    scene.items += chips.draw_hints(subject, layout)
    scene.items += draw_legend(rows, layout.bottom)
    return scene


def _panels(subject: Subject, layout: Layout) -> Iterator[Item]:
    yield from chips.draw_links(subject, layout)
    yield from chips.draw_hosts(subject, layout)
    yield from chips.draw_chips(subject, layout)
    if subject.loads is not None:
        if layout.has_links:
            yield from draw_link_loads(layout, subject.loads)
        else:
            yield from draw_chip_loads(subject, layout, subject.loads)
    yield from chips.draw_labels(subject, layout)
    yield from chips.draw_edges(subject, layout)
