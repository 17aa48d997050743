from __future__ import annotations

import warnings

import numpy as np
import pytest

from ringlet.errors import GatherWarning
from ringlet.sharding import Sharding, explain, shard, strict
from tests.sharding.sweep import outcome

STACK = np.random.default_rng(0).normal(size=(6, 3, 3)) + 4 * np.eye(3)
SYMMETRIC = STACK + STACK.transpose(0, 2, 1)
SPLIT = Sharding.tiled((4, 1, 1))


@pytest.mark.parametrize("name", ["det", "inv", "cholesky", "pinv", "matrix_rank", "eigvalsh", "svdvals"])
def test_each_device_computes_its_matrices(name):
    function = getattr(np.linalg, name, None)
    if function is None:
        pytest.skip("not in this version of NumPy")
    with explain() as report:
        found = function(shard(SYMMETRIC, SPLIT))
    assert report.nbytes == 0
    assert found.dtype == function(SYMMETRIC).dtype
    np.testing.assert_array_equal(np.asarray(found), function(SYMMETRIC))


def test_tiles_of_matrices_that_are_cut_move_to_the_stack():
    with strict(), explain() as report:
        found = np.linalg.inv(shard(STACK, Sharding.tiled((1, 3, 1))))
    assert report.counts == {"all-to-all": 1}
    np.testing.assert_array_equal(found, np.linalg.inv(STACK))


@pytest.mark.parametrize("shape", [(3,), (6, 3, 2), (1, 3, 1)])
def test_systems_of_equations_are_solved_where_they_are(shape):
    b = np.arange(float(np.prod(shape))).reshape(shape)
    found = np.linalg.solve(shard(STACK, SPLIT), b)
    np.testing.assert_array_equal(np.asarray(found), np.linalg.solve(STACK, b))


@pytest.mark.parametrize("wrong", [np.ones((4, 2, 3)), np.ones(3), np.full((4, 2, 2), "a")])
def test_what_has_no_inverse_is_refused_as_by_numpy(wrong):
    tiles = (2, *(1,) * (wrong.ndim - 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GatherWarning)
        found = outcome(lambda: np.linalg.inv(shard(wrong, Sharding.tiled(tiles))))
    expected = outcome(lambda: np.linalg.inv(wrong))
    assert (type(found), str(found)) == (type(expected), str(expected))


def test_cross_products_of_vectors_that_are_whole_send_nothing():
    a, b = np.random.default_rng(1).normal(size=(2, 5, 3))
    with explain() as report:
        found = np.cross(shard(a, Sharding.tiled((4, 1))), b)
    assert report.nbytes == 0
    np.testing.assert_array_equal(np.asarray(found), np.cross(a, b))


def test_cross_products_of_divided_vectors_are_gathered():
    a, b = np.arange(3.0), np.arange(6.0).reshape(2, 3)
    with pytest.warns(GatherWarning):
        found = np.cross(shard(a, Sharding.tiled((3,))), shard(b, Sharding.tiled((3, 1))), axis=-1)
    np.testing.assert_array_equal(np.asarray(found), np.cross(a, b))


@pytest.mark.parametrize("size", [0, 1, 5, 8])
def test_a_diagonal_makes_a_matrix_whose_rows_lie_as_it_does(size):
    x = shard(np.arange(size), Sharding.tiled((4,)))
    for found in (np.diag(x), np.diagflat(x)):
        np.testing.assert_array_equal(np.asarray(found), np.diag(np.arange(size)))
    assert np.diag(x)._layout.cuts[0] == x._layout.cuts[0]


def test_diag_of_a_matrix_is_its_diagonal():
    x = np.arange(12).reshape(3, 4)
    np.testing.assert_array_equal(np.asarray(np.diag(shard(x, Sharding.tiled((3, 1))), 1)), np.diag(x, 1))
