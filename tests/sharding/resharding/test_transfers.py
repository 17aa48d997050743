"""Which boxes devices send each other."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.sharding import Mesh
from ringlet.sharding.layout.layout import WHOLE, Cut, Layout
from ringlet.sharding.layout.layout_of import layout_of
from ringlet.sharding.resharding.transfers import (
    box_size,
    components,
    messages_for,
    moved_bytes,
    needed_boxes,
    tile_holders,
)
from tests.sharding.every_layout import layouts

LAYOUTS = [layout for mesh in [(2,), (3,), (2, 2)] for layout in layouts(mesh, 2) if not layout.is_partial]


def boxes(shape: tuple[int, ...]) -> st.SearchStrategy[tuple[slice, ...]]:
    sides = [st.tuples(st.integers(0, size), st.integers(0, size)).map(sorted) for size in shape]
    return st.tuples(*sides).map(lambda bounds: tuple(slice(*bound) for bound in bounds))


@given(data=st.data(), layout=st.sampled_from(LAYOUTS), shape=st.tuples(st.integers(0, 7), st.integers(0, 5)))
def test_each_device_is_sent_what_it_lacks_and_nothing_twice(data, layout, shape):
    count = layout.num_devices
    wanted = data.draw(st.lists(st.none() | boxes(shape), min_size=count, max_size=count))
    held = needed_boxes(layout, shape)
    arrived = np.zeros((count, *shape), int)
    for source, target, box in messages_for(shape, layout, wanted):
        has = np.zeros(shape, bool)
        has[held[source]] = True
        assert has[box].all()
        arrived[target][box] += 1
    for device, (own, box) in enumerate(zip(held, wanted, strict=True)):
        lacks = np.zeros(shape, int)
        if box is not None:
            lacks[box] = 1
            if own is not None:
                lacks[own] = 0
        np.testing.assert_array_equal(arrived[device], lacks)


def test_parts_are_sent_to_devices_of_the_same_part():
    layout = Layout(4, (Cut(2, (0, 1, 0, 1)),), parts=Cut(2, (0, 0, 1, 1)))
    messages = messages_for((4,), layout, [(slice(0, 4),)] * 4)
    assert [(message.source, message.target) for message in messages] == [(1, 0), (0, 1), (3, 2), (2, 3)]


def test_devices_with_copies_send_within_groups_of_their_own():
    rows = Layout(4, (Cut(2, (0, 0, 1, 1)),))
    messages = messages_for((4,), rows, [(slice(0, 4),)] * 4)
    assert components((m.source, m.target) for m in messages) == ((0, 2), (1, 3))


def test_the_nearest_of_several_devices_sends():
    hops = [[0, 5, 1], [5, 0, 1], [1, 1, 0]]
    layout = Layout(3, (Cut(2, (0, 0, 1)),))
    assert messages_for((2,), layout, [None, None, (slice(0, 2),)], hops)[0].source == 0
    hops[0][2] = 2
    assert messages_for((2,), layout, [None, None, (slice(0, 2),)], hops)[0].source == 1


def test_devices_that_have_nothing_hold_no_tile_and_want_no_box():
    layout = Layout(3, (WHOLE,), only=1)
    assert tile_holders(layout) == ({(0, 0): [1]}, [None, (0, 0), None])
    assert needed_boxes(layout, (4,)) == (None, (slice(0, 4),), None)


@pytest.mark.parametrize(("box", "size"), [((), 1), ((slice(3, 3),), 0), ((slice(1, 3), slice(0, 4)), 8)])
def test_the_size_of_a_box_is_how_many_elements_it_has(box, size):
    assert box_size(box) == size


def test_pairs_join_devices_to_groups():
    assert components([(5, 1), (2, 3), (1, 2), (4, 4)]) == ((1, 2, 3, 5), (4,))


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
