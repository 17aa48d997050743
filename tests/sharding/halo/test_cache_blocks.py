from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.sharding.halo.cache_blocks import blocks, filled, tap_slices, wide
from ringlet.sharding.halo.windows import Window
from tests.sharding.halo.reference import spread
from tests.sharding.halo.test_windows import WINDOWS


@given(st.lists(st.tuples(WINDOWS, st.integers(1, 7)), min_size=1, max_size=3), st.integers(1, 40))
def test_blocks_have_each_output_once_and_all_the_places_that_their_windows_lie_on(given_windows, most):
    windows, lengths = (tuple(column) for column in zip(*given_windows, strict=True))
    x = np.arange(1, np.prod(lengths) + 1).reshape(lengths)
    counts = tuple(window.count(length) for window, length in zip(windows, lengths, strict=True))
    if any(window.places(length) < 0 for window, length in zip(windows, lengths, strict=True)):
        return
    places, times = spread(x, windows), np.zeros(counts, int)
    for block in blocks(lengths, counts, windows, most):
        times[block.outputs] += 1
        box = tuple(
            slice(side.start * window.stride, side.start * window.stride + size)
            for side, window, size in zip(block.outputs, windows, block.places, strict=True)
        )
        np.testing.assert_array_equal(filled(x, block, x.dtype), places[box])
    assert (times == 1).all()


def test_a_block_inside_of_the_input_is_a_view():
    x = np.arange(10.0)
    (block,) = blocks((10,), (8,), (Window(3),), 100)
    assert np.shares_memory(filled(x, block, x.dtype), x)
    assert not np.shares_memory(filled(x, block, np.dtype("float32")), x)


def test_each_element_of_a_window_sees_one_place_of_each_output():
    assert [x[0] for _, x in tap_slices((Window(3),), (4,))] == [slice(0, 4, 1), slice(1, 5, 1), slice(2, 6, 1)]


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("float16", "float32"), ("float32", "float32"), ("int8", "int8"), ("complex64", "complex64")],
)
def test_short_floats_are_added_up_in_float32(dtype, expected):
    assert wide(np.dtype(dtype)) == expected
