from __future__ import annotations

import numpy as np
import pytest

from ringlet.errors import GatherWarning, ShardingError
from ringlet.sharding import Sharding, shard

ROWS = Sharding.tiled((2, 1))


@pytest.mark.parametrize(
    "write",
    [
        lambda x: np.fill_diagonal(x, 7),
        lambda x: np.fill_diagonal(a=x, val=7),
        lambda x: np.put(x, [1, 4], [8, 9]),
        lambda x: np.place(x, x > 4, [1, 2]),
        lambda x: np.putmask(x, x > 4, -x),
        lambda x: np.put_along_axis(x, np.array([[0, 1, 2]]), 5, axis=0),
    ],
)
def test_what_is_written_is_laid_out_again(write):
    whole, expected = np.arange(9).reshape(3, 3), np.arange(9).reshape(3, 3)
    x = shard(whole, ROWS)
    with pytest.warns(GatherWarning):
        write(x)
    write(expected)
    np.testing.assert_array_equal(np.asarray(x), expected)
    np.testing.assert_array_equal(whole, expected)


def test_a_plain_array_is_written_to_at_places_that_are_sharded():
    whole = np.zeros(4)
    with pytest.warns(GatherWarning, match=r"np\.put"):
        np.put(whole, shard(np.array([0, 2]), Sharding.tiled((2,))), 5)
    assert whole.tolist() == [5, 0, 5, 0]


def test_slices_are_not_written_to():
    with pytest.raises(ShardingError, match="read-only"):
        np.put(shard(np.zeros((4, 2)), ROWS)[1:], [0], 1)


@pytest.mark.parametrize(
    "quantile",
    [
        lambda x: np.median(x, overwrite_input=True),
        lambda x: np.nanmedian(x, 0, None, True),
        lambda x: np.percentile(x, 30, overwrite_input=True),
        lambda x: np.nanquantile(x, 0.3, axis=1, overwrite_input=True),
    ],
)
def test_quantiles_may_overwrite_their_input(quantile):
    values = np.array([[3.0, 1.0, 2.0], [7.0, 9.0, 8.0]])
    x = shard(values.copy(), Sharding.tiled((2, 1)))
    with pytest.warns(GatherWarning):
        found = quantile(x)
    np.testing.assert_array_equal(found, quantile(values.copy()))
    np.testing.assert_array_equal(x, values)
