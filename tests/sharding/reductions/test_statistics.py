"""Means, variances and averages, beyond what the sweep of operations tries."""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pytest

from ringlet.errors import GatherWarning
from ringlet.sharding import Mesh, Sharding, explain, mode, shard
from ringlet.sharding.reductions.reduction_execution import Reduction
from ringlet.sharding.reductions.statistics import from_moments, moment_dtype


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


WHOLE = np.arange(35.0).reshape(7, 5)


@pytest.fixture
def x():
    return shard(WHOLE, Sharding.tiled((4, 2)))


def test_a_mean_is_partial_until_it_is_used(x):
    with explain() as report:
        mean = x.mean()
    assert [each.collectives for each in report.operations] == [()]
    assert mean._layout.is_partial
    assert float(mean) == 17


@pytest.mark.parametrize("dtype", [bool, np.int64, np.uint8])
def test_means_of_whole_numbers_are_those_of_numpy_to_the_bit(dtype):
    mesh = Mesh({"x": 4})
    for size in (35, 49, 55):
        assert float(shard(np.ones(size, dtype), mesh.sharding("x")).mean()) == 1
        numbers = np.arange(2 * size).reshape(2, size).astype(dtype)
        found = shard(numbers, mesh.sharding(None, "x")).mean(axis=1)
        np.testing.assert_array_equal(np.asarray(found), numbers.mean(axis=1))


def test_means_of_integers_and_of_half_precision_have_the_dtypes_of_numpy():
    for dtype in ("int8", "bool", "float16", "float32", "complex64"):
        whole = np.ones(10, dtype)
        found = np.mean(shard(whole, Sharding.tiled((4,))))
        assert (found.dtype, found.tolist()) == (whole.mean().dtype, 1)


def test_many_half_precision_numbers_do_not_overflow_before_they_are_divided():
    assert float(np.mean(shard(np.full(4000, 60.0, np.float16), Sharding.tiled((2,))))) == 60


@pytest.mark.parametrize("function", [np.mean, np.nanmean, np.var, np.std, np.nanvar, np.nanstd])
def test_of_nothing_there_is_a_warning_and_nan(function):
    x = shard(np.zeros((4, 2))[:0], Sharding.tiled((2, 1)))
    with pytest.warns(RuntimeWarning):
        assert np.isnan(np.asarray(function(x, axis=0))).all()


@pytest.mark.parametrize("name", ["nanmax", "nanmin"])
def test_an_extreme_of_nothing_but_nan_is_nan_with_a_warning(name):
    x = shard(np.array([[np.nan, 1], [np.nan, 2]]), Sharding.tiled((2, 1)))
    with pytest.warns(RuntimeWarning, match="All-NaN"):
        assert np.isnan(np.asarray(getattr(np, name)(x, axis=0))).tolist() == [True, False]


def test_more_degrees_of_freedom_than_numbers_give_what_numpy_gives(x):
    few = WHOLE[:2]
    for function in (np.var, np.nanvar):
        with pytest.warns(RuntimeWarning):
            expected = function(few, axis=0, ddof=2)
        with pytest.warns(RuntimeWarning):
            found = function(shard(few, Sharding.tiled((2, 1))), axis=0, ddof=2)
        np.testing.assert_array_equal(np.asarray(found), expected)


def test_a_variance_about_a_mean_that_is_given_is_gathered(x):
    with pytest.warns(GatherWarning, match="np.var"):
        assert np.var(x, mean=np.zeros((1, 1))) == np.var(WHOLE, mean=np.zeros((1, 1)))


def test_weights_that_sum_to_zero_are_refused(x):
    with pytest.raises(ZeroDivisionError):
        np.average(x, axis=0, weights=np.zeros(7))


@pytest.mark.parametrize(
    ("axis", "weights", "error", "message"),
    [
        (None, np.ones(7), TypeError, "Axis must be specified"),
        (0, np.ones(5), ValueError, r"weights have shape \(5,\), but a has shape \(7,\) along axis 0"),
    ],
)
def test_weights_have_to_fit(x, axis, weights, error, message):
    with pytest.raises(error, match=message):
        np.average(x, axis=axis, weights=weights)


def test_weights_of_some_dimensions_are_spread_over_the_others():
    whole = np.arange(24.0).reshape(2, 3, 4)
    weights = np.arange(8.0).reshape(4, 2)
    expected, scale = np.average(whole, axis=(2, 0), weights=weights, returned=True)
    found, found_scale = np.average(
        shard(whole, Sharding.tiled((2, 1, 2))), axis=(2, 0), weights=weights, returned=True
    )
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-14)
    np.testing.assert_array_equal(np.asarray(found_scale), scale)


def test_an_average_without_weights_counts_its_elements(x):
    average, count = np.average(x, axis=0, returned=True)
    np.testing.assert_array_equal(np.asarray(average), WHOLE.mean(axis=0))
    assert np.asarray(count).tolist() == [7.0] * 5


@pytest.mark.parametrize("function", [np.sum, np.max, np.mean, np.var, np.argmax, np.nanmax, np.average])
def test_what_is_true_keeps_dimensions(x, function):
    assert function(x, axis=0, keepdims=1).shape == (1, 5)
    assert function(x, axis=0, keepdims=np._NoValue).shape == (5,)


def test_what_is_not_zero_is_counted_once_parts_are_combined():
    total = shard(np.arange(12).reshape(4, 3) - 3, Sharding.tiled((4, 1))).sum(axis=0)
    assert total._layout.is_partial
    assert int(np.count_nonzero(total - 6)) == np.count_nonzero((np.arange(12).reshape(4, 3) - 3).sum(0) - 6)


def test_the_variance_of_numbers_in_another_order_of_bytes_is_theirs(x):
    assert float(np.var(x.astype(">f8"))) == pytest.approx(float(np.var(WHOLE)))


@pytest.mark.parametrize("function", [np.nanvar, np.nanstd])
def test_integers_have_no_nan_to_leave_out_even_with_more_degrees_of_freedom_than_numbers(function):
    whole = np.arange(6).reshape(3, 2)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        expected = function(whole, axis=0, ddof=9)
        found = np.asarray(function(shard(whole, Sharding.tiled((3, 1))), axis=0, ddof=9))
    np.testing.assert_array_equal(found, expected)


def test_means_that_go_into_an_array_are_as_exact_as_that():
    whole = np.array([0.3, 1.7, 2.9], np.float16)
    found = np.mean(shard(whole, Sharding.tiled((3,))), out=shard(np.zeros(()), Sharding.replicated(3)))
    assert float(found) == float(np.mean(whole, out=np.zeros(())))


def test_an_average_along_an_axis_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="axis 0 is out of bounds"):
        np.average(shard(np.array(1.0), Sharding.replicated(2)), 0)


def test_infinite_numbers_have_a_mean_without_a_warning():
    whole = np.array([np.inf, 1, np.inf, 2])
    x = shard(whole, Sharding.tiled((2,)))
    assert [float(np.nanmean(x)), float(np.mean(x, where=[True, True, False, False]))] == [np.inf, np.inf]


@pytest.mark.filterwarnings("ignore::ringlet.errors.GatherWarning")
def test_the_average_of_objects_is_an_object():
    values = np.array([Fraction(1, 2), Fraction(1, 3)])
    assert np.average(shard(values, Sharding.tiled((2,)))) == Fraction(5, 12)


@pytest.mark.parametrize("function", [np.median, np.nanmedian, lambda x, axis: np.nanpercentile(x, 40, axis)])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_the_median_of_nothing_warns_once_as_numpy_does(function, axis):
    whole, warned = np.zeros((0, 3)), []
    for x in (whole, shard(whole, Sharding.tiled((1, 3)))):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = function(x, axis=axis)
        warned.append([str(each.message) for each in caught])
        np.testing.assert_array_equal(result, np.full(() if axis is None else (3, 0)[axis], np.nan))
    assert warned[0] == warned[1]


def test_the_number_of_counts_is_a_whole_number():
    with pytest.raises(TypeError, match="'str' object cannot be interpreted as an integer"):
        np.bincount(shard(np.arange(3), Sharding.tiled((3,))), minlength="3")
