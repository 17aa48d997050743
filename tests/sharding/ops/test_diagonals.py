from __future__ import annotations

import numpy as np
import pytest

from ringlet.sharding import Sharding, explain, shard
from ringlet.sharding.ops.diagonals import merged
from tests.sharding.sweep import outcome

X = np.arange(24).reshape(4, 6)


@pytest.mark.parametrize("offset", [-5, -2, 0, 3, 6])
@pytest.mark.parametrize("tiles", [(2, 1), (1, 2), (4, 1)])
def test_every_diagonal_is_that_of_the_whole(offset, tiles):
    found = np.diagonal(shard(X, Sharding.tiled(tiles)), offset)
    np.testing.assert_array_equal(np.asarray(found), np.diagonal(X, offset))


def test_rows_on_devices_give_their_diagonals_without_traffic():
    x = shard(np.arange(16).reshape(4, 4), Sharding.tiled((4, 1)))
    with explain() as report:
        found = np.diagonal(x)
    assert (report.nbytes, str(found.sharding)) == (0, "{devices=[4]<=[4]}")


@pytest.mark.parametrize("axes", [(0, 1), (2, 0), (-1, -2)])
def test_the_diagonal_of_two_axes_is_the_last_dimension(axes):
    x = np.arange(60).reshape(3, 4, 5)
    found = np.diagonal(shard(x, Sharding.tiled((3, 1, 1))), 1, *axes)
    np.testing.assert_array_equal(np.asarray(found), np.diagonal(x, 1, *axes))


@pytest.mark.parametrize("axes", [(0, 0), (0, 2), (1, -1)])
def test_axes_that_are_no_two_are_refused_as_by_numpy(axes):
    expected = outcome(lambda: np.diagonal(X, 0, *axes))
    found = outcome(lambda: np.diagonal(shard(X, Sharding.tiled((2, 1))), 0, *axes))
    assert (type(found), str(found)) == (type(expected), str(expected))


def test_a_trace_has_the_dtype_of_a_sum():
    x = shard(X.astype("int8"), Sharding.tiled((2, 1)))
    assert np.trace(x).dtype == np.trace(X.astype("int8")).dtype
    assert int(np.trace(x)) == np.trace(X)


@pytest.mark.skipif(not hasattr(np.linalg, "diagonal"), reason="came with NumPy 2.0")
def test_linalg_takes_the_last_two_axes():
    x = np.arange(60).reshape(3, 4, 5)
    tiles = shard(x, Sharding.tiled((3, 1, 1)))
    np.testing.assert_array_equal(np.asarray(np.linalg.diagonal(tiles, offset=1)), np.linalg.diagonal(x, offset=1))
    np.testing.assert_array_equal(np.asarray(np.linalg.trace(tiles)), np.linalg.trace(x))


def test_dimensions_of_one_label_become_one():
    x = np.arange(54).reshape(3, 2, 3, 3)
    found, labels = merged(shard(x, Sharding.tiled((3, 1, 1, 1))), ("i", "j", "i", "i"))
    assert labels == ("i", "j")
    np.testing.assert_array_equal(np.asarray(found), np.einsum("ijii->ij", x))
