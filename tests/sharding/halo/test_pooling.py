from __future__ import annotations

import numpy as np
import pytest

from ringlet.sharding import avg_pool, avg_pool_vjp, max_pool, max_pool_vjp
from tests.sharding.halo.reference import everywhere, run_tiled

X = np.random.default_rng(0).integers(-9, 9, (2, 7, 6, 3)).astype(np.float64)
SETTINGS = [((2, 2), None, "VALID"), ((3, 3), 1, "SAME"), ((3, 2), (2, 1), [(1, 1), (0, 1)]), ((2, 3), 2, "SAME_LOWER")]


@pytest.mark.parametrize("settings", SETTINGS)
def test_pooling_and_its_gradient_are_those_of_the_whole_however_it_is_cut(settings):
    generator = np.random.default_rng(1)
    cotangent = generator.integers(-9, 9, max_pool(X, *settings).shape).astype(np.float64)

    def work(x, cotangent):
        return (
            max_pool(x, *settings),
            avg_pool(x, *settings),
            max_pool_vjp(x, cotangent, *settings),
            avg_pool_vjp(x, cotangent, *settings),
        )

    for memory, layouts in everywhere((4, 4), generator):
        for found, whole in zip(run_tiled(work, (X, cotangent), layouts, memory), work(X, cotangent), strict=True):
            np.testing.assert_array_equal(found, whole)


def test_windows_lie_side_by_side_unless_said():
    images = X[:, :6].reshape(2, 3, 2, 3, 2, 3)
    np.testing.assert_array_equal(max_pool(X, 2), images.max(axis=(2, 4)))
    np.testing.assert_array_equal(avg_pool(X, 2), images.mean(axis=(2, 4)))


def test_padding_counts_in_means_only_if_it_is_to():
    x = np.full((1, 3, 1), 6.0)
    assert avg_pool(x, 3, 1, "SAME").ravel().tolist() == [6, 6, 6]
    assert avg_pool(x, 3, 1, "SAME", count_include_pad=True).ravel().tolist() == [4, 6, 4]
    ones = np.ones((1, 3, 1))
    assert avg_pool_vjp(x, ones, 3, 1, "SAME").ravel() == pytest.approx([1 / 2 + 1 / 3, 4 / 3, 1 / 2 + 1 / 3])


@pytest.mark.parametrize(
    ("dtype", "expected"), [("float32", "float32"), ("float16", "float16"), ("int8", "float64"), ("bool", "float64")]
)
def test_means_have_the_dtype_that_numpy_gives_them(dtype, expected):
    assert avg_pool(np.ones((1, 4, 1), dtype), 2).dtype == expected


def test_dimensions_are_those_of_the_data_format():
    moved = np.moveaxis(X, -1, 1)
    np.testing.assert_array_equal(max_pool(moved, 2, data_format="NCHW"), np.moveaxis(max_pool(X, 2), -1, 1))
    for wrong in ("NHWW", "NHC", 4):
        with pytest.raises(ValueError, match="one letter for each dimension, N for the batch, C for features"):
            max_pool(X, 2, data_format=wrong)


def test_an_array_without_spatial_dimensions_is_refused_unless_the_window_has_none_too():
    assert max_pool(X[0, 0], ()).shape == X[0, 0].shape
    for window in (2, (2, 2)):
        with pytest.raises(
            ValueError,
            match=r"window_shape is .* only batch and feature dimensions: add spatial dimensions, as in x\[np",
        ):
            max_pool(X[0, 0], window)


def test_a_window_that_is_for_other_arrays_is_refused():
    message = r"window_shape is .* expected an integer of 1 or more, or a sequence of length 2"
    with pytest.raises(ValueError, match=message):
        max_pool(X, (2, 2, 2))
    with pytest.raises(ValueError, match="the gradient has shape"):
        avg_pool_vjp(X, X, 2)
