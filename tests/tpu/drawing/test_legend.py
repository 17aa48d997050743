"""What legends say."""

from __future__ import annotations

import pytest

from ringlet.tpu import DeviceOrderMode
from ringlet.tpu.drawing.hops import ring_hops
from ringlet.tpu.drawing.legend import legend_rows, ring_in_words, wraps_in_words
from ringlet.tpu.drawing.panel_layout import lay_out
from ringlet.tpu.drawing.subject import rings_of, subject_of
from tests.tpu.drawing.slices import assignment, degraded, some_loads, topology


def legend(drawn, rings="auto", loads=None):
    subject = subject_of(drawn, loads)
    layout = lay_out(subject, range(subject.shape[2]), 960)
    hops = [ring_hops(ring, subject.periods) for ring in rings_of(subject, rings)]
    return [row.words for row in legend_rows(subject, layout, hops)]


@pytest.mark.parametrize(
    ("name", "twisted", "said"),
    [
        ("v4-32", False, "no axis wraps round"),
        ("v5e-128", False, "wraps round along y"),
        ("v4-128", False, "wraps round along x, y, z"),
        ("v5p-4x4x8", True, "wraps round along x, y, z, twisted"),
    ],
)
def test_a_legend_says_which_axes_wrap(name, twisted, said):
    assert wraps_in_words(subject_of(topology(name, twisted=twisted))) == f"x goes right, y down; {said}"


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        (DeviceOrderMode.RING, "every hop is one link"),
        (DeviceOrderMode.MESH, "4 of 16 hops are over more than one link, the longest over 6"),
    ],
)
def test_a_legend_says_how_far_hops_are(mode, said):
    subject = subject_of(assignment("v5e-16", (1, 1, 1, 1), 16, mode))
    hops = [ring_hops(ring, subject.periods) for ring in rings_of(subject, "auto")]
    assert ring_in_words(subject, hops) == f"path: the ring over the replicas; {said}"


@pytest.mark.parametrize(
    ("replicas", "shape", "said"),
    [
        (1, (2, 2, 1, 1), "colour: the replica"),
        (4, (2, 2, 1, 1), "colour: the replica, from 0 to 3"),
        (16, (1, 1, 1, 1), "colour: the replica, from 0 to 15"),
    ],
)
def test_a_legend_says_what_colours_mean(replicas, shape, said):
    assert legend(assignment("v5e-16", shape, replicas))[0] == said


def test_a_legend_explains_only_what_is_there():
    assert legend(topology("v5e-16")) == [
        "a:b is device b of host a",
        "outline: the chips of one host",
        "x goes right, y down; no axis wraps round",
    ]
    assert "missing: no device there" in legend(degraded())


def test_loads_are_explained_class_by_class():
    slice_ = topology("v5e-4")
    said = legend(slice_, loads=some_loads(slice_))
    classes = ["1.4 MiB", "2.8 MiB", "4.2 MiB", "5.6 MiB", "7 MiB"]
    assert [row for row in said if "over a link" in row] == [f"up to {size} over a link" for size in classes]
