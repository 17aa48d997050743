"""Tiles in characters."""

from __future__ import annotations

import io
import re

import pytest

from ringlet.sharding import Mesh, Sharding, visualize


def drawn(sharding, shape, width=80):
    return visualize(sharding, shape).text(width).splitlines()


def test_tiles_are_boxes_between_their_bounds():
    assert drawn(Mesh({"x": 2, "y": 2}).sharding("y", "x"), (3, 4)) == [
        "shape (3, 4): sharded ('y', 'x') on Mesh(x=2, y=2)",
        "      0:2   2:4",
        "    ┌─────┬─────┐",
        "0:2 │  0  │  2  │",
        "    ├─────┼─────┤",
        "2:3 │  1  │  3  │",
        "    └─────┴─────┘",
        "numbers: devices; rows: dimension 0; columns: dimension 1",
    ]


def test_an_array_without_dimensions_is_one_tile():
    assert drawn(Sharding.maximal(2, 4), ())[1:4] == [" ┌───┐", " │ 2 │", " └───┘"]


def test_an_array_without_elements_is_drawn():
    assert drawn(Sharding.tiled((2, 2)), (0, 3))[-1] == "without elements: devices 0-3"


@pytest.mark.parametrize("width", [30, 40, 80])
def test_lines_are_no_longer_than_asked_for(width):
    lines = drawn(Sharding.tiled((32, 32), reversed(range(1024))), (320, 320), width)
    assert max(map(len, lines[-30:])) <= width
    assert any("…" in line for line in lines)


def test_tables_beyond_the_first_ones_are_counted():
    lines = drawn(Sharding.tiled((16, 2, 2)), (16, 4, 4))
    assert "… 9 more" in lines
    assert sum(line.startswith("dimension 0") for line in lines) == 7


def test_labels_without_room_are_cut_off():
    devices = [d for pair in zip(range(0, 32), range(32, 64), strict=True) for d in pair]
    lines = drawn(Sharding.tiled((4, 16), devices, last_tile_dims=["replicated"]), (4,), 60)
    assert any("…" in line for line in lines)


def test_a_line_has_room_for_something():
    with pytest.raises(ValueError, match=r"width=19 is too small: .* at least 20 characters"):
        drawn(Sharding.tiled((2,)), (2,), 19)


def test_a_label_is_on_a_band_of_each_device():
    file, sharding = io.StringIO(), Mesh({"x": 2, "y": 2}).sharding("x")
    visualize(sharding, (4, 6)).draw(color=True, file=file, width=80)
    bands = re.findall(r"\033\[38;5;16;(48;5;\d+)m([^\033]+)\033", file.getvalue())
    assert [len(label) for _, label in bands] == [3, 3, 3, 3]
    assert len({colour for colour, _ in bands}) == 4
    assert re.sub(r"\033\[[\d;]*m", "", file.getvalue()).splitlines() == drawn(sharding, (4, 6))
