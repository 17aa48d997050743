"""Elementwise functions in the ways in which ufuncs are called; values and dtypes are in the sweep of operations."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.errors import ShardingError
from ringlet.sharding import ShardedArray, Sharding, explain, mode, shard
from ringlet.sharding.ops.elementwise import broadcast_shape, result_dtypes

VALUES = np.arange(12.0).reshape(4, 3)
ROWS, COLUMNS = Sharding.tiled((2, 1)), Sharding.tiled((1, 2))


@pytest.fixture(params=["shared", "copy"])
def x(request):
    with mode(request.param):
        yield shard(VALUES.copy(), ROWS)


@pytest.mark.parametrize("sharding", [ROWS, COLUMNS, Sharding.replicated(2), Sharding.maximal(1, 2)])
def test_a_result_goes_to_an_array_of_any_sharding(x, sharding):
    out = shard(np.zeros((4, 3)), sharding)
    assert np.add(x, 1, out=out) is out
    np.testing.assert_array_equal(out.numpy(), VALUES + 1)
    assert out.sharding == sharding


def test_a_result_goes_to_a_plain_array(x):
    out = np.zeros((4, 3), np.float32)
    assert np.add(x, 1, out=out) is out
    np.testing.assert_array_equal(out, VALUES + 1)
    assert np.add(VALUES, 1, out=x) is x
    np.testing.assert_array_equal(x.numpy(), VALUES + 1)


@pytest.mark.parametrize("sharding", [ROWS, COLUMNS, Sharding.replicated(2), Sharding.maximal(1, 2)])
def test_a_mask_of_another_sharding_leaves_the_rest_of_the_result_alone(x, sharding):
    mask = shard(VALUES % 2 == 0, sharding)
    for out in (shard(np.full((4, 3), -1.0), COLUMNS), np.full((4, 3), -1.0)):
        np.negative(x, where=mask, out=out)
        np.testing.assert_array_equal(np.asarray(out), np.where(VALUES % 2 == 0, -VALUES, -1))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: np.add(x, 1, out=np.zeros((1, 3))), ValueError, "non-broadcastable output operand with shape"),
        (lambda x: np.add(x, 1, out=shard(np.zeros((3, 4)), ROWS)), ValueError, "could not be broadcast together"),
        (lambda x: np.add(x, 1, out=shard(np.zeros((4, 3), int), ROWS)), TypeError, "Cannot cast ufunc 'add' output"),
        (lambda x: np.add(x, 1, out=shard(np.zeros((4, 4)), Sharding.tiled((4, 1)))), ValueError, "different device"),
        (lambda x: np.add(x, 1, where=x), TypeError, "Cannot cast array data"),
        (lambda x: np.add(x, 1, dtype="no dtype"), TypeError, "no dtype"),
        (lambda x: np.add(x, 1, nonsense=2), TypeError, "nonsense"),
        (np.add, TypeError, "argument"),
        (lambda x: np.add(x[1:], 1, out=x[:-1]), ShardingError, "read-only"),
    ],
)
def test_what_does_not_go_together_is_refused(x, call, error, message):
    with pytest.raises(error, match=message):
        call(x)
    np.testing.assert_array_equal(x.numpy(), VALUES)


def test_operands_may_be_what_the_result_goes_to(x):
    for operate in (lambda a: np.add(a, a[::-1], out=a), lambda a: np.divmod(a, 3, out=(a, None))[0]):
        a, expected = x.copy(), VALUES.copy()
        operate(a)
        operate(expected)
        np.testing.assert_array_equal(a.numpy(), expected)


def test_an_operation_is_one_line_of_a_report_with_all_that_it_sent(x):
    with explain() as report:
        np.divmod(x, shard(VALUES + 1, COLUMNS))
    assert [operation.name for operation in report.operations] == ["divmod"]
    assert report.nbytes > 0


def test_results_lie_as_the_larger_operand_does():
    x, y = shard(np.ones((8, 8)), ROWS), shard(np.ones((1, 8)), COLUMNS)
    assert (x + y).sharding == (y + x).sharding == ROWS
    assert type(x + y) is ShardedArray


def test_shapes_and_dtypes_are_asked_of_numpy():
    assert broadcast_shape([(3, 1), (1, 2), ()]) == (3, 2)
    with pytest.raises(ValueError, match=r"together with shapes \(2,\) \(3,\)"):
        broadcast_shape([(2,), (3,)])
    assert result_dtypes(np.divmod, [np.dtype("int8"), int], {}) == [np.dtype("int8")] * 2
    assert result_dtypes(np.add, [np.dtype("int8"), float], {"dtype": "float32"}) == [np.dtype("float32")]


@pytest.mark.parametrize("ufunc", [np.isfinite, np.isinf, np.isnan, np.signbit], ids=lambda ufunc: ufunc.__name__)
@pytest.mark.parametrize("turned", [lambda x: x, lambda x: x.T, lambda x: x[::-1, ::2]])
def test_truth_values_of_floats_are_right_in_memory_of_any_order(ufunc, turned):
    values = np.random.default_rng(0).standard_normal((8, 6)).astype(np.float32)
    values[1::2, ::2], values[::3, 1] = np.nan, np.inf
    expected = ufunc(turned(values).copy())
    for memory in ("shared", "copy"):
        for sharding in (Sharding.tiled((2, 3)), Sharding.tiled((1, 6)), Sharding.replicated(6)):
            with mode(memory):
                x = turned(shard(values.copy(), sharding))
                np.testing.assert_array_equal(np.asarray(ufunc(x)), expected)
                out = np.zeros_like(x, dtype=np.int8)
                np.testing.assert_array_equal(np.asarray(ufunc(x, out=out)), expected)
                np.testing.assert_array_equal(np.asarray(ufunc(x, out=out, where=x > 0)), expected)


@pytest.mark.parametrize("dtype", ["i4", "i8", "f4", "f8"])
def test_signs_change_in_tiles_of_one_column_that_lie_apart(dtype):
    whole = np.arange(256).reshape(32, 8).astype(dtype)
    for shape in ((8, 4), (32, 8)):
        part = whole[: shape[0], : shape[1]].copy()
        with mode("copy"):
            found = -shard(part, Sharding.tiled((1, shape[1])))
        np.testing.assert_array_equal(np.asarray(found), part * -1)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128", "int8", "uint8", "int64"])
def test_zero_is_added_to_sums_that_are_not_finished(dtype):
    x = (np.arange(32).reshape(4, 8) - 9).astype(dtype)
    rows, columns = shard(x, Sharding.tiled((1, 4))), shard(x.T.copy(), Sharding.tiled((4, 1)))
    product = np.asarray(rows @ columns)
    with explain() as report:
        total = sum([rows @ columns] * 3)
        less = [0 - (rows @ columns), (rows @ columns) - 0, (rows @ columns) + 0]
    assert report.nbytes == 0
    np.testing.assert_array_equal(np.asarray(total), product + product + product)
    for found, expected in zip(less, (0 - product, product, product), strict=True):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(np.asarray(found), expected)


def test_zero_that_is_added_to_negative_zeros_gives_what_numpy_gives():
    zeros = np.zeros((4, 4))
    negative = -(shard(zeros, Sharding.tiled((1, 4))) @ shard(zeros, Sharding.tiled((4, 1))))
    assert np.signbit(np.asarray(negative)).all()
    for call in (lambda x: 0 + x, lambda x: x + 0, lambda x: 0 - x, lambda x: x - 0):
        with explain() as report:
            found = call(negative)
        assert report.nbytes == 0
        assert np.signbit(np.asarray(found)).tolist() == np.signbit(call(-zeros)).tolist()


def test_other_numbers_are_added_to_finished_sums_only():
    x = np.ones((4, 4))
    for number in (1, -0.0, False, np.float64(0)):
        product = shard(x, Sharding.tiled((1, 4))) @ shard(x, Sharding.tiled((4, 1)))
        with explain() as report:
            found = number + product
        assert report.nbytes > 0
        np.testing.assert_array_equal(np.asarray(found), number + x @ x)
