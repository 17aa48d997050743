from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.sharding.halo.boundary import boundary_of, extended, folded, ranges_of, segments

# The names that NumPy's pad has for them.
PADS = {
    "zero": ("constant", {}),
    7: ("constant", {"constant_values": 7}),
    "reflect": ("symmetric", {}),
    "nearest": ("edge", {}),
    "periodic": ("wrap", {}),
}
PARTS = st.lists(
    st.tuples(st.integers(1, 5), st.integers(-8, 12), st.integers(0, 9), st.sampled_from(list(PADS))),
    min_size=1,
    max_size=3,
)


def padded(x, kinds, depth=20):
    """The array with so many elements more at each end."""
    for axis, kind in enumerate(kinds):
        name, options = PADS[kind]
        x = np.pad(x, [(depth, depth) if a == axis else (0, 0) for a in range(x.ndim)], mode=name, **options)
    return x


@given(PARTS)
def test_a_part_that_reaches_over_the_ends_is_that_of_the_padded_array(parts):
    lengths, begins, sizes, kinds = zip(*parts, strict=True)
    x = np.arange(1, np.prod(lengths) + 1).reshape(lengths)
    bounds = tuple((begin, begin + size) for begin, size in zip(begins, sizes, strict=True))
    found = extended(x, bounds, tuple(boundary_of(kind, np.dtype(int)) for kind in kinds))
    box = tuple(slice(begin + 20, end + 20) for begin, end in bounds)
    np.testing.assert_array_equal(found, padded(x, kinds)[box])


@given(PARTS)
def test_a_folded_gradient_adds_up_what_each_element_is_in_the_part(parts):
    lengths, begins, sizes, kinds = zip(*parts, strict=True)
    bounds = tuple((begin, begin + size) for begin, size in zip(begins, sizes, strict=True))
    boundaries = tuple(boundary_of(kind, np.dtype(int)) for kind in kinds)
    gradient = np.random.default_rng(0).integers(-99, 99, sizes)
    tile = tuple(slice(length // 3, length) for length in lengths)
    found = folded(gradient, bounds, lengths, boundaries, tile)
    numbers = extended(np.arange(np.prod(lengths)).reshape(lengths), bounds, boundaries)
    inside = extended(np.ones(lengths, bool), bounds, tuple(b._replace(value=0) for b in boundaries))
    expected = np.bincount(numbers[inside], gradient[inside], np.prod(lengths)).reshape(lengths)
    np.testing.assert_array_equal(found, expected[tile])


@given(st.integers(1, 6), st.integers(-9, 12), st.integers(0, 9), st.sampled_from(["constant", "reflect", "periodic"]))
def test_ranges_are_the_elements_that_pieces_come_from(length, begin, size, kind):
    found = segments(length, begin, begin + size, kind)
    elements = {int(i) for _, source in found for i in np.arange(length)[source]}
    ranges = ranges_of(found)
    assert {i for start, stop in ranges for i in range(start, stop)} == elements
    assert all(one[1] < other[0] for one, other in itertools.pairwise(ranges))


def test_a_part_inside_is_a_view_that_is_not_written_to():
    x = np.arange(5)
    part = extended(x, ((1, 3),), (boundary_of("periodic", x.dtype),))
    assert np.shares_memory(part, x)
    assert not part.flags.writeable
    assert x.flags.writeable


@pytest.mark.parametrize("wrong", ["wrap", [1, 2], None, 1.5, np.nan])
def test_other_boundaries_are_refused(wrong):
    with pytest.raises(ValueError, match=r"one of 'zero', 'reflect', 'nearest', 'periodic'"):
        boundary_of(wrong, np.dtype(int))


@pytest.mark.parametrize(("dtype", "number", "wrong"), [("uint8", 255, 256), ("int8", -128, 128), ("bool", 1, 2)])
def test_a_whole_number_is_a_boundary_of_arrays_whose_dtype_holds_it(dtype, number, wrong):
    assert boundary_of(number, np.dtype(dtype)).value == number
    with pytest.raises(ValueError, match=f"boundary {wrong} is not a number that an array of {dtype} can hold"):
        boundary_of(wrong, np.dtype(dtype))
