from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.sharding.halo.windows import Window, all_have_inputs, needs_of, per_dimension, relative_windows, windows_of
from ringlet.sharding.layout.layout import tile_bounds

WINDOWS = st.builds(
    Window,
    size=st.integers(1, 4),
    stride=st.integers(1, 3),
    low=st.integers(-2, 5),
    high=st.integers(-2, 5),
    base=st.integers(1, 3),
    dilation=st.integers(1, 3),
)


def elements_seen(window, length, begin, end):
    """The elements that some outputs see, by trying each."""
    places = {
        o * window.stride - window.low + j * window.dilation for o in range(begin, end) for j in range(window.size)
    }
    return [i for i in range(length) if i * window.base in places]


@given(WINDOWS, st.integers(0, 12), st.integers(1, 5))
def test_a_tile_needs_from_the_first_to_the_last_element_that_lies_between_what_its_windows_see(window, length, tiles):
    for begin, end in tile_bounds(window.count(length), tiles):
        start, stop = window.needs(length, begin, end)
        assert all(start <= i < stop for i in elements_seen(window, length, begin, end))
        between = (begin * window.stride - window.low, (end - 1) * window.stride - window.low + window.reach)
        assert all(between[0] <= i * window.base < between[1] for i in range(start, stop))


@given(WINDOWS, st.integers(1, 12), st.integers(1, 5))
def test_windows_of_a_tile_see_in_its_part_what_they_saw_in_the_whole(window, length, tiles):
    for begin, end in tile_bounds(window.count(length), tiles):
        start, stop = window.needs(length, begin, end)
        (local,) = relative_windows((window,), (slice(start, stop),), (0,), (slice(begin, end),), (0,))
        found = [start + i for i in elements_seen(local, stop - start, 0, end - begin)]
        assert found == elements_seen(window, length, begin, end)


@given(WINDOWS, st.integers(1, 12))
def test_the_transposed_window_leads_from_each_output_back_to_the_elements_that_it_sees(window, length):
    back, outputs = window.transposed(length), window.count(length)
    if not outputs:
        return
    assert back.count(outputs) == length
    for i in range(length):
        expected = [o for o in range(outputs) if i in elements_seen(window, length, o, o + 1)]
        assert elements_seen(back, outputs, i, i + 1) == expected


def test_rows_that_neighbours_have_are_needed_exactly():
    # of 16 rows in tiles of 4 unless said: what is needed before and after each tile
    table = [
        # window, rows, before, after
        (Window(3, low=1, high=1), 16, [0, 1, 1, 1], [1, 1, 1, 0]),
        (Window(7, low=3, high=3), 16, [0, 3, 3, 3], [3, 3, 3, 0]),
        (Window(3, stride=2, low=0, high=1), 16, [0, 0, 0, 0], [1, 1, 1, 0]),
        (Window(2, stride=2), 16, [0, 0, 0, 0], [0, 0, 0, 0]),
        (Window(3), 18, [0, 1, 2, 3], [1, 0, 0, 0]),  # tiles of 5, 5, 5 and 3
    ]
    for window, rows, before, after in table:
        (ranges,) = needs_of((window,), (0,), (rows,), (4,))
        owned = tile_bounds(rows, 4)
        assert [max(0, own[0] - start) for ((start, _),), own in zip(ranges, owned, strict=True)] == before
        assert [max(0, stop - own[1]) for ((_, stop),), own in zip(ranges, owned, strict=True)] == after


@pytest.mark.parametrize(
    ("padding", "stride", "size", "expected"),
    [
        ("SAME", 1, 3, (1, 1)),
        ("SAME", 1, 4, (1, 2)),
        ("SAME_LOWER", 1, 4, (2, 1)),
        ("SAME", 2, 3, (0, 1)),
        ("same", 3, 2, (0, 0)),
        ("VALID", 2, 3, (0, 0)),
        ([(2, -1)], 1, 3, (2, -1)),
    ],
)
def test_padding_is_what_its_name_means(padding, stride, size, expected):
    (window,) = windows_of((8,), (size,), stride, padding)
    assert (window.low, window.high) == expected


@pytest.mark.parametrize(
    ("padding", "message"),
    [
        ("FULL", "'FULL' is not a padding: pass 'SAME', 'SAME_LOWER', 'VALID' or pairs"),
        *((wrong, "expected a pair") for wrong in ([(1, 1)] * 2, 1, (1,), None, [(1.0, 1)])),
        ([(-5, -4)], "removes more elements than the input"),
    ],
)
def test_padding_that_is_none_is_refused(padding, message):
    with pytest.raises(ValueError, match=message):
        windows_of((8,), (3,), 1, padding)


def test_numbers_are_one_for_all_or_one_for_each_dimension():
    assert per_dimension("strides", np.int64(2), 2) == (2, 2)
    assert per_dimension("strides", None, 2) == (1, 1)
    for wrong in ((1, 2, 3), (0, 1), -1, 1.5, (1.5, 1), "2"):
        message = r"strides is .* expected an integer of 1 or more, or a sequence of length 2"
        with pytest.raises(ValueError, match=message):
            per_dimension("strides", wrong, 2)


@given(WINDOWS, st.integers(1, 12), st.integers(1, 5))
def test_a_tile_sees_something_if_one_of_its_windows_does(window, length, count):
    bounds = tile_bounds(window.count(length), count)
    see = [window.needs(length, *bound) for bound in bounds]
    assert all_have_inputs((window,), (length,), (count,)) == all(start < stop for start, stop in see)
