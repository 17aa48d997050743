from __future__ import annotations

import warnings

import numpy as np
import pytest

from ringlet.sharding import ShardedArray, Sharding, shard, strict
from tests.sharding.sweep import outcome

ROWS, COLUMNS = Sharding.tiled((2, 1)), Sharding.tiled((1, 2))
A, B = np.arange(12.0).reshape(4, 3), np.arange(6.0).reshape(3, 2)


def test_out_of_dot_and_outer_is_written_to():
    out = shard(np.zeros((4, 2)), COLUMNS)
    assert np.dot(shard(A, ROWS), B, out=out) is out
    np.testing.assert_array_equal(np.asarray(out), A @ B)
    plain = np.zeros((4, 3))
    assert np.outer(shard(np.arange(4.0), Sharding.tiled((2,))), np.arange(3.0), out=plain) is plain
    np.testing.assert_array_equal(plain, np.outer(np.arange(4.0), np.arange(3.0)))


@pytest.mark.parametrize("axes", [1, [[1], [0]], (1, 0), (-1, -2), [[], []]])
def test_tensordot_takes_axes_in_every_form(axes):
    result = np.tensordot(shard(A, COLUMNS), shard(B, ROWS), axes)
    np.testing.assert_array_equal(np.asarray(result), np.tensordot(A, B, axes))


@pytest.mark.parametrize("axes", [3, [[1], [0, 1]], (5, 0), ([0, 0], [0, 0]), (0, 1.5)])
def test_tensordot_refuses_axes_as_numpy_does(axes):
    with pytest.raises(Exception) as expected:  # noqa: PT011  # whatever it is
        np.tensordot(A, B, axes)
    with pytest.raises(type(expected.value)):
        np.tensordot(shard(A, COLUMNS), shard(B, ROWS), axes)


def test_vdot_refuses_arrays_of_different_sizes():
    assert str(outcome(lambda: np.vdot(shard(A, ROWS), B))) == str(outcome(lambda: np.vdot(A, B)))


@pytest.mark.parametrize("other", [(12,), (3, 4), (2, 6)])
def test_vdot_takes_arrays_of_other_shapes_in_one_row(other):
    x, y = shard(A, ROWS), B.repeat(2).reshape(other)
    assert float(np.vdot(x, y)) == float(np.vdot(y, x)) == np.vdot(A, y)


def test_vdot_conjugates_the_first():
    x = np.array([1 + 2j, 3 - 1j])
    assert complex(np.vdot(shard(x, Sharding.tiled((2,))), x * 1j)) == np.vdot(x, x * 1j)


def test_lists_and_scalars_are_operands_too():
    np.testing.assert_array_equal(np.asarray(np.dot(shard(A, ROWS), B.tolist())), A @ B)
    np.testing.assert_array_equal(np.asarray(np.inner(2, shard(A, ROWS))), 2 * A)


@pytest.mark.parametrize("exponent", [1, 2, 7])
def test_powers_of_matrices_are_products_of_them(exponent):
    x = np.array([[1, 2], [3, 4]])
    found = np.linalg.matrix_power(shard(x, ROWS), exponent)
    np.testing.assert_array_equal(np.asarray(found), np.linalg.matrix_power(x, exponent))


def test_inverses_of_matrices_have_powers_too():
    x = np.array([[1.0, 2], [3, 4]])
    with strict():
        found = np.linalg.matrix_power(shard(x, ROWS), -1).numpy()
    np.testing.assert_allclose(found, np.linalg.inv(x))


@pytest.mark.parametrize("function", [np.dot, np.inner, np.outer, np.kron, np.matmul])
def test_products_of_square_matrices_stay_sharded(function):
    x = np.arange(16.0).reshape(4, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = function(shard(x, ROWS), x)
    assert isinstance(result, ShardedArray)
    np.testing.assert_array_equal(np.asarray(result), function(x, x))


@pytest.mark.skipif(not hasattr(np.linalg, "outer"), reason="came with NumPy 2.0")
def test_the_functions_of_linalg_are_those_of_numpy():
    x = shard(np.arange(4.0), Sharding.tiled((2,)))
    np.testing.assert_array_equal(np.asarray(np.linalg.outer(x, x)), np.outer(np.arange(4), np.arange(4)))
    np.testing.assert_array_equal(np.asarray(np.linalg.tensordot(x, x, axes=1)), 14)
    with pytest.raises(ValueError, match="one-dimensional"):
        np.linalg.outer(shard(A, ROWS), x)


def test_a_chain_overflows_where_numpys_does():
    a, b, c = np.full((2, 3), 99, np.int8), np.full((3, 2), 3, np.uint8), np.full((2, 2), 1.0)
    for chain in ((a, b, c), (a, b, c, c)):
        found = np.linalg.multi_dot([shard(chain[0], Sharding.tiled((2, 1))), *chain[1:]])
        np.testing.assert_array_equal(np.asarray(found), np.linalg.multi_dot(chain))


def test_numbers_times_durations_are_durations():
    days, numbers = np.arange(4).astype("m8[D]"), np.arange(1, 4)
    for function in (np.outer, np.kron):
        found = function(shard(days, Sharding.tiled((2,))), numbers)
        np.testing.assert_array_equal(np.asarray(found), function(days, numbers))
