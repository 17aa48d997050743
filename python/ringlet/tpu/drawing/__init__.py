"""Pictures of TPU slices: as SVG, for notebooks, with matplotlib, and in characters.

One panel for each slice of equal z shows its chips, those of one host in one outline, replicas in colour, rings as
paths or the loads of links, and what is missing. The same thing gives the same picture, byte by byte. Few chips come
with labels; many are drawn smaller, first without labels, then without paths and links, and of more than 20,000 chips
a part is shown: the legend says what. So a picture stays below a megabyte.

SVG and characters need nothing beyond this library.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TextIO

from numpy.typing import ArrayLike

from ringlet.tpu.drawing.figure import scene_to_axes
from ringlet.tpu.drawing.picture import WIDTH, scene_of
from ringlet.tpu.drawing.subject import Drawn
from ringlet.tpu.drawing.svg_writer import escape, scene_to_svg
from ringlet.tpu.drawing.terminal import print_drawing
from ringlet.tpu.drawing.text_sheet import text_lines
from ringlet.tpu.topology_of import topology_of

__all__ = ["draw", "html", "plot", "svg", "text"]


def svg(
    drawn: Drawn,
    *,
    loads: ArrayLike | None = None,
    rings: str = "auto",
    slices: Iterable[int] | None = None,
    width: int = WIDTH,
) -> str:
    """Draw a slice, what runs where on it, or what it costs, as SVG.

    Parameters
    ----------
    drawn : Topology, DeviceAssignment, CollectiveCost or StepCost
        A cost is drawn with the loads of its links.
    loads : array_like, optional
        Bytes over each directed link, in the order of ``topology.links()``: links are drawn wider and darker the more
        they carry, in five classes. By default those of a cost, if one is drawn.
    rings : {"auto", "cores", "replicas", "none"}
        Which rings are drawn as paths: over the cores of each replica, or over the first core of all replicas. "auto"
        takes the second where a replica has one core, else the first, and none where there are loads.
    slices : iterable of int, optional
        Only those of these z, in this order, and larger if there is room. All by default.
    width : int, default 960
        Pixels that the picture may take.

    Returns
    -------
    str
        One ``<svg>`` element, without scripts, fonts or addresses. It has colours for light pages, and for dark ones
        on devices that prefer these.

    Raises
    ------
    ValueError
        If there is not one load for each link, no such slice or kind of ring, or `width` is below 200.

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
    """Draw as `svg` does, for a notebook, with what the slice is in words to unfold below it.

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
    words = repr(topology_of(drawn))
    return (
        f'<figure style="margin: 0">\n<div style="overflow-x: auto">\n{scene_to_svg(scene)}</div>\n'
        f"<details><summary>{escape(scene.title)}</summary><pre>{escape(words)}</pre></details>\n</figure>\n"
    )


def plot(
    drawn: Drawn,
    *,
    loads: ArrayLike | None = None,
    rings: str = "auto",
    slices: Iterable[int] | None = None,
    width: int = WIDTH,
    axes: Any = None,
) -> Any:
    """Draw as `svg` does, with matplotlib.

    Parameters
    ----------
    drawn, loads, rings, slices, width
        As for :func:`svg`.
    axes : matplotlib.axes.Axes, optional
        Where to draw; by default on a new figure of pyplot, as large as the picture. Figures on a dark ground get the
        colours of dark pages.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ModuleNotFoundError
        If matplotlib is missing: it is the extra ``ringlet[plot]``.
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
    """Draw a slice, what runs where on it, or what it costs, in characters.

    Parameters
    ----------
    drawn, loads, rings, slices
        As for :func:`svg`; loads become digits. Where lines would be more than 60 chips are drawn closer, then as one
        character, and at last slices are left out; all are drawn if `slices` names them.
    width : int, default 80
        Characters that a line has at most.

    Returns
    -------
    str
        Lines, without a line end after the last.

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
    """Print what `text` gives, with replicas in colour on a terminal.

    Parameters
    ----------
    drawn, loads, rings, slices
        As for :func:`text`.
    width : int, optional
        Characters of a line; by default those of the terminal.
    color : bool, optional
        Whether to write colours. By default only to a terminal, and not if ``NO_COLOR`` is set.
    file : text file, optional
        By default standard output. If its encoding has no lines and boxes, ``|``, ``-`` and ``=`` stand for them.
    """
    print_drawing(
        lambda width, in_colours: text_lines(drawn, loads, rings, slices, width=width, in_colours=in_colours),
        width,
        color,
        file,
    )
