"""Tile tables as text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from ringlet.sharding.drawing.table_scene import colour_of, device_styles
from ringlet.sharding.drawing.tile_table import TileTable, shown
from ringlet.tpu.drawing.canvas import Canvas
from ringlet.tpu.drawing.terminal import paint_of

_NARROWEST = 20
_MOST_ROWS = 12
_MOST_TABLES = 8
_NARROW_LABEL = 14  # longer labels are truncated if space is short
_GAP = "…"


def text_lines(table: TileTable, width: int = 80, in_colours: bool = False) -> Iterator[str]:
    """Yield the lines of a drawing; parameters as for :meth:`Visualization.text`."""
    if width < _NARROWEST:
        raise ValueError(f"width={width} is too small: a drawing requires at least {_NARROWEST} characters")
    yield from textwrap.wrap(table.title, width, subsequent_indent="  ")
    tables = list(table.tables())
    paint = paint_of(device_styles(table.layout.num_devices)) if in_colours else None
    for number in shown(len(tables), _MOST_TABLES):
        if number is None:
            yield f"{_GAP} {len(tables) - _MOST_TABLES + 1} more"
            continue
        title, tiles = tables[number]
        yield from textwrap.wrap(f"+ {title}" if tiles[0] else title, width)
        yield from _sheet(table, tiles, width).lines(paint)
    for words in table.legend():
        yield from textwrap.wrap(words, width, subsequent_indent="  ")


def _sheet(table: TileTable, tiles: tuple[int, ...], width: int) -> Canvas:
    heads, tops = table.rows.heads, table.columns.heads
    margin = max(map(len, heads)) + 1
    longest = max(_NARROW_LABEL, (width - margin - 1) // len(tops) - 3)
    cells = [[table.cell(tiles, row, column) for column in range(len(tops))] for row in range(len(heads))]
    labels = [[cell.short_label(longest) for cell in line] for line in cells]
    cell = max(len(word) for words in (tops, *labels) for word in words) + 3
    columns = shown(len(tops), max(2, (width - margin - 1) // cell))
    rows = shown(len(heads), _MOST_ROWS)
    has_tops = any(tops)
    sheet = Canvas(margin + cell * len(columns) + 1, has_tops + 2 * len(rows) + 1)
    for across, column in enumerate(columns):
        left = margin + across * cell
        if has_tops and column is not None:
            sheet.write(left + 1, 0, tops[column].center(cell - 1))
        for down, row in enumerate(rows):
            top = has_tops + 2 * down
            if across == 0 and row is not None:
                sheet.write(0, top + 1, heads[row].rjust(margin - 1))
            if row is None or column is None:
                sheet.write(left + 1, top + 1, _GAP.center(cell - 1))
            else:
                sheet.box(left, top, left + cell, top + 2)
                label = labels[row][column].center(cell - 1)
                colours = [colour_of(device, table.layout.num_devices) for device in cells[row][column].devices]
                for place, letter in enumerate(label):  # one band for each colour
                    sheet.write(left + 1 + place, top + 1, letter, colours[place * len(colours) // len(label)])
    return sheet
