"""Colours and widths of terminals."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TextIO

from ringlet.tpu.drawing.canvas import ASCII
from ringlet.tpu.drawing.scene import Style

_SHADES = (0, 95, 135, 175, 215, 255)  # levels of red, green and blue in the 256-colour palette of terminals
_BLACK = "38;5;16"


def has_colours(file: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether to use colours: only on terminals, unless ``NO_COLOR`` is set or ``TERM`` is "dumb"."""
    is_terminal = getattr(file, "isatty", None)
    return bool(is_terminal and is_terminal()) and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def can_write(file: TextIO, text: str) -> bool:
    """Return whether the encoding of a file can represent a string."""
    try:
        text.encode(getattr(file, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def print_drawing(
    lines: Callable[[int, bool], Iterable[str]], width: int | None, color: bool | None, file: TextIO | None
) -> None:
    """Print a drawing; ``lines(width, in_colours)`` returns its lines.

    If the encoding of the file has no box characters, ASCII is used.
    """
    file = sys.stdout if file is None else file
    width = max(20, shutil.get_terminal_size().columns) if width is None else width
    printed = "\n".join(lines(width, has_colours(file) if color is None else color))
    print(printed if can_write(file, printed) else printed.translate(ASCII), file=file)


def paint_of(styles: Iterable[Style]) -> dict[int, str]:
    """Return the escape sequence of each style by its number: black text on the style's colour."""
    fills = (style.fill[0] for style in styles if style.fill)
    return {number: f"\033[{_BLACK};48;5;{_nearest(colour)}m" for number, colour in enumerate(fills)}


def _nearest(colour: str) -> int:
    """Return the number of the nearest colour in the terminal's 6 x 6 x 6 colour cube."""
    channels = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    red, green, blue = (min((abs(shade - value), i) for i, shade in enumerate(_SHADES))[1] for value in channels)
    return 16 + 36 * red + 6 * green + blue
