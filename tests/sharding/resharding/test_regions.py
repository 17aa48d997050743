from __future__ import annotations

import itertools
import sys

import numpy as np
import pytest

from ringlet.sharding.layout.layout import WHOLE, Cut, Layout
from ringlet.sharding.resharding.regions import (
    Form,
    Held,
    Piece,
    Run,
    collectives_of,
    copies_between,
    held,
    plan_pieces,
    viewed_boxes,
)

ROWS = Layout(4, (Cut(4, (0, 1, 2, 3)),))
FLOAT = np.dtype("float32")


def test_a_run_tells_which_of_its_places_have_indices_of_a_tile():
    for start, step, length in itertools.product(range(5), range(-3, 4), range(5)):
        indices = [start + step * i for i in range(length)]
        for begin, end in itertools.combinations(range(9), 2):
            low, high = Run(start, step, length).within(begin, end)
            if min(indices, default=0) >= 0:
                assert list(range(low, high)) == [i for i, at in enumerate(indices) if begin <= at < end]


@pytest.mark.parametrize("run", [Run(0, 1, 5), Run(4, -1, 5), Run(4, -2, 3), Run(1, 3, 2), Run(2, 1, 0), Run(3, 0, 1)])
def test_the_key_of_a_run_takes_its_indices(run):
    assert np.arange(8)[run.key].tolist() == [run.start + run.step * i for i in range(run.length)]


def test_a_piece_is_seen_in_coordinates_of_the_result():
    seen = viewed_boxes(ROWS, (8,), Piece(0, (10,), (Run(7, -1, 8),)))
    assert seen.boxes == (((16, 18),), ((14, 16),), ((12, 14),), ((10, 12),))


def test_a_device_takes_what_it_has_itself():
    form = Form((8,), FLOAT, ROWS)
    assert plan_pieces((Piece(0, (0,), (Run(0, 1, 8),)),), (ROWS,), ((8,),), form).messages == ()


def test_devices_that_want_the_same_take_it_from_different_ones():
    twice = Layout(4, (Cut(2, (0, 0, 1, 1)),))
    other = Layout(4, (Cut(2, (1, 1, 0, 0)),))
    planned = copies_between([held(twice, (4,))], held(other, (4,)), FLOAT)
    assert [(m.source, m.target) for m in planned.messages] == [(2, 0), (3, 1), (0, 2), (1, 3)]
    assert planned.nbytes == 4 * 2 * 4


def test_parts_of_a_partial_array_stay_apart():
    partial = Layout(4, (Cut(2, (0, 1, 0, 1)),), parts=Cut(2, (0, 0, 1, 1)))
    whole = partial.with_cuts([WHOLE])
    planned = copies_between([held(partial, (4,))], held(whole, (4,)), FLOAT)
    assert {(m.source, m.target) for m in planned.messages} == {(1, 0), (0, 1), (3, 2), (2, 3)}


def test_empty_boxes_are_neither_sent_nor_wanted():
    planned = copies_between([held(ROWS, (2,))], Held((((0, 0),),) * 3 + (((0, 2),),), (0,) * 4), FLOAT)
    assert [(m.source, m.target) for m in planned.messages] == [(0, 3), (1, 3)]


def test_what_several_devices_need_is_a_broadcast_and_the_rest_permutations():
    planned = copies_between([held(ROWS, (8,))], Held((((0, 2),),) * 3 + (((0, 8),),), (0,) * 4), FLOAT)
    kinds = [(it.kind, it.groups or it.pairs) for it in planned.collectives]
    assert kinds == [
        ("broadcast", ((0, 1, 2, 3),)),
        ("collective-permute", ((1, 3),)),
        ("collective-permute", ((2, 3),)),
    ]
    assert collectives_of([], FLOAT) == ()


def test_of_an_array_without_dimensions_only_its_device_has_something():
    only = Layout(2, (), only=1)
    assert held(only, ()) == Held(((), ()), (-1, 0))
    copies = plan_pieces((Piece(0, (), ()),), (only,), ((),), Form((), FLOAT, Layout.replicated(2, 0)))
    assert [(copy.source, copy.target) for of_device in copies.of_device for copy in of_device] == [(1, 0), (1, 1)]


def calls_to_plan(side: int) -> int:
    """How many functions are called for each device to plan a slice of an array that is on a square of devices."""
    rows, columns = np.divmod(np.arange(side * side), side)
    layout = Layout(side * side, (Cut(side, tuple(rows.tolist())), Cut(side, tuple(columns.tolist()))))
    source, target = held(layout, (64, 64)), held(layout, (63, 64))
    events: list[str] = []
    sys.setprofile(lambda _, event, __: events.append(event))
    try:
        copies_between([source], target, FLOAT)
    finally:
        sys.setprofile(None)
    return len(events) // side**2


def test_a_device_of_many_takes_little_more_planning_than_one_of_few():
    assert calls_to_plan(16) < 2 * calls_to_plan(4)
