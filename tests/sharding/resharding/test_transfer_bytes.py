from __future__ import annotations

import sys

import pytest

from ringlet.sharding import Mesh
from ringlet.sharding.layout.layout import WHOLE, Cut, Layout
from ringlet.sharding.layout.layout_of import layout_of
from ringlet.sharding.resharding.transfer_bytes import moved_bytes

X, Y, BOTH = Cut(2, (0, 0, 1, 1)), Cut(2, (0, 1, 0, 1)), Cut(4, (0, 1, 2, 3))
REPLICATED = Layout.replicated(4, 2)


@pytest.mark.parametrize(
    ("source", "target", "elements"),
    [
        # of an array of 4 by 4, 16 elements
        (REPLICATED, Layout(4, (X, Y)), 0),
        (Layout(4, (BOTH, WHOLE)), REPLICATED, 4 * 12),
        (Layout(4, (BOTH, WHOLE)), Layout(4, (X, WHOLE)), 4 * 4),
        (Layout(4, (BOTH, WHOLE)), Layout(4, (WHOLE, BOTH)), 4 * 3),
        (Layout(4, (X, WHOLE)), Layout(4, (Y, WHOLE)), 2 * 8),
        (Layout(4, (WHOLE, WHOLE), only=1), REPLICATED, 3 * 16),
        (Layout(4, (X, Y)), Layout(4, (WHOLE, WHOLE), only=1), 12),
        (Layout(4, (WHOLE, WHOLE), BOTH), REPLICATED, 2 * 3 * 16),
        (Layout(4, (WHOLE, WHOLE), BOTH), Layout(4, (WHOLE, BOTH)), 3 * 16),
        (Layout(4, (X, WHOLE), Y), Layout(4, (X, Y)), 16),
        (Layout(4, (X, WHOLE), Y), Layout(4, (X, WHOLE)), 2 * 16),
    ],
)
def test_devices_are_sent_what_they_lack(source, target, elements):
    assert moved_bytes((4, 4), 8, source, target) == elements * 8


def test_empty_arrays_and_tiles_cost_nothing():
    assert moved_bytes((0, 4), 8, Layout(4, (X, Y)), REPLICATED) == 0
    assert moved_bytes((1, 1), 8, Layout(4, (BOTH, WHOLE)), REPLICATED) == 3 * 8


def calls_to_count(side: int) -> int:
    """How many functions are called to count what a movement between devices in a square takes."""
    mesh, shape, events = Mesh({"x": side, "y": side}), (64, 64), []
    layouts = [layout_of(mesh.sharding(*axes, unreduced=parts), 2) for axes, parts in (("x", "y"), ("y", ()))]
    for layout in layouts:
        layout.boxes(shape)
    sys.setprofile(lambda _, event, __: events.append(event))
    try:
        moved_bytes.__wrapped__(shape, 4, *layouts)
    finally:
        sys.setprofile(None)
    return len(events)


def test_bytes_of_many_devices_are_counted_in_few_calls():
    calls_to_count(2)
    assert calls_to_count(20) < 2 * calls_to_count(4)
