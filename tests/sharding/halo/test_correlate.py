from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.sharding import ShardedArray, Sharding, correlate, correlate_vjp, shard
from tests.sharding.halo.reference import everywhere, run_tiled

MODES = ("valid", "same", "full")


def integers(generator, shape, dtype):
    values = generator.integers(-9, 9, shape)
    return (values + 1j * generator.integers(-9, 9, shape) if dtype == "complex128" else values).astype(dtype)


@given(
    st.integers(1, 14),
    st.integers(1, 9),
    st.sampled_from(["int64", "float32", "complex128"]),
    st.sampled_from(MODES),
    st.integers(0, 1 << 30),
)
def test_numpys_functions_give_what_they_give_for_the_whole_however_it_is_cut(length, size, dtype, mode, seed):
    generator = np.random.default_rng(seed)
    a, v = integers(generator, length, dtype), integers(generator, size, dtype)
    for function in (np.convolve,) if size > length else (np.correlate, np.convolve):
        expected = function(a, v, mode)
        for memory, layouts in everywhere((1, 1), generator):
            (found,) = run_tiled(lambda a, v, function=function: function(a, v, mode), (a, v), layouts, memory)
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)
    if size <= length:
        np.testing.assert_array_equal(correlate(a, v, mode), np.correlate(a, v, mode))


@given(
    st.lists(st.tuples(st.integers(1, 6), st.integers(1, 4)), min_size=1, max_size=3),
    st.sampled_from(MODES),
    st.integers(0, 1 << 30),
)
def test_correlations_of_any_rank_and_their_gradients_agree_however_they_are_cut(sizes, mode, seed):
    generator = np.random.default_rng(seed)
    lengths, taps = zip(*sizes, strict=True)
    x, kernel = generator.integers(-9, 9, lengths), generator.integers(-9, 9, taps)
    full = np.zeros([n + k - 1 for n, k in sizes], int)
    for tap in np.ndindex(*taps):
        full[tuple(slice(k - 1 - j, k - 1 - j + n) for j, (n, k) in zip(tap, sizes, strict=True))] += kernel[tap] * x
    starts = {"full": lambda k: 0, "same": lambda k: k - 1 - k // 2, "valid": lambda k: k - 1}[mode]
    ends = {"full": lambda n, k: n + k - 1, "same": lambda n, k: n, "valid": lambda n, k: max(0, n - k + 1)}[mode]
    expected = full[tuple(slice(starts(k), starts(k) + ends(n, k)) for n, k in sizes)]
    cotangent = generator.integers(-9, 9, expected.shape)

    def work(x, kernel, cotangent):
        return (correlate(x, kernel, mode), *correlate_vjp(x, kernel, cotangent, mode))

    whole = work(x, kernel, cotangent)
    np.testing.assert_array_equal(whole[0], expected)
    other, weights = generator.integers(-9, 9, x.shape), generator.integers(-9, 9, kernel.shape)
    assert (whole[1] * other).sum() == (correlate(other, kernel, mode) * cotangent).sum()
    assert (whole[2] * weights).sum() == (correlate(x, weights, mode) * cotangent).sum()
    for memory, layouts in everywhere((x.ndim,) * 3, generator):
        for found, wanted in zip(run_tiled(work, (x, kernel, cotangent), layouts, memory), whole, strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_the_shorter_one_is_the_kernel_of_a_convolution():
    v = shard(np.arange(6), Sharding.tiled((2,)))
    y = np.convolve(np.array([1, 2]), v)
    assert isinstance(y, ShardedArray)
    np.testing.assert_array_equal(np.asarray(y), np.convolve([1, 2], np.arange(6)))


@pytest.mark.parametrize(("kernel", "mode"), [(np.ones((2, 2)), "valid"), (np.ones(0), "same"), (np.ones(2), "wrap")])
def test_what_does_not_go_together_is_refused(kernel, mode):
    with pytest.raises(ValueError, match=r"cannot correlate shape|'wrap' is not a mode"):
        correlate(np.ones(4), kernel, mode)
    with pytest.raises(ValueError, match=r"."):
        np.correlate(shard(np.ones(4), Sharding.tiled((2,))), kernel, mode)


@pytest.mark.parametrize(("function", "empty"), [(np.convolve, 0), (np.convolve, 1), (np.correlate, 1)])
def test_the_empty_one_of_two_is_named(function, empty):
    x = np.arange(4.0)
    with pytest.raises(ValueError, match="cannot be empty") as expected:
        function(*([], x)[:: -1 if empty else 1])
    with pytest.raises(ValueError, match="cannot be empty") as found:
        function(*([], shard(x, Sharding.tiled((2,))))[:: -1 if empty else 1])
    assert str(found.value) == str(expected.value)
