"""Pictures of arrays in tiles."""

from __future__ import annotations

import io
from xml.etree import ElementTree

import numpy as np
import pytest

from ringlet.errors import PartitionError, ShardingError
from ringlet.sharding import Mesh, Sharding, shard, visualize

MESH = Mesh({"x": 2, "y": 2})


def test_an_array_is_drawn_as_its_sharding_and_shape():
    array = shard(np.arange(12).reshape(4, 3), MESH.sharding("x", None))
    assert str(visualize(array)) == str(visualize(MESH.sharding("x", None), (4, 3)))
    unnamed = visualize(Sharding.tiled((2, 1, 2), last_tile_dims=["replicated"]), (4, 3))
    assert str(visualize(array)).splitlines()[1:] == str(unnamed).splitlines()[1:]


def test_an_array_without_its_values_says_how_they_are_combined():
    array = shard(np.ones((4, 3)), MESH.sharding("x", None)).sum(axis=0)
    assert "2 summands, each as large as the array, have yet to be summed" in str(visualize(array))


def test_a_picture_is_the_same_each_time():
    assert visualize(MESH.sharding("x"), (4, 3)).svg() == visualize(MESH.sharding("x"), [4, 3]).svg()


def test_a_notebook_shows_the_picture_and_the_characters():
    drawn = visualize(MESH.sharding("x"), (4, 3))
    assert ElementTree.fromstring(drawn._repr_svg_()).tag.endswith("svg")
    figure = ElementTree.fromstring(drawn._repr_html_())
    assert figure.find("details/pre").text == drawn.text() == repr(drawn)


@pytest.mark.parametrize("columns", [30, 60, 132])
def test_what_is_drawn_is_as_wide_as_the_terminal_and_without_colours_in_a_file(monkeypatch, capsys, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    picture = visualize(Sharding.tiled((2, 16)), (320, 320))
    picture.draw()
    assert capsys.readouterr().out == picture.text(columns) + "\n"


def test_an_encoding_without_boxes_gets_ascii():
    file = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    visualize(Sharding.tiled((2, 16)), (320, 320)).draw(width=60, file=file)
    file.seek(0)
    assert file.read().splitlines()[2:4] == [
        "        +---------+---------+         +---------+---------+",
        "  0:160 |    0    |    1    |    .    |    14   |    15   |",
    ]


def test_a_sharding_that_does_not_say_it_needs_the_number_of_devices():
    assert "0-4" in str(visualize(Sharding.replicated(), (4,), 5))
    with pytest.raises(ShardingError, match="does not record the number of devices"):
        visualize(Sharding.replicated(), (4,))


def test_sizes_of_any_whole_numbers_are_shown_as_numbers():
    assert str(visualize(MESH.sharding("x"), (np.int64(4), np.int8(3)))) == str(visualize(MESH.sharding("x"), (4, 3)))


@pytest.mark.parametrize("shape", [None, 4, "4", (-4, 3), (2.5, 3), (None, 3)])
def test_a_sharding_is_drawn_for_a_shape(shape):
    with pytest.raises(TypeError, match=r"visualize\(mesh\.sharding\('x'\), \(8, 4\)\)"):
        visualize(MESH.sharding("x"), shape)


def test_what_has_no_tiles_is_refused():
    with pytest.raises(TypeError, match=r"requires a ShardedArray, .* got ndarray"):
        visualize(np.ones(3))
    with pytest.raises(TypeError, match="expected a Sharding"):
        visualize(np.ones(3), (3,))
    with pytest.raises(PartitionError, match="for arrays of 2 dimensions, but this array has 1"):
        visualize(Sharding.tiled((2, 2)), (3,))
    with pytest.raises(ShardingError, match="does not define which part"):
        visualize(Sharding.manual(2), (3,))
