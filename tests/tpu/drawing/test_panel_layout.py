"""How large chips are drawn and where."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.tpu.drawing.panel_layout import lay_out
from ringlet.tpu.drawing.subject import subject_of
from tests.tpu.drawing.slices import topology


def laid_out(name, width=960, **options):
    subject = subject_of(topology(name, **options))
    return lay_out(subject, range(subject.shape[2]), width)


@pytest.mark.parametrize(
    ("name", "size"), [("v3-8", 44), ("v4-128", 44), ("v5e-256", 34), ("v3-2048", 18), ("v5p-16x20x28", 4)]
)
def test_chips_are_as_large_as_the_width_allows(name, size):
    layout = laid_out(name)
    assert layout.size == size
    assert layout.width <= 960


def test_a_narrower_picture_has_smaller_chips():
    sizes = [laid_out("v5e-256", width).size for width in (960, 600, 300)]
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == 3


@pytest.mark.parametrize("name", ["v3-8", "v4-64", "v5p-128", "v5p-512", "v5e-128"])
def test_no_two_chips_lie_on_one_another(name):
    layout = laid_out(name)
    corners = {
        layout.corner(x, y, panel)
        for panel in range(len(layout.slices))
        for x in range(len(layout.columns))
        for y in range(len(layout.rows))
    }
    lefts, tops = np.array(sorted(corners)).T
    assert len(corners) == topology(name).num_chips
    near = (np.abs(lefts[:, None] - lefts) < layout.size) & (np.abs(tops[:, None] - tops) < layout.size)
    assert near.sum() == len(corners)


def test_hosts_stand_further_apart_than_the_chips_of_one():
    columns = np.diff(laid_out("v5e-16").columns)
    assert columns[1] > columns[0] == columns[2]


@pytest.mark.parametrize(("name", "rows"), [("v4-128", [2, 2]), ("v4-32", [4]), ("v5p-16x20x28", [7, 7, 7, 7])])
def test_panels_stand_in_full_rows_where_they_can(name, rows):
    _, counts = np.unique(laid_out(name, megacore=True).origins[:, 1], return_counts=True)
    assert counts.tolist() == rows
