from __future__ import annotations

import warnings

import numpy as np
import pytest

from ringlet.sharding import ShardedArray, Sharding, explain, shard, strict
from ringlet.sharding.ops.pointwise import apply_pointwise, operand

HALVES = Sharding.tiled((2,))


def test_a_function_sees_tiles_of_operands_that_are_broadcast_together():
    seen = []

    def function(a, b, c):
        seen.append((np.shape(a), np.shape(b), c))
        return np.add(a, b) * c

    x = shard(np.arange(4.0), HALVES)
    made = apply_pointwise("test", function, [x, np.ones((3, 1)), 2])
    assert made.shape == (3, 4)
    assert seen[-2:] == [((2,), (3, 1), 2)] * 2


def test_what_is_the_same_for_all_tiles_is_sent_to_all_devices():
    x = shard(np.array([1, 5]), HALVES)
    with strict(), explain() as report:
        assert np.isin(x, x).all()
    assert report.counts["all-gather"] == 1


def test_numbers_are_changed_in_place_only_where_no_copy_is_wanted():
    x = shard(np.array([np.nan, 1.0]), HALVES)
    assert np.asarray(np.nan_to_num(x)).tolist() == [0.0, 1.0]
    assert np.isnan(np.asarray(x)).tolist() == [True, False]
    assert np.nan_to_num(x, copy=False) is x
    assert np.asarray(x).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("out", [shard(np.zeros(2), HALVES), np.zeros(2)])
def test_the_result_goes_where_it_is_asked_to_go(out):
    assert np.round(shard(np.array([1.26, 2.5]), HALVES), 1, out=out) is out
    assert np.asarray(out).tolist() == [1.3, 2.5]


def test_python_numbers_do_not_change_the_dtype():
    made = np.isclose(shard(np.ones(2, np.float32), HALVES), 1)
    assert (made.dtype, type(made)) == (bool, ShardedArray)
    assert np.interp(shard(np.array([0.5, 2.0]), HALVES), [0, 1], [0, 10]).shards[0].tolist() == [5.0]


def test_lists_are_arrays_and_numbers_stay_numbers():
    assert type(operand([1, 2])) is np.ndarray
    assert type(operand(2)) is int


def test_parts_of_complex_numbers_are_views():
    whole = np.array([1 + 2j, 3 + 4j])
    x = shard(whole, HALVES)
    assert np.shares_memory(np.real(x)._tile(0), whole)
    assert np.imag(x).shards[1].tolist() == [4.0]


def test_isclose_warns_once_of_a_tolerance_that_is_not_a_number():
    told = []
    for x in (np.arange(4.0), shard(np.arange(4.0), Sharding.tiled((2,)))):
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            np.testing.assert_array_equal(np.isclose(x, x + 1, rtol=np.nan), [False, False, False, False])
        told.append([str(warning.message) for warning in warned])
    assert told[1] == told[0]  # nothing before NumPy 2.2


def test_tolerances_of_isclose_may_be_arrays():
    x, y, near = np.array([2.1, 2.1, 5, 5]), np.array([2, 2, np.nan, 5]), [0.11, 0.09, 1, 0]
    found = np.isclose(shard(x, Sharding.tiled((2,))), y, atol=near, rtol=0)  # type: ignore[arg-type]
    assert found.tolist() == np.isclose(x, y, atol=near, rtol=0).tolist() == [True, False, False, True]
