from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.sharding import Sharding, reduce_window, reduce_window_vjp, shard
from ringlet.sharding.halo.reduce_window import choice_gradient, identity_of, reduce_windows
from ringlet.sharding.halo.windows import Window
from tests.sharding.halo.reference import everywhere, run_tiled, seen
from tests.sharding.halo.test_windows import WINDOWS

FUNCTIONS = [np.add, np.maximum, np.minimum, np.multiply, np.bitwise_or, np.bitwise_xor]


@given(
    st.lists(st.tuples(WINDOWS, st.integers(0, 6)), min_size=0, max_size=3),
    st.sampled_from(FUNCTIONS),
    st.sampled_from(["int64", "uint8", "bool"]),
)
def test_each_output_is_what_its_window_reduces_to(given_windows, function, dtype):
    windows, lengths = (tuple(w for w, _ in given_windows), tuple(length for _, length in given_windows))
    if any(window.places(length) < 0 for window, length in given_windows):
        return
    x = np.random.default_rng(0).integers(0, 3, lengths).astype(dtype)
    out = np.empty([window.count(length) for window, length in given_windows], dtype)
    reduce_windows(x, out, windows, function)
    for output, values in seen(x, windows, identity_of(function, x.dtype)):
        assert out[output] == function.reduce(values, axis=None).astype(dtype)


def test_blocks_of_every_size_give_the_same(monkeypatch):
    x = np.random.default_rng(0).random((7, 6))
    windows, out = (Window(3, low=1), Window(2, 2)), np.empty((2, 7, 3))
    reduce_windows(x, out[0], windows, np.maximum)
    monkeypatch.setattr("ringlet.sharding.halo.reduce_window._BLOCK_BYTES", 1)
    reduce_windows(x, out[1], windows, np.maximum)
    np.testing.assert_array_equal(*out)


def test_the_first_of_equal_maxima_has_the_gradient():
    gradient = np.empty((2, 2))
    choice_gradient(
        np.ones((2, 2)), np.full((1, 1), 5.0), gradient, (Window(2), Window(2)), function=np.maximum, begins=(0, 0)
    )
    np.testing.assert_array_equal(gradient, [[5, 0], [0, 0]])


@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_the_first_nan_has_the_gradient_of_a_maximum_that_is_nan(dtype):
    x, gradient = np.array([1, np.nan, np.nan, 2, 3], dtype), np.empty(5)
    choice_gradient(x, np.array([4.0, 5.0]), gradient, (Window(3, stride=2),), function=np.maximum, begins=(0,))
    np.testing.assert_array_equal(gradient, [0, 4, 5, 0, 0])


@pytest.mark.parametrize("function", [np.subtract, np.exp, np.divmod, np.max, "max"])
def test_functions_without_an_identity_are_refused(function):
    with pytest.raises(ValueError, match="which has no identity to pad with"):
        identity_of(function, np.dtype("float32"))


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
    with pytest.raises(ValueError, match=r"the gradient has shape \(4,\), expected the result's shape \(3,\)"):
        reduce_window_vjp(np.ones(4), np.ones(4), np.add, 2)
