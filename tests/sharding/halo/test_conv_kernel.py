from __future__ import annotations

import numpy as np
import pytest

from ringlet.sharding.halo import conv_kernel
from ringlet.sharding.halo.conv_kernel import convolve, kernel_gradient
from ringlet.sharding.halo.windows import POINTWISE, Window
from tests.sharding.halo.reference import convolved

WINDOWS = (POINTWISE, Window(3, low=1, high=1), Window(2, low=0, high=1, dilation=2))


def single(array, axis=-1):
    """One group."""
    return np.expand_dims(array, axis)


def by_kernel(x, kernel, windows=WINDOWS, dtype=None):
    counts = [window.count(length) for window, length in zip(windows, x.shape, strict=False)]
    out = np.empty((*counts, 1, kernel.shape[-1]), dtype or np.result_type(x, kernel))
    convolve(single(x, -2), kernel[np.newaxis, ..., np.newaxis, :, :], out, windows)
    return out[..., 0, :]


@pytest.fixture(params=[1, 1 << 20], ids=["single outputs", "all at once"])
def block_bytes(request, monkeypatch):
    monkeypatch.setattr(conv_kernel, "_MATRIX_BYTES", request.param)
    monkeypatch.setattr(conv_kernel, "_ELEMENT_BYTES", request.param)


@pytest.mark.usefixtures("block_bytes")
@pytest.mark.parametrize("features", [(1, 1), (2, 2), (3, 5)], ids=["one", "few", "many"])
@pytest.mark.parametrize("strides", [(1, 1), (1, 2), (2, 1)])
@pytest.mark.parametrize("dtype", ["int64", "float32", "complex128", "uint8"])
def test_blocks_of_every_size_give_the_sums_over_the_windows(features, strides, dtype):
    generator = np.random.default_rng(0)
    x = generator.integers(0, 9, (2, 7, 6, features[0])).astype(dtype)
    kernel = generator.integers(0, 9, (3, 2, *features)).astype(dtype)
    windows = (POINTWISE, *(w._replace(stride=s) for w, s in zip(WINDOWS[1:], strides, strict=True)))
    np.testing.assert_array_equal(by_kernel(x, kernel, windows), convolved(x, kernel, windows[1:]))


@pytest.mark.parametrize(
    "windows", [(Window(3, low=1, high=1),) * 2, (Window(2, dilation=2), Window(5, low=1, high=3))]
)
@pytest.mark.parametrize("block_bytes", [1 << 10, 1 << 20])
def test_windows_in_long_rows_share_their_elements_across_the_rows_in_memory(windows, block_bytes, monkeypatch):
    monkeypatch.setattr(conv_kernel, "_MATRIX_BYTES", block_bytes)
    monkeypatch.setattr(conv_kernel, "_convolve_matrices", None)
    generator = np.random.default_rng(0)
    x = generator.integers(-9, 9, (2, 6, 51, 3)).astype("float32")
    kernel = generator.integers(-9, 9, (*(window.size for window in windows), 3, 5)).astype("float32")
    every = (POINTWISE, *windows)
    np.testing.assert_array_equal(by_kernel(x, kernel, every), convolved(x, kernel, windows))
    np.testing.assert_array_equal(by_kernel(x, kernel, every, "int64"), convolved(x, kernel, windows))


def test_python_s_numbers_in_long_rows_are_convolved_as_others():
    x = np.arange(160).reshape(1, 1, 40, 4).astype(object)
    kernel, windows = np.ones((1, 3, 4, 8), object), (POINTWISE, POINTWISE, Window(3))
    np.testing.assert_array_equal(by_kernel(x, kernel, windows), by_kernel(x.astype(int), kernel.astype(int), windows))


def test_what_lies_on_the_seam_of_two_rows_is_in_no_output_and_no_warning():
    x = np.ones((1, 3, 40, 4), "float32")
    x[..., 0, :] = np.inf
    kernel = np.ones((3, 3, 4, 8), "float32")
    kernel[:, 2] = 0  # sees the first column of the next row only where windows reach over the end of one
    y = by_kernel(x, kernel, (POINTWISE, Window(3, low=1, high=1), Window(3, low=1, high=1)))
    assert np.isinf(y[:, :, :2]).all()
    assert np.isfinite(y[:, :, 2:]).all()


@pytest.mark.usefixtures("block_bytes")
@pytest.mark.parametrize("features", [(1, 1), (2, 2), (3, 5)], ids=["one", "few", "many"])
@pytest.mark.parametrize("strides", [(1, 1), (2, 1)])
def test_the_gradient_of_the_kernel_has_for_each_element_what_its_unit_kernel_gives(features, strides):
    generator = np.random.default_rng(0)
    x = generator.integers(-9, 9, (2, 7, 6, features[0]))
    windows = (POINTWISE, *(w._replace(stride=s) for w, s in zip(WINDOWS[1:], strides, strict=True)))
    units = np.eye(3 * 2 * features[0] * features[1], dtype=int).reshape(-1, 3, 2, *features)
    each = [convolved(x, unit, windows[1:]) for unit in units]
    cotangent = generator.integers(-9, 9, each[0].shape)
    gradient = np.empty((1, 3, 2, 1, *features), int)
    kernel_gradient(single(x, -2), single(cotangent, -2), gradient, windows)
    np.testing.assert_array_equal(gradient.ravel(), [(y * cotangent).sum() for y in each])


@pytest.mark.parametrize("features", [1, 4])
def test_the_gradient_of_truth_values_tells_where_two_of_them_meet(features):
    generator = np.random.default_rng(0)
    x, cotangent = (generator.random((1, 7, 6, 1, features)) < 0.1 for _ in range(2))
    met, count = (np.empty((1, 3, 2, 1, features, features), dtype) for dtype in (bool, int))
    kernel_gradient(x, cotangent[:, :, :5], met, WINDOWS)
    kernel_gradient(x.astype(int), cotangent[:, :, :5].astype(int), count, WINDOWS)
    np.testing.assert_array_equal(met, count > 0)


@pytest.mark.parametrize("features", [1, 4])
def test_whole_numbers_wrap_as_those_of_numpy_do(features):
    x = np.full((1, 4, 4, features), 100, np.int8)
    kernel = np.full((3, 2, features, features), 100, np.int8)
    expected = convolved(x.astype(int), kernel.astype(int), WINDOWS[1:]).astype(np.int8)
    np.testing.assert_array_equal(by_kernel(x, kernel), expected)
    large = np.full((1, 4, 4, features), (1 << 62) + 1)
    kernel = np.full((3, 2, features, features), 3)
    np.testing.assert_array_equal(by_kernel(large, kernel), convolved(large, kernel, WINDOWS[1:]))


@pytest.mark.parametrize("features", [1, 4])
def test_sums_of_float16_round_once(features):
    generator = np.random.default_rng(0)
    x = generator.random((1, 9, 9, features)).astype(np.float16)
    kernel = generator.random((3, 2, features, features)).astype(np.float16)
    exact = convolved(x.astype(np.float64), kernel.astype(np.float64), WINDOWS[1:])
    found = by_kernel(x, kernel)
    assert found.dtype == np.float16
    np.testing.assert_array_less(np.abs(found - exact), np.spacing(exact.astype(np.float16)))


def test_no_input_and_no_features_give_zeros():
    assert not by_kernel(
        np.empty((1, 0, 4, 2)), np.ones((3, 2, 2, 3)), (POINTWISE, Window(3, low=2, high=2), WINDOWS[2])
    ).any()
    assert not by_kernel(np.empty((1, 4, 4, 0)), np.ones((3, 2, 0, 3))).any()


@pytest.mark.parametrize("features", [(1, 1), (3, 5)], ids=["elements", "matrices"])
@pytest.mark.parametrize("strides", [(1, 1), (1, 2), (2, 3)])
@pytest.mark.parametrize("size", [3, 40], ids=["short rows", "long rows"])
def test_several_tiles_get_the_bits_that_they_get_one_by_one(features, strides, size):
    generator = np.random.default_rng(0)
    last = WINDOWS[2] if size == 3 else Window(2, high=1)
    windows = (POINTWISE, *(w._replace(stride=s) for w, s in zip((WINDOWS[1], last), strides, strict=True)))
    x = generator.normal(size=(2, 8 * strides[0], 2 * size * strides[1], 1, features[0])).astype("float32")
    kernel = generator.normal(size=(1, 3, 2, 1, *features)).astype("float32")
    together, one_by_one = np.empty((2, 2, 8, 2 * size, 1, features[1]), "float32")
    convolve(x, kernel, together, windows, (1, 4, 2))
    for place in np.ndindex(4, 2):
        starts = (0, place[0] * 2, place[1] * size)
        tile = one_by_one[:, starts[1] :][:, :2, starts[2] :][:, :, :size]
        convolve(x, kernel, tile, tuple(w.relative_windows(0, start) for w, start in zip(windows, starts, strict=True)))
    np.testing.assert_array_equal(together.view("int32"), one_by_one.view("int32"))
