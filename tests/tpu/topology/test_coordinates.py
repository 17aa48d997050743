"""Coordinates are whole numbers inside of the mesh, and no two are the same."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.errors import CoordinateError
from ringlet.tpu.topology.coordinates import as_int32, cells_of, first_repeated


@pytest.mark.parametrize("given", [[1, 2], (1, 2), np.array([1, 2], np.uint64), np.array([1.0, 2.0]), [True, 2]])
def test_whole_numbers_become_a_new_array_of_int32(given):
    array = as_int32("numbers", given)
    assert array.dtype == np.int32
    assert array.tolist() == [1, 2]
    assert array is not given


def test_the_array_is_a_copy():
    given = np.array([1, 2], np.int32)
    as_int32("numbers", given)[0] = 5
    assert given.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("given", "kind", "words"),
    [
        ([1.5], ValueError, "numbers must be integers; got 1.5"),
        ([np.nan], ValueError, "integers; got nan"),
        ([1, np.inf], ValueError, "integers; got inf"),
        ([2**31], ValueError, "32-bit integers; got 2147483648"),
        ([-(2**31) - 1], ValueError, "32-bit"),
        ([2**70], ValueError, f"32-bit integers; got {2**70}"),
        ([[1], [1, 2]], ValueError, "its rows differ in length"),
        (["a"], TypeError, "an array of integers, not of"),
        (None, TypeError, "got None"),
        ([1j], TypeError, "not of complex128"),
    ],
)
def test_what_are_no_whole_numbers_is_refused(given, kind, words):
    with pytest.raises(kind, match=words):
        as_int32("numbers", given)


def test_cells_are_counted_row_by_row():
    places = np.array([[[0, 0, 0, 1], [1, 2, 3, 0]]], np.int32)
    assert cells_of("places", places, (2, 3, 4, 2)).tolist() == [1, 46]


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ([2, 0, 0, 0], r"places\[1, 0\] is \(2, 0, 0, 0\), .* index 2 is out of bounds for axis 0 with size 2"),
        ([0, 0, 0, 2], "index 2 is out of bounds for axis 3 with size 2"),
        ([0, -1, 0, 0], r"\(0, -1, 0, 0\), .* index -1 is out of bounds for axis 1"),
    ],
)
def test_a_place_outside_of_the_mesh_is_named(place, words):
    places = np.array([[[0, 0, 0, 0]], [place]], np.int32)
    with pytest.raises(CoordinateError, match=words):
        cells_of("places", places, (2, 2, 1, 2))


def test_the_error_is_what_callers_guess():
    assert issubclass(CoordinateError, ValueError)
    assert issubclass(CoordinateError, IndexError)


@pytest.mark.parametrize("num_cells", [8, 10_000])
@pytest.mark.parametrize(("cells", "found"), [([], None), ([7, 3, 5], None), ([7, 3, 5, 3, 7], (1, 3))])
def test_the_first_that_is_there_twice_is_found(cells, found, num_cells):
    assert first_repeated(np.array(cells, np.int64), num_cells) == found
