"""Pictures of arrays in tiles."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TextIO

from ringlet.sharding.layout.layout_of import layout_of, sharding_of
from ringlet.sharding.layout.mesh import NamedSharding
from ringlet.sharding.layout.partition import whole_number
from ringlet.sharding.layout.sharding import Sharding
from ringlet.sharding.sharded_array import ShardedArray

if TYPE_CHECKING:
    from ringlet.sharding.drawing.tile_table import TileTable

__all__ = ["Visualization", "visualize"]

_WIDTH = 640


class Visualization:
    """An array in tiles that shows itself: printed, in characters; in a notebook, drawn.

    Made by :func:`visualize`.

    Examples
    --------
    >>> drawn = visualize(Sharding.tiled((2,)), (5,))
    >>> drawn
    shape (5,): {devices=[2]<=[2]}
       0:3   3:5
     ┌─────┬─────┐
     │  0  │  1  │
     └─────┴─────┘
    numbers: devices; columns: dimension 0
    >>> drawn.svg().startswith("<svg ")
    True
    """

    def __init__(self, table: TileTable) -> None:
        self._table = table

    def text(self, width: int = 80) -> str:
        """Give the picture in characters.

        Parameters
        ----------
        width : int, default 80
            Characters that a line has at most, as far as two columns of tiles need no more. The first and the last
            tiles are shown of those that have no room.

        Returns
        -------
        str
            Lines, without a line end after the last.

        Raises
        ------
        ValueError
            If `width` is below 20.
        """
        from ringlet.sharding.drawing.text_table import text_lines

        return "\n".join(text_lines(self._table, width))

    def draw(self, *, width: int | None = None, color: bool | None = None, file: TextIO | None = None) -> None:
        """Print the picture, with devices in colour on a terminal.

        Parameters
        ----------
        width : int, optional
            Characters of a line; by default those of the terminal.
        color : bool, optional
            Whether to write colours. By default only to a terminal, and not if ``NO_COLOR`` is set.
        file : text file, optional
            By default standard output. If its encoding has no lines and boxes, ``|``, ``-`` and ``+`` stand for them.
        """
        from ringlet.sharding.drawing.text_table import text_lines
        from ringlet.tpu.drawing.terminal import print_drawing

        print_drawing(lambda width, in_colours: text_lines(self._table, width, in_colours), width, color, file)

    def svg(self, width: int = _WIDTH) -> str:
        """Give the picture as SVG.

        Each device has its colour, the same in all pictures of as many devices, and a tile a band in that of each
        device that has it. Sizes of tiles are to scale where there is room.

        Parameters
        ----------
        width : int, default 640
            Pixels that tables next to each other may take.

        Returns
        -------
        str
            One ``<svg>`` element, without scripts, fonts or addresses. It has colours for light pages, and for dark
            ones on devices that prefer these.

        Raises
        ------
        ValueError
            If `width` is below 200.
        """
        from ringlet.sharding.drawing.table_scene import scene_of
        from ringlet.tpu.drawing.svg_writer import scene_to_svg

        return scene_to_svg(scene_of(self._table, width))

    def html(self, width: int = _WIDTH) -> str:
        """Give the picture as one ``<figure>`` element, with the same in characters to unfold below it.

        Parameters
        ----------
        width : int, default 640
            As for :meth:`svg`.
        """
        from ringlet.tpu.drawing.svg_writer import escape

        return (
            f'<figure style="margin: 0">\n<div style="overflow-x: auto">\n{self.svg(width)}</div>\n'
            f"<details><summary>{escape(self._table.title)}</summary><pre>{escape(self.text())}</pre></details>\n"
            "</figure>\n"
        )

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        return self.html()

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__


def visualize(
    drawn: ShardedArray | Sharding | NamedSharding,
    shape: Sequence[int] | None = None,
    num_devices: int | None = None,
) -> Visualization:
    """Draw which device has which part of an array.

    Rows and columns are the last two dimensions that are cut; there is a table for each tile along the others.

    Parameters
    ----------
    drawn : ShardedArray, Sharding or NamedSharding
    shape : sequence of int, optional
        Of the array, if `drawn` is a sharding.
    num_devices : int, optional
        Devices that there are, for a sharding that does not say it.

    Returns
    -------
    Visualization
        It prints itself, and draws itself in a notebook.

    Raises
    ------
    TypeError
        If `drawn` is something else, or `shape` is none.
    ShardingError, PartitionError
        If the sharding is not for that shape, or does not say where values are.

    Examples
    --------
    >>> from ringlet.sharding import Mesh
    >>> visualize(Mesh({"x": 2, "y": 2}).sharding("x"), (5, 6))
    shape (5, 6): {devices=[2,1,2]<=[4] last_tile_dim_replicate}
          0:6
        ┌──────┐
    0:3 │ 0, 1 │
        ├──────┤
    3:5 │ 2, 3 │
        └──────┘
    numbers: devices; rows: dimension 0; columns: dimension 1
    several devices in one tile: each has all of it
    """
    from ringlet.sharding.drawing.tile_table import TileTable

    if isinstance(drawn, ShardedArray):
        combined = "summed" if drawn._combine.name == "SUM" else f"combined ({drawn._combine.name})"
        return Visualization(TileTable(drawn.shape, drawn._layout, str(drawn.sharding), combined))
    sizes = tuple(map(whole_number, shape)) if isinstance(shape, Iterable) else (None,)
    if any(size is None or size < 0 for size in sizes):
        raise TypeError(
            "visualize draws a ShardedArray, or arrays of a shape: write visualize(sharding, (8, 4)), got "
            f"{type(drawn).__name__} and shape={shape!r}"
        )
    layout = layout_of(drawn, len(sizes), num_devices)
    return Visualization(TileTable(sizes, layout, str(sharding_of(layout))))  # type: ignore[arg-type]
