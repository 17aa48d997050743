"""Rendering of a scene with matplotlib."""

from __future__ import annotations

from typing import Any

from ringlet.tpu.drawing.scene import CARD, Boxes, Curves, Discs, Hint, Item, Lines, Scene, Style, Words

_DPI = 100
_POINTS = 72 / _DPI  # points per pixel


def scene_to_axes(scene: Scene, axes: Any = None) -> Any:
    """Draw a scene on axes without clearing them; default: new axes of the scene's size."""
    if axes is None:
        axes = _new_axes(scene)
    theme = _theme(axes.figure)
    axes.set_xlim(0, scene.width)
    axes.set_ylim(scene.height, 0)
    axes.set_aspect("equal")
    axes.set_axis_off()
    card = Boxes(CARD, [(0.5, 0.5, scene.width - 1, scene.height - 1)])
    for order, item in enumerate([card, *scene.items], 1):
        _add(axes, item, theme, order)
    return axes


def _new_axes(scene: Scene) -> Any:
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ModuleNotFoundError(
            "plot() requires matplotlib, which is not installed: pip install 'ringlet[plot]'. Without it, draw() "
            "prints text, and ringlet.tpu.drawing.svg() returns SVG."
        ) from None
    figure = pyplot.figure(figsize=(scene.width / _DPI, scene.height / _DPI), dpi=_DPI)
    return figure.add_axes((0, 0, 1, 1))


def _theme(figure: Any) -> int:
    """Return the colour scheme: 0 for a light background, 1 for a dark background."""
    from matplotlib.colors import to_rgb

    return int(sum(to_rgb(figure.get_facecolor())) < 1.5)


def _add(axes: Any, item: Item, theme: int, order: int) -> None:
    from matplotlib.collections import EllipseCollection, LineCollection, PathCollection, PolyCollection
    from matplotlib.path import Path

    if isinstance(item, Hint):
        return
    if isinstance(item, Words):
        _add_words(axes, item, theme, order)
        return
    look = _look(item.style, theme) | {"zorder": order}
    if isinstance(item, Boxes):
        corners = [[(x, y), (x + w, y), (x + w, y + h), (x, y + h)] for x, y, w, h in item.boxes]
        axes.add_collection(PolyCollection(corners, **look), autolim=False)
    elif isinstance(item, Lines):
        del look["facecolors"]
        axes.add_collection(LineCollection(item.lines, capstyle="round", **look), autolim=False)
    elif isinstance(item, Curves):
        codes = [Path.MOVETO, Path.CURVE3, Path.CURVE3]
        axes.add_collection(PathCollection([Path(curve, codes) for curve in item.curves], **look), autolim=False)
    elif isinstance(item, Discs):
        sides = [2 * item.radius] * len(item.centres)
        discs = EllipseCollection(
            sides, sides, [0] * len(sides), units="xy", offsets=item.centres, offset_transform=axes.transData, **look
        )
        axes.add_collection(discs, autolim=False)


def _look(style: Style, theme: int) -> dict[str, Any]:
    from matplotlib.colors import to_rgba

    opacity = style.opacity[theme]
    look: dict[str, Any] = {
        "facecolors": [to_rgba(style.fill[theme], opacity)] if style.fill else "none",
        "edgecolors": [style.stroke[theme]] if style.stroke else "none",
        "linewidths": [style.width * _POINTS],
    }
    if style.dash:
        # Matplotlib measures dashes in multiples of the line width.
        look["linestyles"] = [(0, tuple(length / style.width for length in style.dash))]
    return look


def _add_words(axes: Any, item: Words, theme: int, order: int) -> None:
    anchor = {"start": "left", "middle": "center", "end": "right"}[item.anchor]
    colour = item.style.fill[theme] if item.style.fill else None
    for x, y, text in item.texts:
        axes.text(
            x,
            y,
            text,
            fontsize=item.size * _POINTS,
            color=colour,
            horizontalalignment=anchor,
            verticalalignment="baseline",
            zorder=order,
            parse_math=False,
        )
