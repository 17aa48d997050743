from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.sharding.halo import pool_kernel
from ringlet.sharding.halo.pool_kernel import choice_gradient, identity_of, reduce_windows
from ringlet.sharding.halo.windows import Window
from tests.sharding.halo.reference import seen
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
    monkeypatch.setattr(pool_kernel, "_BLOCK_BYTES", 1)
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
