"""Colours and widths of terminals."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from typing import TextIO

from ringlet.tpu.drawing.colours import colour_styles
from ringlet.tpu.drawing.subject import Subject

__all__ = ["can_write", "has_colours", "paint_of", "terminal_width"]

_SHADES = (0, 95, 135, 175, 215, 255)  # of each of red, green and blue, among the 256 colours of terminals
_BLACK = "38;5;16"


def terminal_width() -> int:
    """Columns of the terminal, as ``COLUMNS`` says or the terminal itself; 80 if neither does."""
    return shutil.get_terminal_size().columns


def has_colours(file: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether colours may be written: to terminals only, and not if ``NO_COLOR`` is set or ``TERM`` is "dumb".

    Parameters
    ----------
    file : text file
    environ : mapping, optional

    Returns
    -------
    bool
    """
    is_terminal = getattr(file, "isatty", None)
    return bool(is_terminal and is_terminal()) and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def can_write(file: TextIO, text: str) -> bool:
    """Whether the encoding of a file has all letters of a text."""
    try:
        text.encode(getattr(file, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def paint_of(subject: Subject) -> dict[int, str]:
    """Give for the number of each replica colour what a terminal is told: black on that colour.

    Parameters
    ----------
    subject : Subject

    Returns
    -------
    dict of int to str
    """
    fills = (style.fill[0] for style in colour_styles(subject) if style.fill)
    return {number: f"\033[{_BLACK};48;5;{_nearest(colour)}m" for number, colour in enumerate(fills)}


def _nearest(colour: str) -> int:
    """The number of the nearest of 6 x 6 x 6 colours."""
    channels = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    red, green, blue = (min((abs(shade - value), i) for i, shade in enumerate(_SHADES))[1] for value in channels)
    return 16 + 36 * red + 6 * green + blue
