from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.sharding import (
    ConvDimensionNumbers,
    ShardedArray,
    Sharding,
    conv_general,
    conv_general_vjp,
    explain,
    shard,
)
from ringlet.sharding.layout.layout import Cut, Layout
from tests.sharding.halo.reference import convolved, everywhere, run_tiled
from tests.sharding.halo.test_windows import WINDOWS
from tests.sharding.sweep import assemble, tiled


@st.composite
def convolutions(draw):
    """Arrays of whole numbers, options, and the reference's result, of random dimension numbers and groups."""
    generator = np.random.default_rng(draw(st.integers(0, 1 << 30)))
    rank = draw(st.integers(0, 3))
    lengths = draw(st.lists(st.integers(0, 9 if rank < 3 else 5), min_size=rank, max_size=rank))
    windows = []
    for length in lengths:
        window = draw(WINDOWS)
        windows.append(window if window.places(length) >= 0 else window._replace(low=0, high=0))
    feature_groups, batch_groups = draw(st.sampled_from([(1, 1), (1, 1), (2, 1), (4, 1), (1, 2)]))
    batch, c, o = (draw(st.integers(1, 3)) for _ in range(3))
    x = generator.integers(-9, 9, (batch * batch_groups, *lengths, c * feature_groups))
    kernel = generator.integers(-9, 9, (*(window.size for window in windows), c, o * feature_groups * batch_groups))
    groups = feature_groups * batch_groups
    inputs = np.split(x, groups, axis=-1 if feature_groups > 1 else 0) if groups > 1 else [x]
    pairs = zip(inputs, np.split(kernel, groups, axis=-1), strict=True)
    expected = np.concatenate([convolved(one, other, windows) for one, other in pairs], axis=-1)
    orders = [tuple(map(int, generator.permutation(rank + 2))) for _ in range(3)]
    first, last = (0, rank + 1), (rank + 1, rank)
    sources = [(*first, *range(1, rank + 1)), (*last, *range(rank)), (*first, *range(1, rank + 1))]
    arrays = [
        np.ascontiguousarray(np.transpose(array, [source[order.index(d)] for d in range(rank + 2)]))
        for array, source, order in zip((x, kernel, expected), sources, orders, strict=True)
    ]
    options = {
        "window_strides": [window.stride for window in windows],
        "padding": [(window.low, window.high) for window in windows],
        "lhs_dilation": [window.base for window in windows],
        "rhs_dilation": [window.dilation for window in windows],
        "dimension_numbers": ConvDimensionNumbers(*orders),
        "feature_group_count": feature_groups,
        "batch_group_count": batch_groups,
    }
    return arrays, options, generator


@given(convolutions())
def test_every_convolution_is_that_of_the_whole_however_it_is_cut(convolution):
    (x, kernel, expected), options, generator = convolution
    np.testing.assert_array_equal(conv_general(x, kernel, **options), expected)
    for memory, layouts in everywhere((x.ndim, kernel.ndim), generator):
        (found,) = run_tiled(lambda x, kernel: conv_general(x, kernel, **options), (x, kernel), layouts, memory)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


@given(convolutions())
def test_gradients_are_those_of_a_product_that_is_linear_in_both(convolution):
    (x, kernel, y), options, generator = convolution
    cotangent = generator.integers(-9, 9, y.shape)
    dx, dkernel = conv_general_vjp(x, kernel, cotangent, **options)
    assert (dx.shape, dkernel.shape) == (x.shape, kernel.shape)
    for _ in range(3):
        other, weights = generator.integers(-99, 99, x.shape), generator.integers(-99, 99, kernel.shape)
        assert (dx * other).sum() == (conv_general(other, kernel, **options) * cotangent).sum()
        assert (dkernel * weights).sum() == (conv_general(x, weights, **options) * cotangent).sum()
    for memory, layouts in everywhere((x.ndim,) * 3, generator):
        found = run_tiled(lambda *arrays: conv_general_vjp(*arrays, **options), (x, kernel, cotangent), layouts, memory)
        np.testing.assert_array_equal(found[0], dx)
        np.testing.assert_array_equal(found[1], dkernel)


NHWC = ("NHWC", "HWIO", "NHWC")


def test_input_features_that_are_cut_give_a_partial_result():
    generator = np.random.default_rng(0)
    x, kernel = generator.integers(-9, 9, (2, 6, 6, 8)), generator.integers(-9, 9, (3, 3, 8, 1))
    given_x = shard(x, Sharding.tiled((1, 1, 1, 4)))
    given_kernel = shard(kernel, Sharding.tiled((1, 1, 4, 1)))
    with explain() as report:
        y = conv_general(given_x, given_kernel, 1, "SAME", dimension_numbers=NHWC)
        assert y._layout.is_partial
        np.asarray(y)
    assert not report.operations[0].collectives
    np.testing.assert_array_equal(np.asarray(y), conv_general(x, kernel, 1, "SAME", dimension_numbers=NHWC))


def test_a_partial_input_stays_partial():
    values = np.arange(2 * 8).reshape(2, 1, 8, 1)
    both = Layout(4, (Cut(1, ()), Cut(2, (0, 0, 1, 1)), Cut(1, ())), parts=Cut(2, (0, 1, 0, 1)))
    buffers = [values[both.parts.tile_of(device)].copy() for device in range(4)]
    x = tiled(values[0], both.without_parts())
    x = ShardedArray._build([buffers[0], buffers[1], buffers[0], buffers[1]], both, x._group)
    y = conv_general(x, np.ones((3, 1, 1), int), 1, "SAME", dimension_numbers=("NWC", "WIO", "NWC"))
    assert y._layout.is_partial
    expected = np.convolve(values.sum(0).ravel(), [1, 1, 1], "same")
    np.testing.assert_array_equal(assemble(y).ravel(), expected)


def test_groups_that_a_cut_would_divide_are_gathered():
    generator = np.random.default_rng(0)
    x, kernel = generator.integers(-9, 9, (1, 6, 6)), generator.integers(-9, 9, (3, 2, 6))
    options = {"dimension_numbers": ("NWC", "WIO", "NWC"), "feature_group_count": 3}
    expected = conv_general(x, kernel, 1, "SAME", **options)
    for tiles, is_cut in ((3, True), (2, False)):
        y = conv_general(shard(x, Sharding.tiled((1, 1, tiles))), kernel, 1, "SAME", **options)
        np.testing.assert_array_equal(np.asarray(y), expected)
        assert (y._layout.cuts[2].count == tiles) == is_cut


@pytest.mark.parametrize("rows", [9, 16])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_shared_and_copied_memory_give_the_same_bits(dtype, rows):
    generator = np.random.default_rng(0)
    x, kernel = generator.random((2, rows, 8, 3)).astype(dtype), generator.random((3, 3, 3, 8)).astype(dtype)
    layouts = Layout(4, (Cut(1, ()), Cut(4, (0, 1, 2, 3)), Cut(1, ()), Cut(1, ()))), Layout.replicated(4, 4)

    def work(x, kernel):
        y = conv_general(x, kernel, 1, "SAME", dimension_numbers=NHWC)
        return (y, *conv_general_vjp(x, kernel, y, 1, "SAME", dimension_numbers=NHWC))

    shared, copied = (run_tiled(work, (x, kernel), layouts, memory) for memory in ("shared", "copy"))
    for one, other, whole in zip(shared, copied, work(x, kernel), strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_allclose(one, whole, rtol=1e-4)


@pytest.mark.parametrize(
    ("x", "kernel", "options", "message"),
    [
        ((1, 4, 8), (1, 4, 3, 3), {}, r"cannot convolve shape \(1, 4, 8\) with a kernel of shape \(1, 4, 3, 3\)"),
        ((1, 4, 8), (2, 3, 3), {}, "the input has 4 features, and the kernel has 3 input features, with"),
        ((1, 4, 8), (3, 2, 3), {"feature_group_count": 2}, "3 output features cannot be divided into 2 equal groups"),
        (
            (1, 4, 8),
            (2, 4, 3),
            {"batch_group_count": 2},
            "1 elements in the batch cannot be divided into 2 equal groups",
        ),
        ((2, 4, 8), (4, 2, 3), {"feature_group_count": 2, "batch_group_count": 2}, "at least one of them 1"),
        ((1, 4, 8), (2, 4, 3), {"feature_group_count": "2"}, "feature_group_count is '2' and"),
        ((1, 4, 8), (2, 4, 3), {"lhs_dilation": 2}, "'SAME' is ambiguous with lhs_dilation 2"),
        (
            (1, 4, 8),
            (2, 4, 3),
            {"lhs_dilation": "two"},
            "lhs_dilation is 'two': expected an integer of 1 or more, or a sequence of length 1",
        ),
        (
            (1, 4, 8),
            (2, 4, 3),
            {"lhs_dilation": {2: 1}},
            r"lhs_dilation is \{2: 1\}: expected an integer of 1 or "
            r"more, or a sequence of length 1",
        ),
        ((1, 4, 8), (2, 4, 3), {"dimension_numbers": {"NCH"}}, r"dimension_numbers \{'NCH'\} do not name each"),
        (
            (1, 4, 8),
            (2, 4, 3),
            {"rhs_dilation": (1, 2)},
            r"rhs_dilation is \(1, 2\): expected an integer of 1 or "
            r"more, or a sequence of length 1",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(x, kernel, options, message):
    with pytest.raises(ValueError, match=message):
        conv_general(np.ones(x), np.ones(kernel), 1, "SAME", **options)


@pytest.mark.parametrize("wrong", [True, 1.0, np.float32(1)])
def test_a_number_that_only_equals_a_whole_one_is_refused_whatever_was_convolved_before(wrong):
    conv_general(np.ones((1, 1, 5)), np.ones((1, 1, 3)), np.array(1), "SAME")
    with pytest.raises(
        ValueError,
        match=rf"window_strides is \({wrong},\): expected an integer of 1 or more, or a "
        rf"sequence of length 1",
    ):
        conv_general(np.ones((1, 1, 5)), np.ones((1, 1, 3)), (wrong,), "SAME")


def test_a_gradient_of_another_shape_is_refused():
    with pytest.raises(ValueError, match=r"the gradient has shape \(1, 1, 4\), expected .* shape \(1, 1, 5\)"):
        conv_general_vjp(np.ones((1, 1, 5)), np.ones((1, 1, 3)), np.ones((1, 1, 4)), 1, "SAME")
