"""Scene of a tile table: tiles in the colours of their devices; sizes are to scale if space permits."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ringlet.sharding.drawing.tile_table import Axis, Cell, TileTable, shown
from ringlet.tpu.drawing.colours import CATEGORY_STYLES, GRADIENT_STYLES
from ringlet.tpu.drawing.scene import HOST, INK, WORDS, Box, Boxes, Hint, Item, Scene, Style, Words

_NARROWEST = 200
_LETTER = 6.0  # average width of a character in pixels at font size 11, large enough that no line is cut off
_DIGIT = 7.0  # width of a digit in the widest font
_CELL_WIDTH, _CELL_HEIGHT = 34.0, 24.0  # minimum size in pixels
_TABLE_WIDTH, _SMALL_TABLE_WIDTH = 300.0, 180.0
_FLATTEST, _STEEPEST = 0.35, 1.2  # least and greatest ratio of height to width
_MOST_ROWS, _MOST_COLUMNS, _MOST_TABLES, _MOST_BANDS = 24, 24, 16, 12
_MARGIN = 16.0
_LONGEST_TITLE = 110


@dataclass(frozen=True)
class _Grid:
    """Tile numbers, or None if omitted, and sizes in pixels of the rows and columns of each table."""

    rows: list[int | None]
    columns: list[int | None]
    heights: list[float]
    widths: list[float]
    left: float  # width of the row names

    @property
    def width(self) -> float:
        return self.left + sum(self.widths)

    @property
    def height(self) -> float:
        return sum(self.heights)


def scene_of(table: TileTable, width: int) -> Scene:
    """Return the scene that draws `table`; `width` is as in :meth:`Visualization.svg`."""
    if width < _NARROWEST:
        raise ValueError(f"width={width} is too small: a picture requires at least {_NARROWEST} pixels")
    tables = list(table.tables())
    grid = _grid(table, _TABLE_WIDTH if len(tables) == 1 else _SMALL_TABLE_WIDTH, width)
    title = table.title if len(table.title) <= _LONGEST_TITLE else table.title[: _LONGEST_TITLE - 1] + "…"
    across = max(1, int((width - _MARGIN) // (grid.width + _MARGIN)))
    step = grid.height + (52 if len(tables) > 1 else 32)
    items: list[Item] = []
    places = shown(len(tables), _MOST_TABLES)
    for place, number in enumerate(places):
        left, top = _MARGIN + place % across * (grid.width + _MARGIN), 40 + place // across * step
        if number is None:
            items.append(Words(WORDS, [(left, top + 20, f"… {len(tables) - _MOST_TABLES + 1} more")], 11, "start"))
        else:
            items += _table(table, tables[number], grid, left, top)
            if tables[number][1][0]:
                items.append(Words(INK, [(left - _MARGIN / 2, top + 37 + grid.height / 2, "+")], 16))
    most = max(int((width - 2 * _MARGIN) / _LETTER), 30)
    legend = [line for words in table.legend() for line in textwrap.wrap(words, most, subsequent_indent="  ")]
    bottom = 40 + -(-len(places) // across) * step
    texts = [(_MARGIN, bottom + 14 + 17 * line, words) for line, words in enumerate(legend)]
    longest = max(len(title) * 1.2, *map(len, legend)) * _LETTER + 2 * _MARGIN
    scene = Scene(
        width=max(longest, min(across, len(places)) * (grid.width + _MARGIN) + _MARGIN),
        height=bottom + 17 * len(legend) + 14,
        title=title,
        description="; ".join(table.legend()),
    )
    scene.items += [Words(INK, [(_MARGIN, 24, title)], 13, "start"), *items, Words(WORDS, texts, 11, "start")]
    return scene


def _grid(table: TileTable, wanted: float, width: int) -> _Grid:
    rows, columns = table.rows, table.columns
    left = max(len(head) for head in rows.heads) * _DIGIT + (8 if rows.dimension is not None else 0)
    cell = max(_CELL_WIDTH, max(len(head) for head in columns.heads) * _DIGIT + 8)
    room = int((width - 2 * _MARGIN - left) // cell)
    which = shown(len(columns.bounds), max(2, min(_MOST_COLUMNS, room)))
    widths = _lengths(columns, which, wanted, cell)
    ratio = max(1, rows.bounds[-1][1]) / max(1, columns.bounds[-1][1])
    height = 40.0 if rows.dimension is None else wanted * min(max(ratio, _FLATTEST), _STEEPEST)
    down = shown(len(rows.bounds), _MOST_ROWS)
    return _Grid(down, which, _lengths(rows, down, height, _CELL_HEIGHT), widths, left)


def _lengths(axis: Axis, which: Sequence[int | None], wanted: float, least: float) -> list[float]:
    """Return each tile's size in pixels along an axis: proportional to its elements, but at least `least`."""
    sizes = [1 if tile is None else max(1, axis.bounds[tile][1] - axis.bounds[tile][0]) for tile in which]
    return [max(least, wanted * size / sum(sizes)) for size in sizes]


def _table(
    table: TileTable, named: tuple[str, tuple[int, ...]], grid: _Grid, left: float, top: float
) -> Iterator[Item]:
    name, tiles = named
    if name:
        yield Words(WORDS, [(left, top + 4, name)], 11, "start")
        top += 16
    rows = list(_spans(grid.rows, table.rows.heads, grid.heights, top + 16))
    columns = list(_spans(grid.columns, table.columns.heads, grid.widths, left + grid.left))
    yield Words(WORDS, [(x + w / 2, top + 10, head) for _, head, x, w in columns], 11)
    yield Words(WORDS, [(left + grid.left - 5, y + h / 2 + 4, head) for _, head, y, h in rows], 11, "end")
    cells: list[tuple[Box, Cell, str]] = []
    gaps: list[tuple[float, float, str]] = []
    for row, row_head, y, h in rows:
        for column, column_head, x, w in columns:
            if row is None or column is None:
                gaps.append((x + w / 2, y + h / 2 + 4, "…"))
            else:
                place = ", ".join(filter(None, (name, row_head, column_head)))
                cells.append(((x, y, w, h), table.cell(tiles, row, column), place))
    yield from _filled(cells, table.layout.num_devices)
    yield Boxes(HOST, [box for box, _, _ in cells])
    labels = [(x + w / 2, y + h / 2 + 4, cell.short_label(max(2, int(w / 6.6)))) for (x, y, w, h), cell, _ in cells]
    yield Words(INK, labels, 12)
    yield Words(WORDS, gaps, 12)
    yield Hint([(box, f"{place}: {cell.label}" if place else cell.label) for box, cell, place in cells])


def _spans(
    tiles: Sequence[int | None], heads: Sequence[str], lengths: Sequence[float], start: float
) -> Iterator[tuple[int | None, str, float, float]]:
    for tile, length in zip(tiles, lengths, strict=True):
        yield tile, "" if tile is None else heads[tile], start, length
        start += length


def _filled(cells: Sequence[tuple[Box, Cell, str]], num_devices: int) -> Iterator[Item]:
    boxes: dict[Style, list[Box]] = {}
    styles = device_styles(num_devices)
    for (x, y, w, h), cell, _ in cells:
        devices = [cell.devices[i] for i in shown(len(cell.devices), _MOST_BANDS) if i is not None]
        band = w / len(devices)
        for place, device in enumerate(devices):
            boxes.setdefault(styles[colour_of(device, num_devices)], []).append((x + place * band, y, band, h))
    yield from (Boxes(style, places) for style, places in boxes.items())


def device_styles(num_devices: int) -> tuple[Style, ...]:
    """Return the styles in which devices are drawn, indexed by the result of :func:`colour_of`."""
    return CATEGORY_STYLES if num_devices <= len(CATEGORY_STYLES) else GRADIENT_STYLES


def colour_of(device: int, num_devices: int) -> int:
    """Return the number of a device's style, the same in all pictures with that number of devices."""
    return device if num_devices <= len(CATEGORY_STYLES) else device * len(GRADIENT_STYLES) // num_devices
