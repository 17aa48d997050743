"""Reductions of tiles: partial results, pieces that are gathered, and dimensions that are gathered first."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.collectives import Op
from ringlet.sharding import Sharding, explain, mode, shard
from ringlet.sharding.reductions.reduction_execution import Reduction, normalized_axes, sum_tile, without_nan
from tests.sharding.sweep import assemble, placements, poisoned, tiled

WHOLE = np.arange(35).reshape(7, 5)
ROWS = placements("4", 2)[2]  # each device has rows: 2, 2, 2 and 1
COLUMNS = placements("4", 2)[1]


def add(tile, mask, out, where):
    np.add.reduce(tile, axis=0, out=out, keepdims=out.ndim == tile.ndim)


def test_tiles_of_a_reduced_dimension_give_a_partial_array():
    x = tiled(WHOLE, ROWS)
    with explain() as report:
        found = Reduction.of("sum", x, 0, False).combined(add, x.dtype, Op.SUM)
        assert [operation.collectives for operation in report.operations] == [()]
    assert x._layout.cuts[0].count == found._layout.parts.count == 4
    np.testing.assert_array_equal(assemble(found), WHOLE.sum(axis=0))


def test_nothing_is_partial_or_sent_along_a_dimension_that_is_whole():
    x = tiled(WHOLE, COLUMNS)
    with explain() as report:
        found = Reduction.of("sum", x, 0, True).combined(add, x.dtype, Op.SUM)
    assert not found._layout.is_partial
    assert found.shape == (1, 5)
    assert [operation.collectives for operation in report.operations] == [()]


def test_pieces_are_of_tiles_that_have_elements_in_their_order():
    seen = []

    def first(tile, mask, pieces, where):
        pieces[...] = where.operands[0][0].start

    def last(pieces, out):
        seen.append(pieces[:, 0].tolist())
        np.add.reduce(pieces, axis=0, out=out, keepdims=True)

    x = tiled(np.zeros((5, 2), int), ROWS)  # 2, 2, 1 and 0 rows
    found = Reduction.of("starts", x, 0, False).in_two_stages(first, int, last, int)
    assert seen == [[0, 2, 4]]
    assert assemble(found).tolist() == [6, 6]


def test_pieces_of_a_masked_array_are_gathered_in_one_collective():
    def first(tile, mask, pieces, where):
        pieces[...] = np.sum(tile, axis=(0, 1), where=mask, keepdims=True)

    def last(pieces, out):
        out[...] = pieces.sum()

    x, mask = tiled(WHOLE, ROWS), tiled(WHOLE[:1] % 2 == 0, placements("4", 2)[0])
    with explain() as report:
        found = Reduction.of("masked", x, None, False, mask).in_two_stages(first, int, last, int)
    assert int(found) == WHOLE[:, ::2].sum()
    assert [[sent.kind for sent in operation.collectives] for operation in report.operations] == [["all-gather"]]


def test_a_mask_that_is_cut_otherwise_is_moved_to_the_array():
    def count(tile, mask, out, where):
        out[...] = np.broadcast_to(mask, tile.shape).sum()

    x, mask = tiled(WHOLE, ROWS), tiled(WHOLE > 20, COLUMNS)
    assert int(Reduction.of("count", x, None, False, mask).combined(count, int, Op.SUM)) == 14


def test_a_mask_has_to_broadcast_to_the_array():
    with pytest.raises(ValueError, match=r"sum was given where= of shape \(2, 5\) for an array of shape \(7, 5\), to"):
        Reduction.of("sum", tiled(WHOLE, ROWS), 0, False, np.ones((2, 5), bool))


def test_a_dimension_that_must_not_be_cut_is_gathered_and_others_stay():
    x = tiled(WHOLE, next(each for each in placements("2x2", 2) if min(cut.count for cut in each.cuts) > 1))
    assert [cut.count for cut in x._layout.cuts] == [2, 2]
    found = Reduction.of("sum", x, 0, False).undivided(add, x.dtype)
    assert [cut.count for cut in found._layout.cuts] == [2]
    np.testing.assert_array_equal(assemble(found), WHOLE.sum(axis=0))


def test_shape_and_count_are_those_of_the_result():
    reduction = Reduction.of("sum", tiled(WHOLE, ROWS), -1, True)
    assert (reduction.shape, reduction.count, reduction.axes) == ((7, 1), 5, (1,))
    assert Reduction.of("sum", tiled(WHOLE, ROWS), None, False).shape == ()


def test_a_single_number_has_no_axes_and_takes_axis_0_as_numpy_does():
    assert normalized_axes(None, 0) == normalized_axes(0, 0) == ()


def test_the_sum_of_a_part_of_rows_keeps_the_digits_of_the_whole():
    part = np.full((1 << 18, 8), 0.1, np.float32)[:, :4]
    total, plain = np.empty((), np.float32), np.add.reduce(part, axis=(0, 1))
    sum_tile(part, (0, 1), total)
    exact = part.sum(dtype=np.float64)
    assert abs(total - exact) < abs(plain - exact) / 2


def test_nan_is_replaced_in_a_copy():
    tile = np.array([1, np.nan], np.float32)
    found = without_nan(tile, -np.inf)
    assert found.dtype == np.float32
    assert found.tolist() == [1, -np.inf]
    assert np.isnan(tile[1])
    assert without_nan(tile, None) is tile


@pytest.mark.parametrize("dtype", ["float32", "complex64", "float16", "int32"])
@pytest.mark.parametrize("tiles", [(2, 4, 2), (4, 1, 4), (1, 1, 8)])
def test_tiles_that_are_neighbours_in_memory_give_the_bits_that_each_gives_by_itself(dtype, tiles, monkeypatch):
    monkeypatch.setattr("ringlet.sharding.reductions.reduction_execution._BY_ROWS_BYTES", 0)
    whole = (np.random.default_rng(0).standard_normal((37, 11, 64)) * 50).astype(dtype)
    for columns in (61, 64):
        for axis in (0, 1, (0, 1), 2, (0, 2), (1, 2), None):
            for function in (np.sum, np.mean, np.max):
                found = []
                for memory in ("shared", "copy"):
                    with mode(memory), poisoned():
                        x = shard(whole[..., :columns].copy(), Sharding.tiled(tiles))
                        found.append(assemble(function(x, axis=axis)))
                np.testing.assert_array_equal(*found)
                np.testing.assert_allclose(found[0], function(whole[..., :columns], axis=axis), rtol=1e-2, atol=50)


def test_rows_of_tiles_are_reduced_first_and_nothing_is_sent_for_it(monkeypatch):
    monkeypatch.setattr("ringlet.sharding.reductions.reduction_execution._BY_ROWS_BYTES", 0)
    x = shard(np.arange(32.0).reshape(4, 8), Sharding.tiled((2, 4)))
    left = Reduction.of("sum", x, None, False).by_rows(np.add, x.dtype)
    assert left.x.shape == (4, 4)
    assert left.x._layout == x._layout
    np.testing.assert_array_equal(assemble(left.x), np.arange(32.0).reshape(4, 4, 2).sum(axis=-1))
    with explain() as report:
        assert float(x.sum()) == 496
    assert [[sent.kind for sent in each.collectives] for each in report.operations] == [[], ["all-reduce"]]


def test_tiles_that_are_neighbours_in_memory_stay_tiles_of_the_result():
    x = shard(WHOLE.astype(float), Sharding.tiled((2, 2)))
    total = x.sum(axis=0)
    assert total._layout.parts.count == total._layout.cuts[0].count == 2
    np.testing.assert_array_equal(assemble(total), WHOLE.sum(axis=0))
