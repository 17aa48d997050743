from __future__ import annotations

import pytest

from ringlet.sharding.layout.dim_sharding import coarser, covers, divisors, joint
from ringlet.sharding.layout.layout import WHOLE, Cut

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
