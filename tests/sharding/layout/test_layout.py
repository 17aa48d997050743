"""Where the tiles of an array are."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.sharding.layout.layout import WHOLE, Cut, Layout, coarser, covers, divisors, joint, tile_bounds

GRID = Layout(4, (Cut(2, (0, 0, 1, 1)), Cut(2, (0, 1, 0, 1))))
ROWS = Layout(4, (Cut(2, (0, 0, 1, 1)), WHOLE))
SUMS = Layout(4, (Cut(2, (0, 0, 1, 1)), WHOLE), Cut(2, (0, 1, 0, 1)))


@given(st.integers(0, 100), st.integers(1, 12))
def test_tiles_follow_each_other_and_all_but_the_last_ones_have_one_length(size, count):
    bounds = tile_bounds(size, count)
    assert [begin for begin, _ in bounds] == [0, *(end for _, end in bounds[:-1])]
    assert bounds[-1][1] == size
    lengths = [end - begin for begin, end in bounds]
    full = math.ceil(size / count)
    short = [length for length in lengths if length < full]
    assert lengths == [full] * (count - len(short)) + sorted(short, reverse=True)
    assert all(length == 0 for length in short[1:])


def test_each_device_has_a_box():
    assert [[(cut.start, cut.stop) for cut in box] for box in GRID.boxes((3, 4))] == [
        [(0, 2), (0, 2)],
        [(0, 2), (2, 4)],
        [(2, 3), (0, 2)],
        [(2, 3), (2, 4)],
    ]
    assert Layout(2, ()).boxes(()) == ((), ())


def test_one_device_may_have_all():
    layout = Layout(3, (WHOLE,), only=1)
    assert layout.boxes((5,)) == ((slice(0, 0),), (slice(0, 5),), (slice(0, 0),))
    assert list(layout.holders) == [1]
    assert list(GRID.holders) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("layout", "shape", "devices"),
    [
        (GRID, (4, 4), (0, 1, 2, 3)),
        (ROWS, (4, 4), (0, 2)),
        (SUMS, (4, 4), (0, 1, 2, 3)),
        (Layout.replicated(4, 2), (4, 4), (0,)),
        (Layout(3, (WHOLE,) * 2, only=2), (4, 4), (2,)),
    ],
)
def test_the_first_device_of_each_tile_computes_it(layout, shape, devices):
    assert layout.first_holders(shape) == devices


def test_only_a_layout_that_has_everything_everywhere_is_replicated():
    layouts = [Layout.replicated(4, 2), GRID, Layout(4, (WHOLE,), SUMS.parts), Layout(4, (WHOLE,), only=0)]
    assert [layout.is_replicated for layout in layouts] == [True, False, False, False]


def test_combined_parts_lie_in_the_same_tiles():
    assert SUMS.is_partial
    assert SUMS.without_parts() == ROWS
    assert ROWS.without_parts() is ROWS
    assert SUMS.with_cuts([WHOLE]) == Layout(4, (WHOLE,), SUMS.parts)


def test_layouts_are_equal_if_devices_have_the_same():
    assert len({GRID, Layout(4, GRID.cuts), ROWS}) == 2


X, Y = Cut(2, (0, 0, 1, 1)), Cut(2, (0, 1, 0, 1))


def test_the_first_of_joint_cuts_is_major():
    assert joint((X, WHOLE, Y)) == Cut(4, (0, 1, 2, 3))
    assert joint((Y, X)) == Cut(4, (0, 2, 1, 3))


def test_nothing_that_is_cut_is_whole():
    assert joint((WHOLE, WHOLE)) == WHOLE == joint(())


@pytest.mark.parametrize("cuts", [(), (WHOLE,), (X,), (X, Y), (Y, WHOLE, X), (joint((X, Y)),)])
def test_cuts_by_axes_of_their_own_cover_every_combination(cuts):
    assert covers(cuts)


@pytest.mark.parametrize("cuts", [(X, X), (joint((X, Y)), Y), (joint((Y, X)), WHOLE, X)])
def test_cuts_that_share_an_axis_leave_combinations_out(cuts):
    assert not covers(cuts)


def test_a_coarser_cut_has_neighbours_in_one_tile():
    assert coarser(joint((X, Y)), 2) == X
    assert coarser(joint((Y, X)), 2) == Y
    assert coarser(X, 1) == WHOLE


def test_divisors_come_from_the_largest_down():
    assert list(divisors(12)) == [12, 6, 4, 3, 2, 1]
