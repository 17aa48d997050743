"""Rings as paths over chips."""

from __future__ import annotations

import itertools

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
        ("cores", "path: the ring over the chips of each replica; every hop is one link"),
        ("auto", "path: the ring over the chips of each replica; every hop is one link"),
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


def labels_of(picture):
    """Left, right and middle of each number on a core."""
    for group in parsed(picture).iter(f"{SVG}g"):
        size = float(group.get("font-size", 0))
        for text in group if group.get("text-anchor") == "start" and size < 11.5 else ():
            if text.text.isdigit():
                left, y = float(text.get("x")), float(text.get("y"))
                yield left, left + 0.58 * size * len(text.text), y - 0.4 * size


def points_of(data):
    """Points of a path of lines and arcs, close to each other."""
    for part in filter(None, data.split("M")):
        ends = [tuple(map(float, point.split()[:2])) for point in part.split("Q")[0].split("L")]
        if "Q" in part:
            bent = list(map(float, part.split("Q")[1].split()))
            ends += [(bent[0], bent[1]), (bent[2], bent[3])]
            yield from (bezier(ends, step / 100) for step in range(101))
        else:
            for (ax, ay), (bx, by) in itertools.pairwise(ends):
                yield from ((ax + (bx - ax) * step / 100, ay + (by - ay) * step / 100) for step in range(101))


def bezier(ends, t):
    weights = (1 - t) ** 2, 2 * t * (1 - t), t * t
    return tuple(sum(weight * end[axis] for weight, end in zip(weights, ends, strict=True)) for axis in (0, 1))


@pytest.mark.parametrize("name", ["tpu7x-16", "tpu7x-128"])
def test_paths_over_two_cores_of_a_chip_run_clear_of_labels(name):
    picture = drawing.svg(assignment(name, (1, 1, 1, 1), int(name.split("-")[1])))
    points = [*points_of(path_of(picture, "ring20")), *points_of(path_of(picture, "long"))]
    labels = list(labels_of(picture))
    assert len(labels) == int(name.split("-")[1])
    struck = [label for label in labels for x, y in points if label[0] <= x <= label[1] and abs(y - label[2]) < 3]
    assert not struck


def test_paths_over_different_cores_do_not_lie_on_each_other():
    picture = drawing.svg(assignment("tpu7x-16", (2, 1, 1, 1), 8))
    lines = path_of(picture, "ring20").split("M")[1:]
    heights = {float(line.split("L")[0].split()[1]) for line in lines[:2]}
    assert len(heights) == 2
