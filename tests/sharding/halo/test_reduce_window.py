from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.sharding import Sharding, reduce_window, reduce_window_vjp, shard
from ringlet.sharding.halo.pool_kernel import identity_of
from tests.sharding.halo.reference import everywhere, run_tiled, seen
from tests.sharding.halo.test_windows import WINDOWS

CASES = st.tuples(
    st.lists(st.tuples(WINDOWS, st.integers(0, 8)), min_size=1, max_size=3).filter(
        lambda each: all(window.places(length) >= 0 for window, length in each)
    ),
    st.sampled_from([np.add, np.maximum, np.minimum]),
    st.integers(0, 1 << 30),
)


def options_of(windows):
    return {
        "window_dimensions": [window.size for window in windows],
        "window_strides": [window.stride for window in windows],
        "padding": [(window.low, window.high) for window in windows],
        "base_dilation": [window.base for window in windows],
        "window_dilation": [window.dilation for window in windows],
    }


@given(CASES)
def test_windows_and_their_gradients_are_those_of_the_whole_however_it_is_cut(case):
    each, function, seed = case
    windows, lengths = (tuple(column) for column in zip(*each, strict=True))
    generator, options = np.random.default_rng(seed), options_of(windows)
    x = generator.integers(-9, 9, lengths)
    y = np.empty([window.count(length) for window, length in each], int)
    cotangent = generator.integers(-9, 9, y.shape)
    dx, numbers = np.zeros(x.size + 1, int), np.arange(1, x.size + 1).reshape(lengths)
    for (output, values), (_, whose) in zip(
        seen(x, windows, identity_of(function, x.dtype)), seen(numbers, windows), strict=True
    ):
        y[output] = function.reduce(values, axis=None)
        chosen = whose.ravel() if function is np.add else whose.ravel()[values.ravel() == y[output]][:1]
        np.add.at(dx, chosen, cotangent[output])

    def both(x, cotangent):
        return reduce_window(x, function, **options), reduce_window_vjp(x, cotangent, function, **options)

    for memory, layouts in everywhere((x.ndim, x.ndim), generator):
        found, gradient = run_tiled(both, (x, cotangent), layouts, memory)
        np.testing.assert_array_equal(found, y)
        np.testing.assert_array_equal(gradient, dx[1:].reshape(lengths))


def test_sums_of_a_partial_array_stay_partial():
    x = shard(np.arange(16).reshape(4, 4), Sharding.tiled((2, 2))).sum(axis=0)
    assert x._layout.is_partial
    y = reduce_window(x, np.add, 2)
    assert y._layout.is_partial
    assert np.asarray(y).tolist() == [52, 60, 68]
    assert np.asarray(reduce_window(x, np.maximum, 2)).tolist() == [28, 32, 36]


def test_functions_that_give_another_dtype_are_refused():
    assert reduce_window(np.eye(2, dtype=bool), np.logical_or, 2).all()
    with pytest.raises(ValueError, match=r"'logical_or'> of int64 returns bool: pass an array of that dtype"):
        reduce_window(np.ones(4, int), np.logical_or, 2)


def test_there_is_no_gradient_of_products():
    with pytest.raises(
        ValueError, match=r"the gradient of windows reduced with <ufunc 'multiply'> is not supported: use np\.add"
    ):
        reduce_window_vjp(np.ones(4), np.ones(3), np.multiply, 2)


def test_a_gradient_of_another_shape_is_refused():
    with pytest.raises(ValueError, match=r"the gradient has shape \(4,\), and the result of the pooling \(3,\)"):
        reduce_window_vjp(np.ones(4), np.ones(4), np.add, 2)
