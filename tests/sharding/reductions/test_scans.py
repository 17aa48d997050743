"""Running reductions, which tiles compute alone and complete by the ends of those before them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from ringlet.sharding import Sharding, explain, shard, strict
from tests.sharding.sweep import assemble

WHOLE = np.arange(35).reshape(7, 5)


def test_only_the_ends_of_tiles_are_sent():
    x = shard(WHOLE, Sharding.tiled((2, 4)))
    with explain() as report:
        found = np.cumsum(x, axis=0)
    assert found.sharding == x.sharding
    assert [[sent.kind for sent in each.collectives] for each in report.operations] == [["all-gather"]]
    assert report.nbytes == 2 * 5 * 8
    np.testing.assert_array_equal(assemble(found), WHOLE.cumsum(axis=0))


def test_the_order_matters_to_some_ufuncs():
    x = shard(WHOLE, Sharding.tiled((2, 1)))
    with explain() as report:
        found = np.subtract.accumulate(x, axis=0)
    assert found.sharding == x.sharding
    assert report.counts == {"all-to-all": 2}
    np.testing.assert_array_equal(assemble(found), np.subtract.accumulate(WHOLE, axis=0))


def test_a_scan_may_begin_with_the_identity():
    x = shard(WHOLE, Sharding.tiled((2, 4)))
    with strict():
        found = np.cumulative_sum(x, axis=0, include_initial=True)
    np.testing.assert_array_equal(assemble(found), np.cumulative_sum(WHOLE, axis=0, include_initial=True))


def test_nothing_is_sent_along_a_dimension_that_is_whole():
    with explain() as report:
        np.multiply.accumulate(shard(WHOLE, Sharding.tiled((1, 4))))
    assert [each.collectives for each in report.operations] == [()]


def test_a_single_number_runs_along_one_element():
    x = shard(np.array(3), Sharding.replicated(2))
    assert np.cumsum(x).tolist() == np.cumsum(x, axis=0).tolist() == [3]


@pytest.mark.skipif(not hasattr(np, "cumulative_sum"), reason="NumPy has it from 2.1 on")
def test_the_cumulative_functions_want_an_axis_where_there_are_several():
    x = shard(WHOLE, Sharding.tiled((2, 4)))
    np.testing.assert_array_equal(assemble(np.cumulative_sum(x, axis=1)), np.cumulative_sum(WHOLE, axis=1))
    np.testing.assert_array_equal(assemble(np.cumulative_prod(x[0])), np.cumulative_prod(WHOLE[0]))
    with pytest.raises(ValueError, match="axis"):
        np.cumulative_sum(x)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_slices_of_a_dimension_are_reduced(axis):
    found = np.add.reduceat(shard(WHOLE, Sharding.tiled((4, 2))), [0, 3, 1], axis=axis)
    np.testing.assert_array_equal(assemble(found), np.add.reduceat(WHOLE, [0, 3, 1], axis=axis))


def test_out_gets_the_result():
    x = shard(WHOLE, Sharding.tiled((2, 2)))
    out, plain = shard(np.zeros((7, 5)), Sharding.tiled((4, 1))), np.zeros((7, 5))
    assert np.cumsum(x, axis=1, out=out) is out
    assert np.cumsum(x, axis=1, out=plain) is plain
    np.testing.assert_array_equal(assemble(out), WHOLE.cumsum(axis=1))
    np.testing.assert_array_equal(plain, WHOLE.cumsum(axis=1))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: np.add.reduceat(x, [9]), IndexError, "out-of-bounds|out of bounds"),
        (lambda x: np.cumsum(x, axis=2), ValueError, "out of bounds"),
        (np.modf.accumulate, ValueError, "binary"),
    ],
)
def test_what_numpy_refuses_is_refused_alike(call, error, message):
    with pytest.raises(error, match=message):
        call(shard(WHOLE, Sharding.tiled((2, 2))))


@pytest.mark.parametrize("dtype", ["m8[s]", ">f4"])
def test_times_and_numbers_in_another_order_of_bytes_run_too(dtype):
    whole = WHOLE.astype(dtype)
    x = shard(whole, Sharding.tiled((2, 4)))
    for run in (
        lambda a: np.cumsum(a, axis=0),
        lambda a: np.maximum.accumulate(a, axis=1),
        lambda a: np.add.reduceat(a, [0, 3], axis=0),
        lambda a: np.cumsum(a, axis=0, out=np.empty_like(a)),
    ):
        np.testing.assert_array_equal(assemble(run(x)), run(whole))


@pytest.mark.parametrize("ufunc", [np.multiply, np.logical_or, np.true_divide])
def test_running_results_go_into_any_dtype_and_are_computed_as_numpy_does(ufunc):
    whole = np.array([1.5 + 1j, 2, 3, -0.25], np.complex64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of imaginary parts
        expected = ufunc.accumulate(whole, out=np.zeros(4, np.float32))
        found = ufunc.accumulate(shard(whole, Sharding.tiled((2,))), out=shard(np.zeros(4, "f4"), Sharding.tiled((2,))))
    np.testing.assert_array_equal(np.asarray(found), expected)


def test_a_plain_array_runs_into_a_sharded_one():
    out = shard(np.zeros(4), Sharding.tiled((2,)))
    assert np.cumsum(np.arange(4.0), out=out) is out
    assert np.asarray(out).tolist() == [0, 1, 3, 6]


def test_a_single_number_has_a_running_sum():
    x = shard(np.array(3), Sharding.replicated(2))
    if hasattr(np, "cumulative_sum"):
        assert np.cumulative_sum(x).tolist() == [3]
