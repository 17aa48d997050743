"""One slice in characters."""

from __future__ import annotations

import numpy as np

from ringlet.tpu.drawing.panels import ClosePanel, TinyPanel, WidePanel, load_digits
from ringlet.tpu.drawing.subject import subject_of
from tests.tpu.drawing.slices import assignment, degraded, topology


def lines(panel, z=0):
    drawn = list(panel.draw(z).lines())
    assert len(drawn) == panel.height
    assert max(map(len, drawn)) <= panel.width
    return drawn


def test_a_wide_panel_has_a_box_for_each_host():
    subject = subject_of(topology("v3-8"))
    assert lines(WidePanel(subject, [], 2)) == [
        "┌───────────────────┐",
        "│ 0:0 0:1   0:2 0:3 │",
        "│                   │",
        "│ 0:4 0:5   0:6 0:7 │",
        "└───────────────────┘",
    ]


def test_a_close_panel_has_labels_in_columns():
    subject = subject_of(assignment("v5e-16", (1, 1, 1, 1), 16))
    assert lines(ClosePanel(subject, 4)) == [" 0  1  2  3", "15  6  5  4", "14  7  8  9", "13 12 11 10"]


def test_a_tiny_panel_has_one_character_for_each_core():
    assert lines(TinyPanel(subject_of(assignment("v3-8", (1, 1, 1, 2), 4)), 2, 2)) == ["0011", "3322"]
    assert lines(TinyPanel(subject_of(degraded()), 2, 4)) == ["aa", "aa", "xx", "xx"]


def test_a_tiny_panel_shows_only_the_columns_and_rows_that_it_is_given():
    assert lines(TinyPanel(subject_of(topology("v5e-16")), 3, 2)) == ["aab", "aab"]


def test_digits_are_ninths_of_the_highest_load_of_either_direction():
    slice_ = topology("v5e-4")
    inside, edges = load_digits(subject_of(slice_, [9, 1, 2, 8, 0, 0, 0, 0]))
    assert inside == {((0, 0, 0), 0): 9, ((0, 1, 0), 0): 8, ((0, 0, 0), 1): 0, ((1, 0, 0), 1): 0}
    assert edges == {}


def test_a_link_that_wraps_has_its_digit_at_both_edges():
    slice_ = topology("v5e-256")
    links = slice_.links()
    _, edges = load_digits(subject_of(slice_, np.where(links.is_wrap & (links.axis == 0), 1.0, 0.0)))
    ends = {key for key, digit in edges.items() if digit}
    assert ends == {((x, y, 0), 0, way) for y in range(16) for x, way in ((0, -1), (15, 1))}
