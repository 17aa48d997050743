"""Who takes part in a collective, and which groups are boxes of the torus."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.tpu.cost.cost_groups import box_of, groups_of
from ringlet.tpu.cost.link_traffic import Network

TORUS = Network((8, 4, 1), (True, False, False))
PLACES = np.array([[x, y, 0, core] for x in range(8) for y in range(4) for core in range(2)])


def number(x: int, y: int, core: int = 0) -> int:
    """The device at a place."""
    return (x * 4 + y) * 2 + core


@pytest.mark.parametrize(
    ("axis", "groups"),
    [
        ("replica", [[0, 2, 4], [1, 3, 5]]),
        ("core", [[0, 1], [2, 3], [4, 5]]),
        ("all", [[0, 1, 2, 3, 4, 5]]),
    ],
)
def test_an_axis_says_who_belongs_together(axis, groups):
    assert groups_of(3, 2, axis).tolist() == groups


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        (
            [[0, 1], [2]],
            "non-empty lists of devices of equal length, got groups of 1 and 2 devices",
        ),
        ([], "groups must be one or more non-empty lists .*, got no groups"),
        ([[]], "got groups of 0 devices"),
        ([[0, 6]], "device 6, but devices are numbered 0 to 5"),
        ([[-1, 2]], "device -1"),
        ([[0, 1], [1, 2]], "device 1 twice"),
        ([[0.5, 1]], r"lists of device numbers \(replica .* core\), got an array of float64 and shape \(1, 2\)"),
    ],
)
def test_groups_that_cannot_be_are_refused(groups, words):
    with pytest.raises(ValueError, match=words):
        groups_of(3, 2, "replica", groups)


def test_an_unknown_axis_is_named():
    with pytest.raises(ValueError, match=r"'replica'.*'core'.*'all', got 'batch'"):
        groups_of(3, 2, "batch")


@pytest.mark.parametrize(
    ("group", "sizes", "is_ring"),
    [
        # devices, members along x, y, z and core, whether x is a ring
        ([number(x, 1) for x in range(8)], (8, 1, 1, 1), True),
        ([number(x, 1) for x in (0, 2, 4, 6)], (4, 1, 1, 1), True),
        ([number(x, 1) for x in (0, 1, 2, 3)], (4, 1, 1, 1), False),
        ([number(2, y) for y in range(4)], (1, 4, 1, 1), False),
        ([number(x, y, c) for c in (1, 0) for x in (5, 3) for y in (0, 2)], (2, 2, 1, 2), False),
    ],
)
def test_a_box_is_every_combination_of_a_few_coordinates(group, sizes, is_ring):
    box = box_of(np.array([group]), PLACES, TORUS)
    assert box is not None
    assert box.sizes == sizes
    assert box.closed == (is_ring, False, False, False)


@pytest.mark.parametrize(
    "groups",
    [
        [[number(0, 0), number(1, 1)]],
        [[number(0, 0), number(0, 1), number(1, 0)]],
        [[number(0, 0), number(0, 1), number(1, 1), number(1, 2)]],
        [[number(0, 0), number(1, 0)], [number(2, 0), number(2, 1)]],
    ],
)
def test_other_groups_are_no_boxes(groups):
    assert box_of(np.array(groups), PLACES, TORUS) is None


@given(order=st.permutations(range(12)))
def test_the_order_of_members_does_not_matter_for_a_box(order):
    group = np.array([number(x, y) for x in (1, 2, 4) for y in range(4)])
    ordered, shuffled = (box_of(some[None], PLACES, TORUS) for some in (group, group[list(order)]))
    assert ordered is not None
    assert shuffled is not None
    assert np.array_equal(ordered.devices, shuffled.devices)


def test_rows_go_along_one_axis():
    box = box_of(np.array([[number(x, y) for x in (0, 1) for y in (0, 1)]]), PLACES, TORUS)
    assert box is not None
    assert box.rows(0).tolist() == [[number(0, 0), number(1, 0)], [number(0, 1), number(1, 1)]]
    assert box.rows(1).tolist() == [[number(0, 0), number(0, 1)], [number(1, 0), number(1, 1)]]
