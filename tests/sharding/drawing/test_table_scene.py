"""Tiles as scenes."""

from __future__ import annotations

import itertools
from xml.etree import ElementTree

import pytest

from ringlet.sharding import Mesh, Sharding, visualize
from ringlet.sharding.drawing.table_scene import scene_of
from ringlet.tpu.drawing.scene import HOST, Boxes, Hint, Words

MESH = Mesh({"x": 4, "y": 2})


def scene(sharding, shape, width=640):
    return scene_of(visualize(sharding, shape)._table, width)


def boxes(found, name):
    return [box for item in found.items if isinstance(item, Boxes) and item.style.name == name for box in item.boxes]


def test_sizes_of_tiles_are_to_scale():
    tall, short = (
        boxes(scene(Sharding.tiled((2,)), (30,)), HOST.name),
        boxes(scene(Sharding.tiled((2,)), (29,)), HOST.name),
    )
    assert tall[0][2] == tall[1][2]
    assert short[0][2] / short[1][2] == pytest.approx(15 / 14)


def test_a_device_has_one_colour_in_all_pictures():
    whole, halves = scene(MESH.sharding("x", "y"), (8, 4)), scene(MESH.sharding("y", "x"), (8, 4))
    for device in range(8):
        assert len(boxes(whole, f"colour{device}")) == len(boxes(halves, f"colour{device}")) == 1


def test_a_tile_of_several_devices_has_a_band_of_each():
    found = scene(MESH.sharding("y"), (8, 4))
    tile = boxes(found, HOST.name)[0]
    bands = [boxes(found, f"colour{device}")[0] for device in (0, 2, 4, 6)]
    assert [band[2] for band in bands] == [tile[2] / 4] * 4
    assert [band[0] for band in bands] == [tile[0] + i * tile[2] / 4 for i in range(4)]


def test_a_partial_array_is_a_sum_of_tables_of_its_full_size():
    found, whole = (scene(MESH.sharding("x", unreduced=u), (8, 4)) for u in ((), ("y",)))
    whole, found = found, whole
    sizes = [sorted(box[2:] for box in boxes(made, HOST.name)) for made in (whole, found)]
    texts = [place[2] for item in found.items if isinstance(item, Words) for place in item.texts]
    assert len(sizes[1]) == 2 * len(sizes[0])
    assert texts.count("+") == 1
    assert [text for text in texts if "of 2" in text] == ["summand 1 of 2", "summand 2 of 2"]
    assert all(len(boxes(found, f"colour{device}")) == 1 for device in range(8))


def test_who_points_at_a_tile_is_told_who_has_it():
    hints = [
        place[1] for item in scene(MESH.sharding("x"), (8,)).items if isinstance(item, Hint) for place in item.places
    ]
    assert hints == ["0:2: 0, 1", "2:4: 2, 3", "4:6: 4, 5", "6:8: 6, 7"]


@pytest.mark.parametrize(
    ("sharding", "shape"),
    [
        (Sharding.replicated(3), ()),
        (Sharding.tiled((4,)), (0,)),
        (Sharding.unreduced(20), (3, 4)),
        (Mesh({"a": 2, "b": 2, "c": 2, "d": 2}).sharding("a", "b", "c", "d"), (3, 3, 3, 3)),
        (Sharding.tiled((64, 64)), (1000, 10)),
        (Sharding.tiled((100, 2, 2)), (100, 2, 2)),
    ],
)
@pytest.mark.parametrize("width", [200, 640])
def test_everything_lies_on_the_card(sharding, shape, width):
    found = scene(sharding, shape, width)
    for item in found.items:
        for x, y, w, h in item.boxes if isinstance(item, Boxes) else []:
            assert 0 <= x <= x + w <= found.width
            assert 0 <= y <= y + h <= found.height
        for x, y, text in item.texts if isinstance(item, Words) and item.anchor == "start" else []:
            assert 0 <= y <= found.height
            assert x + 5 * len(text) <= found.width
    picture = visualize(sharding, shape).svg(width)
    assert ElementTree.fromstring(picture).tag.endswith("svg")
    assert len(picture) < 70_000


def test_many_devices_are_shades():
    assert {item.style.name for item in scene(Sharding.tiled((12,)), (12,)).items if isinstance(item, Boxes)} == {
        *(f"order{i}" for i in range(12)),
        HOST.name,
    }


def test_a_picture_has_room_for_something():
    with pytest.raises(ValueError, match=r"width=100 is too small: .* at least 200 pixels"):
        scene(Sharding.tiled((2,)), (2,), 100)


def test_who_has_nothing_is_told_in_lines_that_fit():
    found = scene(Sharding.tiled((4, 4, 4, 8)), (100, 4, 5, 40))
    lines = [text for item in found.items if isinstance(item, Words) for _, _, text in item.texts]
    assert any(line.startswith("without elements: devices 24-31, 56-63") for line in lines)
    assert max(map(len, lines)) * 6 < 640


def test_names_of_columns_have_room_between_them():
    heads = next(
        item.texts
        for item in scene(Sharding.tiled((32, 16)), (100_000, 4096)).items
        if isinstance(item, Words) and item.anchor == "middle" and ":" in item.texts[0][2]
    )
    ends = [(x - 3.5 * len(text), x + 3.5 * len(text)) for x, _, text in heads if text]
    assert all(end < begin for (_, end), (begin, _) in itertools.pairwise(ends))
