"""Pictures of sharded arrays and shardings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TextIO

from ringlet.sharding.layout.axis_names import placement_text
from ringlet.sharding.layout.layout_of import group_of, layout_of
from ringlet.sharding.layout.mesh import NamedSharding
from ringlet.sharding.layout.partition import whole_number
from ringlet.sharding.layout.sharding import Sharding
from ringlet.sharding.sharded_array import ShardedArray

if TYPE_CHECKING:
    from ringlet.sharding.drawing.tile_table import TileTable

_WIDTH = 640


class Visualization:
    """Picture of an array in tiles: as text when printed, as SVG in a notebook.

    Created by :func:`visualize`.

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
        """Return the picture as text.

        Parameters
        ----------
        width : int, default 80
            Maximum width of a line, which two columns of tiles may exceed. If there is not enough room, the first and
            the last tiles are shown.

        Returns
        -------
        str
            Lines, without a final line end.

        Raises
        ------
        ValueError
            If `width` is below 20.
        """
        from ringlet.sharding.drawing.text_table import text_lines

        return "\n".join(text_lines(self._table, width))

    def draw(self, *, width: int | None = None, color: bool | None = None, file: TextIO | None = None) -> None:
        """Print the picture, with coloured devices on a terminal.

        Parameters
        ----------
        width : int, optional
            Maximum number of characters in a line; by default, the width of the terminal.
        color : bool, optional
            Whether to write colours. By default only to a terminal, and not if ``NO_COLOR`` is set.
        file : text file, optional
            By default standard output. If its encoding lacks box-drawing characters, ``|``, ``-`` and ``+`` replace
            them.
        """
        from ringlet.sharding.drawing.text_table import text_lines
        from ringlet.tpu.drawing.terminal import print_drawing

        print_drawing(lambda width, in_colours: text_lines(self._table, width, in_colours), width, color, file)

    def svg(self, width: int = _WIDTH) -> str:
        """Return the picture as SVG.

        Each device has one colour, the same in all pictures with that number of devices; a tile has a band in the
        colour of each device that holds it. Tile sizes are to scale if space permits.

        Parameters
        ----------
        width : int, default 640
            Maximum width in pixels of a row of tables.

        Returns
        -------
        str
            One ``<svg>`` element, without scripts, fonts or addresses, with colours for light and dark pages.

        Raises
        ------
        ValueError
            If `width` is below 200.
        """
        from ringlet.sharding.drawing.table_scene import scene_of
        from ringlet.tpu.drawing.svg_writer import scene_to_svg

        return scene_to_svg(scene_of(self._table, width))

    def html(self, width: int = _WIDTH) -> str:
        """Return the picture as one ``<figure>`` element, with a collapsible text version below.

        Parameters
        ----------
        width : int, default 640
            As for :meth:`svg`.
        """
        from ringlet.tpu.drawing.svg_writer import figure_of

        return figure_of(self.svg(width), self._table.title, self.text())

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        return self.html()

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__


def visualize(
    drawn: ShardedArray | Sharding | NamedSharding, shape: Sequence[int] | None = None, num_devices: int | None = None
) -> Visualization:
    """Draw which device holds which part of an array.

    Rows and columns are the last two divided dimensions, or adjacent dimensions if fewer are divided. Each tile along
    other divided dimensions has its own table.

    Parameters
    ----------
    drawn : ShardedArray, Sharding or NamedSharding
    shape : sequence of int, optional
        Shape of the array, if `drawn` is a sharding.
    num_devices : int, optional
        Number of devices, required if the sharding does not record it.

    Returns
    -------
    Visualization
        Prints as text and displays as a drawing in a notebook.

    Raises
    ------
    TypeError
        If `drawn` has the wrong type, or `shape` is missing.
    ShardingError, PartitionError
        If the sharding does not fit the shape, or does not define the devices' tiles.

    Examples
    --------
    >>> from ringlet.sharding import Mesh
    >>> visualize(Mesh({"x": 2, "y": 2}).sharding("x"), (5, 6))
    shape (5, 6): sharded ('x', None) on Mesh(x=2, y=2)
          0:6
        ┌──────┐
    0:3 │ 0, 1 │
        ├──────┤
    3:5 │ 2, 3 │
        └──────┘
    numbers: devices; rows: dimension 0; columns: dimension 1
    several devices in one tile: each holds the whole tile
    """
    from ringlet.sharding.drawing.tile_table import TileTable

    if isinstance(drawn, ShardedArray) and not isinstance(shape, str):
        combined = "summed" if drawn._combine.name == "SUM" else f"combined ({drawn._combine.name})"
        return Visualization(
            TileTable(drawn.shape, drawn._layout, placement_text(drawn._layout, drawn._group), combined)
        )
    sizes = tuple(map(whole_number, shape)) if isinstance(shape, Iterable) else (None,)
    if any(size is None or size < 0 for size in sizes):
        raise TypeError(
            f"visualize requires a ShardedArray, or a sharding and a shape, got {type(drawn).__name__} and "
            f"shape={shape!r}: write visualize(x) for an array, visualize(mesh.sharding('x'), (8, 4)) for a sharding"
        )
    layout = layout_of(drawn, len(sizes), num_devices)
    placement = placement_text(layout, group_of(drawn, layout.num_devices))
    return Visualization(TileTable(sizes, layout, placement))  # type: ignore[arg-type]
