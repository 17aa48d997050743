"""Slices in characters."""

from __future__ import annotations

import pytest

from ringlet.tpu import DeviceOrderMode, drawing
from tests.tpu.drawing.slices import assignment, degraded, some_loads, topology


def text(drawn, **options):
    return drawing.text(drawn, **options).splitlines()


def test_hosts_are_boxes_around_the_labels_of_their_devices():
    assert text(topology("v5litepod-16"))[1:] == [
        "┌───────────┬───────────┐",
        "│ 0:0   0:1 │ 1:0   1:1 │",
        "│           │           │",
        "│ 0:2   0:3 │ 1:2   1:3 │",
        "├───────────┼───────────┤",
        "│ 2:0   2:1 │ 3:0   3:1 │",
        "│           │           │",
        "│ 2:2   2:3 │ 3:2   3:3 │",
        "└───────────┴───────────┘",
        "a:b is device b of host a",
        "boxes: hosts; x goes right, y down; no axis wraps round",
    ]


def test_rings_are_thick_lines_with_arrows_where_they_leave_the_slice():
    assert text(assignment("v4-16", (2, 2, 2, 1), 1, megacore=True))[1:] == [
        "z = 0             z = 1",
        "┌─────────────┐   ┌─────────────┐",
        "│ 0.0↗━━━0.1  │   │ 0.7↙━━━0.6  │",
        "│         ┃   │   │         ┃   │",
        "│ 0.3↗━━━0.2  │   │ 0.4↙━━━0.5  │",
        "└─────────────┘   └─────────────┘",
        "",
        "a.b is logical core b of replica a",
        "boxes: hosts; x goes right, y down; no axis wraps round",
        "path: the ring over the chips of each replica; every hop is one link; ↗ leads to",
        "  z + 1, ↙ to z - 1, ↕ both",
    ]


def test_hops_that_wrap_round_leave_over_the_edges():
    ring = assignment("v4-128", (4, 1, 1, 1), 16, megacore=True)
    lines = text(ring, slices=[0])
    assert lines[2].startswith(" ┌")
    assert lines[3].startswith("━┿━0.0━━━━0.1━━┿━0.2━━━━0.3━━┿━")


def test_cores_of_hops_over_several_links_are_marked():
    rows = assignment("v5litepod-16", (1, 1, 1, 1), 16, DeviceOrderMode.MESH)
    assert text(rows)[2] == "│ 0!━━━━━1━━┿━━2━━━━3!  │"
    assert "4 of 16 hops are over more than one link" in " ".join(text(rows))


def test_missing_devices_are_crosses():
    lines = text(degraded())
    assert lines[3] == "│ 0:0   0:1 │   │ 1:0   1:1 │   │ 3:0   3:1 │      x     x"
    assert "x: no device there; boxes: hosts; x goes right, y down; no axis wraps round" in lines


def test_cores_without_a_replica_are_dots():
    lines = text(assignment("v3-8", (1, 1, 1, 1), 1))
    assert lines[2:5] == ["│ 0 ·   · · │", "│           │", "│ · ·   · · │"]
    assert "numbers: replicas; · is a core without a replica" in lines


def test_loads_are_digits_between_chips():
    slice_ = topology("v5e-4")
    # Links along x, two up and two down, and then along y.
    lines = text(slice_, loads=[9, 0, 3, 1, 0, 0, 0, 5])
    assert lines[1:6] == ["┌───────────┐", "│ 0:0 9 0:1 │", "│        5  │", "│ 0:2 1 0:3 │", "└───────────┘"]
    assert "1 to 9 between chips: the busier direction of a link, in ninths of 9 B" in lines
    assert lines[-1] == "busiest: (0, 0, 0) to (1, 0, 0) with 9 B"


def test_loads_of_links_that_wrap_stand_outside_and_those_along_z_behind_the_chip():
    lines = text(topology("v4-128", megacore=True), loads=[1.0] * 384, slices=[3])
    assert lines[2] == "     9        9        9        9"
    assert lines[4] == "9│ 12:0↗9 9 12:1↗9 9 13:0↗9 9 13:1↗9 │9"


def test_nothing_loaded_is_said():
    assert text(topology("v5e-4"), loads=[0] * 8)[-1] == "no link is used"


def test_chips_stand_closer_the_less_room_there_is():
    drawn = assignment("v5e-64", (2, 2, 1, 1), 16)
    assert text(drawn, width=80)[1].startswith("┌──────")
    assert text(drawn, width=40)[2] == " 0.0  0.1  1.0  1.1  2.0  2.1  3.0  3.1"
    assert text(drawn, width=20)[3:5] == ["replicas of 4 cores", "AABBCCDD"]
    assert "letters: replicas;" in " ".join(text(drawn, width=20))


@pytest.mark.parametrize(
    ("name", "replicas", "words"),
    [
        ("v5p-16x20x28", 0, "letters: hosts, from a to z and again from a"),
        ("v5p-16x20x28", 1, "digits: replicas; · is a chip without a replica"),
        ("v5p-16x20x28", 8960, "digits: tenths of the replicas, from 0 for the first"),
    ],
)
def test_what_single_characters_mean_is_said(name, replicas, words):
    drawn = topology(name, megacore=True)
    if replicas:
        drawn = assignment(name, (1, 1, 1, 1), replicas, DeviceOrderMode.MESH, megacore=True)
    assert words in text(drawn)


def test_slices_that_look_alike_are_drawn_once():
    pod = assignment("v5p-16x20x28", (4, 4, 4, 1), 140, megacore=True)
    titles = [line for line in text(pod) if line.startswith("z =")]
    assert titles[0].split("   ")[0] == "z = 0 to 3"
    assert "not shown" not in " ".join(text(pod))


def test_slices_that_find_no_room_are_left_out_and_counted():
    pod = assignment("v5p-16x20x28", (1, 1, 1, 1), 8960, DeviceOrderMode.MESH, megacore=True)
    assert len(text(pod)) < 70
    assert text(pod)[-1].endswith("slices are not shown; slices=[...] chooses them")
    assert "not shown" not in " ".join(text(pod, slices=range(28)))


def test_loads_of_a_pod_are_digits_on_its_chips():
    pod = topology("v5p-16x20x28", megacore=True)
    assert "digits: load of the busiest link of a chip" in text(pod, loads=some_loads(pod))
