"""Reductions of ufuncs, beyond what the sweep of operations tries: what is sent, partial arrays, `out`, errors."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ringlet.errors import GatherWarning
from ringlet.sharding import Sharding, explain, mode, shard
from tests.sharding.sweep import MESHES, assemble, placements, poisoned, tiled

WHOLE = np.arange(35).reshape(7, 5)


def sent(report):
    return [collective.kind for operation in report.operations for collective in operation.collectives]


@given(data=st.data())
def test_integers_reduce_to_what_they_reduce_to_untiled(data):
    x = data.draw(hnp.arrays(np.int64, hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=9)))
    layout = data.draw(st.sampled_from(placements(data.draw(st.sampled_from(list(MESHES))), x.ndim)))
    axis = data.draw(st.one_of(st.none(), hnp.valid_tuple_axes(x.ndim, min_size=1)))
    ufunc = data.draw(st.sampled_from([np.add, np.bitwise_xor, np.gcd]))
    keepdims, memory = data.draw(st.booleans()), data.draw(st.sampled_from(["shared", "copy"]))
    with mode(memory), poisoned():
        found = ufunc.reduce(tiled(x, layout), axis=axis, keepdims=keepdims)
        np.testing.assert_array_equal(assemble(found), ufunc.reduce(x, axis=axis, keepdims=keepdims))


def test_a_sum_sends_nothing_until_it_is_used_and_then_once():
    x = shard(WHOLE, Sharding.tiled((4, 1)))
    with explain() as report:
        total = x.sum(axis=0)
    assert sent(report) == []
    with explain() as report:
        assert total.tolist() == total.tolist() == WHOLE.sum(axis=0).tolist()
    assert sent(report) == ["all-reduce"]


def test_the_sum_of_partial_sums_is_sent_once():
    x = shard(WHOLE, Sharding.tiled((2, 2)))
    with explain() as report:
        assert int(x.sum(axis=0).sum()) == WHOLE.sum()
    assert sent(report) == ["all-reduce"]


def test_the_largest_of_partial_sums_is_that_of_their_values():
    x = shard(-WHOLE, Sharding.tiled((4, 1)))
    assert int(x.sum(axis=0).max()) == (-WHOLE).sum(axis=0).max()


def test_small_integers_that_wrap_when_they_combine_are_summed_up_as_they_are():
    x = shard(np.full((2, 3), 100, np.int8), Sharding.tiled((2, 1)))
    wrapped = np.add.reduce(x, axis=0, dtype=np.int8)
    assert int(wrapped.sum()) == np.add.reduce(np.full((2, 3), 100, np.int8), axis=0, dtype=np.int8).sum() == -168


@pytest.mark.parametrize("shape", [(7,), (3,), (0,)])
def test_an_initial_value_counts_once_however_many_tiles_there_are(shape):
    x = shard(np.ones(shape, int), Sharding.tiled((8,)))
    assert int(np.sum(x, initial=10)) == 10 + x.size
    assert float(np.logaddexp.reduce(x * 0.0, initial=2.0)) == pytest.approx(np.log(np.exp(2.0) + x.size))
    assert int(np.max(x, initial=10)) == 10


def test_bools_are_counted_unless_they_are_to_stay_bools():
    x = shard(np.ones(6, bool), Sharding.tiled((3,)))
    assert int(x.sum()) == 6
    assert np.add.reduce(x, dtype=bool).dtype == bool
    assert bool(np.add.reduce(x, dtype=bool)) is True


@pytest.mark.parametrize("dtype", ["complex64", "longdouble", "timedelta64[s]", "datetime64[s]"])
def test_extremes_of_what_no_collective_compares_are_found(dtype):
    whole = np.arange(7)[::-1].astype(dtype)
    x = shard(whole, Sharding.tiled((4,)))
    assert assemble(x.max()) == whole.max()
    assert assemble(x.min()) == whole.min()


def test_half_precision_sums_are_rounded_once_for_each_tile_and_once_at_the_end():
    whole = np.full(4096, 0.1, np.float16)
    found = np.sum(shard(whole, Sharding.tiled((8,))))
    assert found.dtype == np.float16
    assert abs(float(found) - float(whole.sum())) <= np.spacing(np.float16(410))


@pytest.mark.parametrize("wanted", [Sharding.tiled((4,)), Sharding.maximal(3), Sharding.replicated(4)])
def test_out_keeps_its_own_sharding(wanted):
    x, out = shard(WHOLE, Sharding.tiled((2, 2))), shard(np.zeros(5), wanted, num_devices=4)
    assert np.sum(x, axis=0, out=out) is out
    assert str(out.sharding) == str(wanted)
    np.testing.assert_array_equal(assemble(out), WHOLE.sum(axis=0))


def test_out_may_be_an_ordinary_array():
    out = np.zeros(7)
    assert np.max(shard(WHOLE, Sharding.tiled((2, 2))), axis=1, out=out) is out
    np.testing.assert_array_equal(out, WHOLE.max(axis=1))


def test_a_sharded_out_gets_the_reduction_of_an_ordinary_array():
    out = shard(np.zeros(5, int), Sharding.tiled((2,)))
    assert np.sum(WHOLE, axis=0, out=out) is out
    np.testing.assert_array_equal(assemble(out), WHOLE.sum(axis=0))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: np.sum(x, axis=2), ValueError, "axis 2 is out of bounds"),
        (lambda x: np.sum(x, axis=(0, 0)), ValueError, "duplicate"),
        (lambda x: np.sum(x, axis=[0]), TypeError, "cannot be interpreted as an integer"),
        (lambda x: (np.sum(x, axis=1), np.sum(x, axis=True)), TypeError, "an integer is required"),
        (lambda x: (np.max(x, axis=(0, 1)), np.max(x, axis=(0, True))), TypeError, "an integer is required"),
        (lambda x: (np.cumsum(x, axis=1), np.cumsum(x, axis=True)), TypeError, "an integer is required"),
        (
            lambda x: np.sum(x, axis=0, out=np.zeros(4)),
            ValueError,
            r"out has shape \(4,\), expected .* \(5,\)",
        ),
        (lambda x: np.max(x, where=x > 3), ValueError, "one has to specify 'initial'"),
        (lambda x: np.sum(x, where=x), TypeError, "to dtype\\('bool'\\)"),
        (lambda x: np.max(x[:0], axis=0), ValueError, "zero-size array"),
        (lambda x: np.gcd.reduce(x * 1.0), TypeError, "did not contain a loop"),
        (lambda x: np.subtract.reduce(x, axis=(0, 1)), ValueError, "not reorderable"),
        (lambda x: np.add.reduce(x, initial="text"), (TypeError, ValueError), "text|str|Unicode"),
    ],
)
def test_what_numpy_refuses_is_refused_alike(call, error, message):
    with pytest.raises(error, match=message):
        call(shard(WHOLE, Sharding.tiled((2, 2))))


def test_threads_do_not_change_a_bit():
    whole = np.random.default_rng(0).standard_normal((512, 2048)).astype(np.float32)
    x = shard(whole, Sharding.tiled((2, 4)))
    first = [float(f(x)) for f in (np.sum, np.mean, np.var)]
    for _ in range(5):
        assert [float(f(x)) for f in (np.sum, np.mean, np.var)] == first


@pytest.mark.parametrize("memory", ["shared", "copy"])
def test_nan_is_left_out_of_what_parts_add_up_to_not_of_the_parts(memory):
    with mode(memory):
        total = shard(np.array([[np.nan, 1.0], [2.0, 3.0]]), Sharding.tiled((2, 1))).sum(axis=0)
        assert total._layout.is_partial
        assert float(np.nansum(total)) == 4
        assert float(np.nanprod(total)) == 4


def test_the_range_of_objects_is_gathered():
    with pytest.warns(GatherWarning, match="ptp"):
        assert np.ptp(shard(np.array([3, 1, 8], object), Sharding.tiled((2,)))) == 7


@pytest.mark.parametrize("sharding", [Sharding.tiled((2,)), Sharding.replicated(2)])
def test_elements_are_converted_to_the_dtype_that_is_asked_for_before_they_are_reduced(sharding):
    halves = np.array([1.5, 2.5, np.nan, 1.5])
    x = shard(halves, sharding)
    assert int(np.sum(x[:2], dtype=int)) == 3
    assert int(np.prod(x[:2], dtype=np.int8)) == 2
    assert int(np.bitwise_xor.reduce(x[:2], dtype=int)) == 3
    assert int(np.nansum(x, dtype=int)) == np.nansum(halves, dtype=int) == 4


def test_what_elements_are_reduced_to_is_converted_to_the_dtype_of_out():
    x = shard(np.array([1.5, 2.5, 3.5, 1.5]), Sharding.tiled((4,)))
    out = np.zeros((), int)
    assert np.sum(x, out=out) is out
    assert out == 9
    with pytest.raises(ValueError, match="out has shape"):
        np.sum(x, out=np.zeros(3, int))


def test_the_dtype_that_was_asked_for_is_that_of_the_sums():
    whole = np.full((4, 3), 2**63 - 1, np.uint64)
    expected = np.add.reduce(whole, 1, np.int32)
    np.testing.assert_array_equal(
        np.asarray(np.add.reduce(shard(whole, Sharding.tiled((2, 1))), 1, np.int32)), expected
    )


def test_a_result_goes_into_any_dtype_as_numpy_lets_it():
    whole = np.array([[1.5, 2.5], [3.5, -0.25]])
    for dtype, out in (("f4", np.zeros(2, np.int8)), (None, np.zeros(2, np.float32)), ("c8", np.zeros(2))):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of imaginary parts
            expected = np.sum(whole, 0, dtype, out.copy())
            found = np.sum(shard(whole, Sharding.tiled((2, 1))), 0, dtype, shard(out.copy(), Sharding.replicated(2)))
        np.testing.assert_array_equal(np.asarray(found), expected)


def test_arrays_that_cannot_hold_a_result_are_refused_as_numpy_does():
    times = np.arange(4).astype("m8[s]")
    with pytest.raises(TypeError):
        np.max(times, out=np.zeros((), np.float32))
    with pytest.raises(TypeError):
        np.max(shard(times, Sharding.tiled((2,))), out=np.zeros((), np.float32))


def test_sums_as_objects_are_gathered():
    with pytest.warns(GatherWarning):
        assert np.add.reduce(shard(np.arange(4), Sharding.tiled((2,))), dtype=object) == 6


def test_the_largest_less_the_smallest_is_subtracted_where_it_goes_to():
    whole, out = np.array([-100, 100], np.int8), shard(np.zeros(()), Sharding.replicated(2))
    assert float(np.ptp(shard(whole, Sharding.tiled((2,))), out=out)) == 200


def test_a_dtype_of_a_running_sum_makes_numbers_of_records():
    x = shard(np.ones(4, [("a", "i4")]), Sharding.tiled((2,)))
    assert np.asarray(np.cumsum(x, 0, "f8")).tolist() == [1, 2, 3, 4]
