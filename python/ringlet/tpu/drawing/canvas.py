"""Character canvas: text, thin lines that join, and thick lines that cross them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

# Thin line characters, indexed by the sides that they connect.
_LEFT, _RIGHT, _UP, _DOWN = 1, 2, 4, 8
_THIN = " ╴╶─╵┘└┴╷┐┌┬│┤├┼"

# Replacements of characters that a thick line passes through, by direction of the line.
_THICK_ACROSS = {" ": "━", "│": "┿", "┤": "┥", "├": "┝", "┼": "┿"}
_THICK_DOWN = {" ": "┃", "─": "╂", "┴": "╂", "┬": "╂", "┼": "╂"}

# Replacements for terminals without box characters.
ASCII = str.maketrans("─│┌┐└┘├┤┬┴┼╴╶╵╷━┃┿╂┥┝↗↙↕·…", "-|" + 9 * "+" + "--||=H####^v&..")

Cell = tuple[str, int | None]


class Canvas:
    """A canvas of `width` times `height` characters, each with a colour number or None."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self._cells: list[list[Cell]] = [[(" ", None)] * width for _ in range(height)]
        self._thin = [[0] * width for _ in range(height)]

    def write(self, x: int, y: int, text: str, colour: int | None = None) -> None:
        """Write a string in line `y`, starting at column `x`."""
        for offset, letter in enumerate(text):
            self._cells[y][x + offset] = (letter, colour)

    def box(self, left: int, top: int, right: int, bottom: int) -> None:
        """Draw a thin line around a rectangle."""
        for y in (top, bottom):
            for x in range(left, right):
                self._join(x, y, _RIGHT)
                self._join(x + 1, y, _LEFT)
        for x in (left, right):
            for y in range(top, bottom):
                self._join(x, y, _DOWN)
                self._join(x, y + 1, _UP)

    def _join(self, x: int, y: int, side: int) -> None:
        self._thin[y][x] |= side
        self._cells[y][x] = (_THIN[self._thin[y][x]], None)

    def thick_across(self, x: int, y: int) -> None:
        """Draw a thick horizontal line through one character."""
        letter, _ = self._cells[y][x]
        self._cells[y][x] = (_THICK_ACROSS.get(letter, letter), None)

    def thick_down(self, x: int, y: int) -> None:
        """Draw a thick vertical line through one character."""
        letter, _ = self._cells[y][x]
        self._cells[y][x] = (_THICK_DOWN.get(letter, letter), None)

    def paste(self, other: Canvas, x: int, y: int) -> None:
        """Copy another canvas onto this canvas."""
        for row, cells in enumerate(other._cells):
            self._cells[y + row][x : x + other.width] = cells

    def lines(self, paint: dict[int, str] | None = None) -> Iterator[str]:
        """Yield the lines, without trailing spaces; `paint` has the escape sequence of each colour."""
        for cells in self._cells:
            used = len("".join(letter for letter, _ in cells).rstrip())
            runs = (
                (colour, "".join(letter for letter, _ in run))
                for colour, run in groupby(cells[:used], lambda cell: cell[1])
            )
            yield "".join(
                f"{paint[colour]}{text}\033[0m" if paint and colour is not None else text for colour, text in runs
            )
