"""The checks of partition dimensions, and their order."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.errors import PartitionError
from ringlet.sharding.layout.partition import check_partition, whole_number

dimensions = st.lists(st.tuples(st.integers(0, 24), st.integers(-3, 8)), max_size=4)


@given(dimensions=dimensions, extra=st.integers(0, 1), num_devices=st.integers(1, 16))
def test_a_partition_is_taken_where_it_cuts_into_equal_tiles_one_for_each_device(dimensions, extra, num_devices):
    shape, parts = [size for size, _ in dimensions], [part for _, part in dimensions] + [1] * extra
    fits = (
        not extra
        and all(part > 0 and size % part == 0 for size, part in dimensions)
        and math.prod(parts) == num_devices
    )
    if fits:
        assert check_partition(shape, parts, num_devices) == parts
    else:
        with pytest.raises(PartitionError):
            check_partition(shape, parts, num_devices)


def test_sizes_that_are_not_known_are_not_checked():
    assert check_partition((None, 6), (4, 2), 8) == [4, 2]


def test_numbers_of_numpy_are_numbers():
    assert check_partition((4, 6), np.array([2, 3]), 6) == [2, 3]


@pytest.mark.parametrize(
    ("shape", "parts", "message"),
    [
        ((5, 7), (2,), "Length of"),
        ((5, 7), (2, 3), r"Received: 5. Choose a divisor of 5, or pad the dimension to 6 first"),
        ((4, 7), (2, 3), r"`partition_dimensions\[1\]` .* \(3\). Received: 7"),
        ((4, 4), (0, 4), r"\(0\). Received: 4. Write 1 for a dimension that is not divided"),
        ((4, 4), (2, 2), r"\(=8\). Received `partition_dimensions`=\(2, 2\), and their product is 4"),
        ((None, 4), (0, 4), "their product is 0"),
        ((8, 8), (-2, -4), "can only be divided into one or more tiles"),
        ((7, 8), (2.5, 4), r"\(2.5\). Received: 7. Write 1"),
        ((8, 8), (4.0, 4), r"\(=8\). Received `partition_dimensions`=\(4.0, 4\), and their product is 16.0"),
    ],
)
def test_the_first_check_that_fails_is_told(shape, parts, message):
    with pytest.raises(PartitionError, match=message):
        check_partition(shape, parts, 8)


@pytest.mark.parametrize(
    "parts",
    ["ab", None, 8, {2, 4}, {2: 1, 4: 1}, iter([2, 4]), np.array(8), [None, 8], [True, 8], [2.0, 4], [[2], [4]]],
)
def test_what_is_no_list_of_whole_numbers_is_refused(parts):
    with pytest.raises(TypeError, match="expected a list of integers"):
        check_partition((8, 8), parts, 8)


def test_truth_values_and_fractions_are_no_whole_numbers():
    assert [whole_number(value) for value in (3, np.int8(3), np.array(3))] == [3, 3, 3]
    assert [whole_number(value) for value in (True, np.True_, 3.0, "3", None)] == [None] * 5
