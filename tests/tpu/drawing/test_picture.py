"""Scenes: what is drawn, and over what."""

from __future__ import annotations

from ringlet.tpu.drawing.picture import scene_of
from ringlet.tpu.drawing.scene import Hint
from tests.tpu.drawing.slices import assignment, some_loads, topology


def order(scene):
    return list(dict.fromkeys(item.style.name for item in scene.items if not isinstance(item, Hint)))


def test_paths_lie_over_chips_and_chips_over_links():
    names = order(scene_of(assignment("v5e-16", (2, 2, 1, 1), 4)))
    assert names.index("link") < names.index("chip") < names.index("colour0") < names.index("ring20")


def test_loads_lie_over_links_and_leave_chips_without_colour():
    slice_ = assignment("v5e-16", (2, 2, 1, 1), 4)
    names = order(scene_of(slice_, some_loads(slice_)))
    assert names.index("link") < names.index("load1") < names.index("load5")
    assert not any(name.startswith("colour") for name in names)


def test_many_chips_have_no_hints():
    assert any(isinstance(item, Hint) for item in scene_of(topology("v5e-256")).items)
    assert not any(isinstance(item, Hint) for item in scene_of(topology("v3-2048")).items)


def test_the_card_is_as_wide_as_its_longest_words():
    scene = scene_of(topology("v3-8"))
    assert scene.width > len(scene.title) * 6
    assert scene.description.startswith("a:b is device b of host a; outline: the chips of one host")
