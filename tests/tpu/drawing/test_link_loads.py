"""Loads of links in pictures."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.tpu import drawing
from ringlet.tpu.drawing.subject import subject_of
from tests.tpu.drawing.slices import SVG, classes, parsed, some_loads, topology, words


def strokes(svg):
    """How many lines there are of each class of loads, samples of the legend left out."""
    found = {}
    for element in parsed(svg).iter(f"{SVG}path"):
        name = element.get("class", "")
        if name.startswith("load"):
            found.setdefault(name, []).append(element.get("d").count("M"))
    return {name: counts[0] for name, counts in found.items() if len(counts) > 1}


def test_loads_fall_into_fifths_of_the_highest():
    loads = subject_of(topology("v5e-4"), [0, 1, 20, 21, 40, 60, 80, 100]).loads
    assert loads.classes(5).tolist() == [0, 1, 1, 2, 2, 3, 4, 5]


@pytest.mark.parametrize("name", ["v5e-4", "v5e-16", "v5e-256"])
def test_each_link_within_a_slice_is_drawn_once_for_each_direction_and_end(name):
    slice_ = topology(name)
    picture = drawing.svg(slice_, loads=np.ones(len(slice_.links())))
    # Links that wrap show at both edges.
    assert strokes(picture) == {"load5": len(slice_.links()) + int(slice_.links().is_wrap.sum())}


def test_links_along_z_are_one_stroke_for_both_directions():
    slice_ = topology("v4-128", megacore=True)
    loads = np.where(slice_.links().axis == 2, 1.0, 0.0)
    assert strokes(drawing.svg(slice_, loads=loads)) == {"load5": 64}


def test_a_stroke_along_z_has_the_load_of_the_busier_direction():
    slice_ = topology("v4-16", megacore=True)
    links = slice_.links()
    up = (links.axis == 2) & (links.source < links.target)
    loads = np.where(up, 10.0, np.where(links.axis == 2, 1.0, 0.0))
    assert strokes(drawing.svg(slice_, loads=loads)) == {"load5": 4}


def test_links_without_load_are_not_coloured():
    slice_ = topology("v5e-16")
    picture = drawing.svg(slice_, loads=np.zeros(len(slice_.links())))
    assert not any(name.startswith("load") for name in classes(picture))
    assert "no link is used" in words(picture)


def test_the_busiest_link_is_named_with_how_many_are_as_busy():
    shown = words(drawing.svg(topology("v5e-4"), loads=[0, 5, 0, 5, 1, 1, 1, 1]))
    assert "busiest: (0, 1, 0) to (1, 1, 0) with 5 B, and 1 more with as much" in shown


def test_loads_that_differ_in_the_last_digit_are_equal():
    shown = words(drawing.svg(topology("v5e-4"), loads=[0, 5, 5 * (1 + 1e-15), 5, 1, 1, 1, 1]))
    assert "busiest: (0, 1, 0) to (1, 1, 0) with 5 B, and 2 more with as much" in shown


def test_chips_of_a_pod_are_coloured_by_their_busiest_link():
    pod = topology("v5p-16x20x28", megacore=True)
    picture = drawing.svg(pod, loads=some_loads(pod))
    assert {f"chip-load{i}" for i in range(1, 6)} <= classes(picture)
    assert any(word.startswith("colour: load of the busiest link of a chip") for word in words(picture))


def test_a_twisted_torus_shows_the_ends_of_a_link_in_their_slices():
    slice_ = topology("v5p-4x4x8", megacore=True, twisted=True)
    links = slice_.links()
    loads = np.where(links.is_wrap & (links.axis == 0), 1.0, 0.0)
    # One end of each of 2 * 4 * 8 links lies in the slice of z = 0 that begins or ends there.
    assert strokes(drawing.svg(slice_, loads=loads, slices=[0])) == {"load5": 16}
