"""Drawings of TPU slices: as SVG, as HTML for notebooks, with matplotlib, and as text.

One panel per z coordinate shows its chips, hosts as outlines, replicas in colour, rings as paths or link loads, and
missing devices. Equal inputs give identical output. In large slices, labels are omitted, then links, then paths, and
beyond 20,000 chips a part of the slice, so that a drawing is smaller than a megabyte. The legend lists omitted paths
and chips.

SVG and text need no other library.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TextIO

from numpy.typing import ArrayLike

from ringlet.module_names import list_public
from ringlet.tpu.drawing.figure import scene_to_axes
from ringlet.tpu.drawing.picture import WIDTH, scene_of
from ringlet.tpu.drawing.subject import Drawn
from ringlet.tpu.drawing.svg_writer import figure_of, scene_to_svg
from ringlet.tpu.drawing.terminal import print_drawing
from ringlet.tpu.drawing.text_sheet import text_lines
from ringlet.tpu.topology.topology_of import topology_of

__all__ = ["draw", "html", "plot", "svg", "text"]

__dir__ = list_public(__name__)


def svg(
    drawn: Drawn,
    *,
    loads: ArrayLike | None = None,
    rings: str = "auto",
    slices: Iterable[int] | None = None,
    width: int = WIDTH,
) -> str:
    """Draw a slice, an assignment or a cost as SVG.

    Parameters
    ----------
    drawn : Topology, DeviceAssignment, CollectiveCost or StepCost
        A cost is drawn with the loads of its links.
    loads : array_like, optional
        Bytes over each directed link, in the order of ``topology.links()``: links with more bytes are wider and have
        more contrast, in five classes; between small chips, the chips are coloured instead. Default: the loads of a
        cost.
    rings : {"auto", "cores", "replicas", "none"}
        Rings drawn as paths: over the cores of each replica, or over the first core of all replicas. "auto" means
        "none" if there are loads, else "replicas" if replicas have one core, else "cores".
    slices : iterable of int, optional
        The z coordinates of the slices to draw, in this order. Default: all.
    width : int, default 960
        Maximum width in pixels, exceeded only if the smallest chips or a line of text do not fit.

    Returns
    -------
    str
        One ``<svg>`` element without scripts, fonts or addresses, with colours for light and dark colour schemes.

    Raises
    ------
    ValueError
        If the number of loads differs from the number of links, a load is negative or not finite, a slice or ring kind
        does not exist, or `width` is below 200.

    Examples
    --------
    >>> import ringlet
    >>> from ringlet.tpu import drawing
    >>> picture = drawing.svg(ringlet.tpu.Topology.from_accelerator_type("v5litepod-16"))
    >>> picture.startswith("<svg "), len(picture) < 10_000
    (True, True)
    """
    return scene_to_svg(scene_of(drawn, loads, rings, slices, width))


def html(
    drawn: Drawn,
    *,
    loads: ArrayLike | None = None,
    rings: str = "auto",
    slices: Iterable[int] | None = None,
    width: int = WIDTH,
) -> str:
    """Draw like :func:`svg`, as HTML for a notebook, with a collapsible text description.

    Parameters
    ----------
    drawn, loads, rings, slices, width
        As for :func:`svg`.

    Returns
    -------
    str
        One ``<figure>`` element.

    Examples
    --------
    >>> import ringlet
    >>> from ringlet.tpu import drawing
    >>> "<svg " in drawing.html(ringlet.tpu.Topology.from_accelerator_type("v5litepod-16"))
    True
    """
    scene = scene_of(drawn, loads, rings, slices, width)
    return figure_of(scene_to_svg(scene), scene.title, repr(topology_of(drawn)))


def plot(
    drawn: Drawn,
    *,
    loads: ArrayLike | None = None,
    rings: str = "auto",
    slices: Iterable[int] | None = None,
    width: int = WIDTH,
    axes: Any = None,
) -> Any:
    """Draw as :func:`svg` does, with matplotlib.

    Parameters
    ----------
    drawn, loads, rings, slices, width
        As for :func:`svg`.
    axes : matplotlib.axes.Axes, optional
        Axes to draw on; default: a new pyplot figure of the drawing's size. On a dark background, the colours of dark
        mode are used.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ModuleNotFoundError
        If matplotlib (the extra ``ringlet[plot]``) is not installed.
    """
    return scene_to_axes(scene_of(drawn, loads, rings, slices, width), axes)


def text(
    drawn: Drawn,
    *,
    loads: ArrayLike | None = None,
    rings: str = "auto",
    slices: Iterable[int] | None = None,
    width: int = 80,
) -> str:
    """Draw a slice, an assignment or a cost as text.

    Parameters
    ----------
    drawn, loads, rings, slices
        As for :func:`svg`; loads become digits. To avoid more than 60 lines, chips are drawn closer together, then
        cores as one character each, and finally slices are omitted unless `slices` names them. Columns and rows that
        do not fit are omitted.
    width : int, default 80
        Maximum number of characters per line.

    Returns
    -------
    str
        Lines, without a newline after the last.

    Raises
    ------
    ValueError
        As for :func:`svg`, or if `width` is below 20.

    Examples
    --------
    >>> import ringlet
    >>> from ringlet.tpu import drawing
    >>> topology = ringlet.tpu.Topology.from_accelerator_type("v5litepod-16")
    >>> print(drawing.text(ringlet.tpu.DeviceAssignment.build(topology, num_replicas=16)))
    v5litepod-16, 4x4: 16 chips, 4 hosts, 16 devices; 16 replicas of 1 core
    ┌─────────┬─────────┐
    │ 0━━━━1━━┿━2━━━━3  │
    │ ┃       │      ┃  │
    │ 15   6━━┿━5━━━━4  │
    ├─╂────╂──┼─────────┤
    │ 14   7━━┿━8━━━━9  │
    │ ┃       │      ┃  │
    │ 13━━━12━┿━11━━━10 │
    └─────────┴─────────┘
    numbers: replicas
    boxes: hosts; x goes right, y down; no axis wraps round
    path: the ring over the replicas; every hop is one link
    """
    return "\n".join(text_lines(drawn, loads, rings, slices, width=width))


def draw(
    drawn: Drawn,
    *,
    loads: ArrayLike | None = None,
    rings: str = "auto",
    slices: Iterable[int] | None = None,
    width: int | None = None,
    color: bool | None = None,
    file: TextIO | None = None,
) -> None:
    """Print the result of :func:`text`, with replicas in colour on a terminal.

    Parameters
    ----------
    drawn, loads, rings, slices
        As for :func:`text`.
    width : int, optional
        Characters per line; default: the terminal's.
    color : bool, optional
        Whether to use colours. Default: only on a terminal, unless ``NO_COLOR`` is set.
    file : text file, optional
        Default: standard output. If its encoding has no box characters, ``|``, ``-`` and ``=`` are used.
    """
    print_drawing(
        lambda width, in_colours: text_lines(drawn, loads, rings, slices, width=width, in_colours=in_colours),
        width,
        color,
        file,
    )
