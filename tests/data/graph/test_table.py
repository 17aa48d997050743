"""Rows of arrays as elements."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.data.graph.table import ArrayColumn, RangeColumn, Table, row_count, row_numbers
from ringlet.nest import flatten


def test_a_slice_of_an_array_is_a_read_only_view():
    array = np.arange(12).reshape(6, 2)
    rows = ArrayColumn(array).rows(slice(1, 4))
    assert np.shares_memory(rows, array)
    assert not rows.flags.writeable
    np.testing.assert_array_equal(rows, array[1:4])


def test_gathered_rows_are_a_read_only_copy():
    array = np.arange(12).reshape(6, 2)
    rows = ArrayColumn(array).rows(np.array([5, 0, 5]))
    assert not np.shares_memory(rows, array)
    assert not rows.flags.writeable
    np.testing.assert_array_equal(rows, array[[5, 0, 5]])


@pytest.mark.parametrize(
    "array",
    [
        np.arange(24.0).reshape(2, 3, 4).T,  # not contiguous
        np.arange(6, dtype=">i4"),  # byte-swapped
        np.frombuffer(b"\0" + np.arange(4).tobytes(), np.int64, offset=1),  # misaligned
        np.array(["a", "long"]),
        np.zeros((3, 0)),
        np.array([(1, 2.5)], dtype=[("a", int), ("b", float)]),
    ],
)
def test_any_layout_gives_its_rows(array):
    column = ArrayColumn(array)
    for rows in (slice(0, len(array)), np.arange(len(array))[::-1]):
        np.testing.assert_array_equal(column.rows(rows), array[rows])
        assert column.rows(rows).dtype == array.dtype
    np.testing.assert_array_equal(column.row(0), array[0])


def test_a_row_of_an_array_is_a_view_and_of_a_vector_a_scalar():
    array = np.arange(6).reshape(3, 2)
    assert np.shares_memory(ArrayColumn(array).row(1), array)
    assert not ArrayColumn(array).row(1).flags.writeable
    assert type(ArrayColumn(array[0]).row(1)) is np.int64


@pytest.mark.parametrize(
    ("span", "dtype"),
    [
        (range(0, 9), np.int64),
        (range(10, -10, -3), np.int64),
        (range(5, 100, 7), np.int16),
        (range(0, 2**62 + 1, 2**61), np.int64),
        (range(-3, 3), np.float32),
        (range(2**24, 2**24 + 5), np.float64),
    ],
)
def test_a_range_gives_the_numbers_of_pythons_range(span, dtype):
    column = RangeColumn(span.start, span.step, np.dtype(dtype))
    expected = np.array(list(span), dtype)
    np.testing.assert_array_equal(column.rows(slice(0, len(span))), expected)
    backwards = np.arange(len(span))[::-1]
    np.testing.assert_array_equal(column.rows(backwards), expected[::-1])
    assert column.rows(backwards).dtype == column.rows(slice(1, 2)).dtype == dtype
    assert not column.rows(slice(1, 2)).flags.writeable
    assert column.row(2) == expected[2]
    assert type(column.row(2)) is dtype


def test_a_table_puts_rows_into_its_structure():
    table = Table((ArrayColumn(np.arange(4)), ArrayColumn(np.eye(4))), flatten({"a": 0, "b": 0})[1], 4)
    assert table.element(2)["a"] == 2
    np.testing.assert_array_equal(table.batch(slice(1, 3))["b"], np.eye(4)[1:3])
    assert table.row_bytes == 8 + 32


def test_row_numbers_of_a_slice_and_of_an_array_are_counted_alike():
    assert row_count(slice(3, 7)) == row_count(row_numbers(slice(3, 7))) == 4
