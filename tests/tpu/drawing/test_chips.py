"""Chips, hosts and words on them."""

from __future__ import annotations

import numpy as np

from ringlet.tpu import DeviceOrderMode, Topology, drawing
from ringlet.tpu.drawing.chips import rectangles
from tests.tpu.drawing.slices import SVG, assignment, classes, degraded, parsed, topology, words


def boxes(svg, name):
    """Rectangles of one class that have round corners."""
    groups = [group for group in parsed(svg).iter(f"{SVG}g") if group.get("class") == name]
    return [rect for group in groups for rect in group]


def test_each_host_has_an_outline_in_each_slice():
    assert len(boxes(drawing.svg(topology("v5e-16")), "host")) == 4
    assert len(boxes(drawing.svg(topology("v4-128", megacore=True)), "host")) == 16


def test_a_host_whose_chips_fill_no_rectangle_has_one_outline_for_each_chip():
    mask = np.array([[True, False], [True, True]])
    assert rectangles(mask) == [(0, 0, 0, 0), (1, 0, 1, 0), (1, 1, 1, 1)]
    assert rectangles(np.ones((2, 3), bool)) == [(0, 0, 1, 2)]


def test_missing_chips_are_crossed_out():
    picture = drawing.svg(degraded())
    assert len(boxes(picture, "missing")) == 8
    assert "missing: no device there" in words(picture)
    assert "missing" not in classes(drawing.svg(topology("v4-64")))


def test_one_missing_core_of_a_chip_is_crossed_out():
    coordinates = [[[0, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 1]]]
    picture = drawing.svg(Topology(mesh_shape=[2, 1, 1, 2], device_coordinates=coordinates))
    assert "missing" in classes(picture)
    assert [word for word in words(picture) if ":" in word][1:4] == ["0:0", "0:1", "0:2"]


def test_a_core_says_which_logical_core_of_which_replica_it_is():
    shown = words(drawing.svg(assignment("v3-8", (1, 1, 1, 2), 4)))
    assert {f"{replica}.{core}" for replica in range(4) for core in range(2)} <= set(shown)


def test_cores_without_a_replica_are_explained():
    shown = words(drawing.svg(assignment("v5e-16", (2, 2, 1, 1), 1)))
    assert "a core without a replica" in shown
    assert "a core without a replica" not in words(drawing.svg(assignment("v5e-16", (2, 2, 1, 1), 4)))


def test_who_points_at_a_chip_reads_what_it_is():
    picture = drawing.svg(assignment("v3-8", (1, 1, 1, 2), 4, DeviceOrderMode.MESH))
    hints = [title.text for title in parsed(picture).iter(f"{SVG}title")]
    said = "chip (1, 0, 0)\ncore 0: /task:0/device:TPU:2, replica 1, logical core 0\n"
    assert said + "core 1: /task:0/device:TPU:3, replica 1, logical core 1" in hints
    picture = drawing.svg(assignment("v4-8", (1, 1, 1, 1), 4, DeviceOrderMode.MESH, megacore=True))
    hints = [title.text for title in parsed(picture).iter(f"{SVG}title")]
    assert "chip (1, 0, 0)\n/task:0/device:TPU:1, replica 1, logical core 0" in hints


def test_axes_that_wrap_stick_out_of_the_edges():
    assert "stub" in classes(drawing.svg(topology("v5e-256")))
    assert "stub" not in classes(drawing.svg(topology("v5e-64")))
