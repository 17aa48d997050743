"""Rings as paths over chips."""

from __future__ import annotations

import pytest

from ringlet.tpu import DeviceOrderMode, drawing
from tests.tpu.drawing.slices import SVG, assignment, classes, parsed, some_loads, words


def path_of(svg, name):
    """The data of the first path of a class; one more may be the legend's."""
    return next(element.get("d") for element in parsed(svg).iter(f"{SVG}path") if element.get("class") == name)


def test_a_ring_of_single_links_is_one_line():
    picture = drawing.svg(assignment("v5litepod-16", (1, 1, 1, 1), 16))
    assert path_of(picture, "ring20").count("M") == 1
    assert path_of(picture, "ring20").count("L") == 16
    assert "path: the ring over the replicas; every hop is one link" in words(picture)
    assert "long" not in classes(picture)


def test_hops_over_several_links_are_arcs_and_counted():
    picture = drawing.svg(assignment("v5litepod-16", (1, 1, 1, 1), 16, DeviceOrderMode.MESH))
    assert path_of(picture, "long").count("Q") == 4
    said = "path: the ring over the replicas; 4 of 16 hops are over more than one link, the longest over 6"
    assert said in words(picture)


def test_hops_along_z_leave_the_slice_at_both_ends():
    picture = drawing.svg(assignment("v4-16", (2, 2, 2, 1), 1, megacore=True))
    (knobs,) = [
        element for element in parsed(picture).iter(f"{SVG}g") if element.get("class") == "knob" and len(element) == 4
    ]
    assert knobs is not None


@pytest.mark.parametrize(
    ("rings", "said"),
    [
        ("cores", "path: the ring over the cores of each replica; every hop is one link"),
        ("auto", "path: the ring over the cores of each replica; every hop is one link"),
        ("replicas", "path: the ring over the replicas, logical core 0; 8 of 8 hops are over more than one link"),
    ],
)
def test_rings_are_those_that_were_asked_for(rings, said):
    shown = words(drawing.svg(assignment("v5p-128", (2, 2, 2, 1), 8, megacore=True), rings=rings))
    assert any(word.startswith(said) for word in shown)


def test_rings_can_be_left_out_and_loads_take_their_place():
    drawn = assignment("v5p-128", (2, 2, 2, 1), 8, megacore=True)
    for options in ({"rings": "none"}, {"loads": some_loads(drawn)}):
        assert not any(word.startswith("path:") for word in words(drawing.svg(drawn, **options)))
    both = drawing.svg(drawn, rings="cores", loads=some_loads(drawn))
    assert {"ring20", "load5"} <= classes(both)


def test_a_ring_too_small_to_see_is_described_all_the_same():
    pod = assignment("v5p-16x20x28", (4, 4, 4, 1), 140, megacore=True)
    assert any(word.endswith("(not drawn at this size)") for word in words(drawing.svg(pod)))
