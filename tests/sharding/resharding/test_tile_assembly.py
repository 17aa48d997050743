from __future__ import annotations

import numpy as np
import pytest

from ringlet.errors import ShardingError
from ringlet.sharding import Sharding, explain, mode, shard
from ringlet.sharding.layout.layout import Cut, Layout
from ringlet.sharding.resharding.regions import Form, Piece, Run, held, plan_pieces
from ringlet.sharding.resharding.tile_assembly import assembled, fill, full_runs, nothing_moves, picked, through, viewed
from tests.sharding.sweep import assembled as whole_of
from tests.sharding.sweep import poisoned, tiled

HALVES = Sharding.tiled((2,))
LAYOUT = Layout(2, (Cut(2, (0, 1)),))


def test_runs_are_seen_as_views():
    array = np.arange(12).reshape(3, 4)
    view = viewed(array, (Run(2, -1, 3), Run(1, 0, 5)))
    assert view.tolist() == [[9] * 5, [5] * 5, [1] * 5]
    assert np.shares_memory(view, array)
    assert viewed(np.array(3), ()).shape == ()


def test_what_is_picked_is_a_view_where_memory_is_shared():
    whole = np.arange(6)
    taken = picked("test", shard(whole, HALVES), (Run(1, 1, 4),), LAYOUT)
    assert taken.shards[1].tolist() == [3, 4]
    assert np.shares_memory(taken._tile(1), whole)


def test_what_is_picked_is_copied_where_it_is_not_and_nothing_else_is():
    with mode("copy"), explain() as report:
        taken = picked("test", shard(np.arange(6), HALVES), (Run(1, 1, 4),), LAYOUT)
    assert [shard.tolist() for shard in taken.shards] == [[1, 2], [3, 4]]
    assert report.nbytes == 0


@pytest.mark.parametrize("memory", ["shared", "copy"])
def test_what_is_picked_is_not_written_to(memory):
    with mode(memory):
        taken = picked("test", shard(np.arange(6), HALVES), (Run(3, 1, 3),), LAYOUT)
        with pytest.raises(ShardingError, match="read-only"):
            taken[0] = 1


def test_an_array_is_laid_out_as_that_form_says_for_which_the_least_is_sent():
    x = shard(np.arange(6), HALVES)
    pieces = [Piece(0, (0,), full_runs(x.shape))]
    forms = [Form((6,), x.dtype, layout) for layout in (Layout.replicated(2, 1), LAYOUT)]
    assert assembled("test", [x], pieces, forms)._layout == LAYOUT


def test_pieces_may_be_of_plain_arrays_and_of_other_dtypes():
    x = shard(np.arange(2), HALVES)
    pieces = [Piece(0, (0,), (Run(0, 1, 2),)), Piece(1, (2,), (Run(0, 0, 2),))]
    made = assembled("test", [x, np.array([0.5])], pieces, [Form((4,), np.dtype(float), LAYOUT)])
    assert [shard.tolist() for shard in made.shards] == [[0, 1], [0.5, 0.5]]


def test_devices_that_share_memory_write_a_box_once():
    x = shard(np.arange(4), Sharding.replicated(2))
    form = Form((4,), x.dtype, x._layout)
    piece = Piece(0, (0,), full_runs(x.shape))
    copies = plan_pieces((piece,), (x._layout,), (x.shape,), form)

    class Counting(np.ndarray):
        writes = 0

        def __setitem__(self, key, value):
            Counting.writes += 1
            super().__setitem__(key, value)

    place = np.zeros(4, int).view(Counting)
    fill(x._group, [place, place], held(form.layout, form.shape), [through(x, piece, 2)], copies)
    assert place.tolist() == [0, 1, 2, 3]
    assert Counting.writes == 1


def test_nothing_moves_between_devices_that_share_memory():
    x = shard(np.arange(4), HALVES)
    reversed_ = (Piece(0, (0,), (Run(3, -1, 4),)),)
    copies = plan_pieces(reversed_, (x._layout,), (x.shape,), Form((4,), x.dtype, LAYOUT))
    assert nothing_moves(x, copies)
    with mode("copy"):
        assert not nothing_moves(shard(np.arange(4), HALVES), copies)


@pytest.mark.parametrize("memory", ["shared", "copy"])
def test_a_number_of_one_device_is_written_everywhere(memory):
    with mode(memory), poisoned():
        one = tiled(np.array(5), Layout(3, (), only=1))
        for layout in (Layout.replicated(3, 0), Layout(3, (), only=2)):
            x = tiled(np.array(0), layout)
            x[...] = one
            assert whole_of(x) == 5
            assert whole_of(np.pad(one, 0)) == 5
