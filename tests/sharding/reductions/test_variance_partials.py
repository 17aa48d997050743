"""Counts, means and spreads of tiles, put together."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.sharding import Sharding, explain, mode, shard
from ringlet.sharding.reductions.reduction_execution import Reduction
from ringlet.sharding.reductions.variance_partials import from_moments, moment_dtype


@pytest.mark.parametrize("tiles", [2, 3, 8])
def test_moments_of_tiles_are_those_of_the_whole(tiles):
    whole = np.random.default_rng(0).standard_normal(7) * 3 + 100
    found = {}

    def finish(count, mean, spread):
        found.update(count=count.item(), mean=mean.item(), spread=spread.item())
        return spread

    reduction = Reduction.of("moments", shard(whole, Sharding.tiled((tiles,))), None, False)
    from_moments(reduction, finish, whole.dtype, whole.dtype, out=None, skips_nan=False)
    expected = {"count": 7, "mean": whole.mean(), "spread": ((whole - whole.mean()) ** 2).sum()}
    assert found == pytest.approx(expected, rel=1e-13)


def test_the_spread_of_numbers_far_from_0_keeps_its_digits():
    whole = np.arange(1000.0) + 1e9
    found = float(np.var(shard(whole, Sharding.tiled((8,)))))
    assert found == pytest.approx((1000**2 - 1) / 12, rel=1e-9)


def test_a_tile_of_which_nothing_counts_changes_nothing():
    whole = np.array([np.nan, np.nan, 1.0, 3.0])
    x = shard(whole, Sharding.tiled((2,)))
    assert (float(np.nanmean(x)), float(np.nanvar(x))) == (2.0, 1.0)


def test_moments_of_complex_numbers_have_real_spreads():
    assert moment_dtype(np.dtype("complex128"))["spread"] == np.float64
    whole = np.array([1 + 1j, 3 - 1j, 5, 2j])
    assert float(np.var(shard(whole, Sharding.tiled((4,))))) == pytest.approx(np.var(whole))


def test_all_moments_are_gathered_at_once():
    with explain() as report:
        np.std(shard(np.arange(12.0).reshape(4, 3), Sharding.tiled((4, 1))), axis=0)
    assert [[sent.kind for sent in each.collectives] for each in report.operations] == [["all-gather"]]


@pytest.mark.parametrize("function", [np.var, np.std, np.nanvar, np.nanstd])
def test_where_a_reduced_dimension_is_cut_moments_are_sent_in_place_of_elements(function):
    values = np.arange(400.0).reshape(40, 10)
    x = shard(values, Sharding.tiled((4, 1)))
    with mode("copy"), explain() as report:
        found = function(x)
    assert float(found) == pytest.approx(function(values))
    assert report.nbytes < values.nbytes / 5
