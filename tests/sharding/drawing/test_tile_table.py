"""Who has which tile, as tables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.sharding import Mesh, Sharding
from ringlet.sharding.drawing.tile_table import Cell, TileTable, numbers_in_words, shown
from ringlet.sharding.layout.layout_of import layout_of
from tests.sharding.shardings import tilings

CUBE = Mesh({"x": 2, "y": 2, "z": 2})


def table(sharding, shape, **options):
    return TileTable(shape, layout_of(sharding, len(shape)), str(sharding), **options)


@pytest.mark.parametrize(
    ("spec", "ndim", "rows", "columns", "others"),
    [
        ((), 0, None, None, []),
        (("x",), 1, None, 0, []),
        ((), 3, 1, 2, []),
        (("x",), 4, 0, 1, []),
        ((None, None, None, "x"), 4, 2, 3, []),
        (("x", None, None, "y"), 4, 0, 3, []),
        (("x", None, "y", "z"), 4, 2, 3, [0]),
    ],
)
def test_rows_and_columns_are_the_last_dimensions_that_are_cut(spec, ndim, rows, columns, others):
    made = table(CUBE.sharding(*spec), (4,) * ndim)
    assert (made.rows.dimension, made.columns.dimension) == (rows, columns)
    assert [axis.dimension for axis in made.others] == others


@given(tilings(("replicated", "unreduced")))
def test_each_device_that_has_elements_is_in_one_cell(sharding):
    shape = (5,) * (1 if sharding.ndim is None else sharding.ndim)
    made = table(sharding, shape)
    rows, columns = range(len(made.rows.bounds)), range(len(made.columns.bounds))
    found = [
        device
        for _, tiles in made.tables()
        for row in rows
        for column in columns
        for device in made.cell(tiles, row, column).devices
    ]
    boxes = layout_of(sharding, len(shape)).boxes(shape)
    assert sorted(found) == [d for d, box in enumerate(boxes) if all(cut.start < cut.stop for cut in box)]


def test_there_is_a_table_for_each_tile_of_the_other_dimensions():
    made = table(CUBE.sharding("x", "y", "z"), (3, 4, 4))
    assert list(made.tables()) == [("dimension 0, 0:2", (0, 0)), ("dimension 0, 2:3", (0, 1))]


def test_each_part_has_a_table_of_the_full_size():
    made = table(Mesh({"x": 4, "y": 2}).sharding("x", unreduced=["y"]), (8, 6))
    assert list(made.tables()) == [("summand 1 of 2", (0,)), ("summand 2 of 2", (1,))]
    assert [made.cell((part,), 3, 0).label for part in range(2)] == ["6", "7"]
    assert Cell((0, 1, 2, 4, 6)).label == "0-2, 4, 6"


def test_the_legend_tells_what_the_table_does_not_show():
    spread = table(Mesh({"x": 4, "y": 2}).sharding(None, "x"), (3, 2, 5))
    assert list(spread.legend()) == [
        "numbers: devices; rows: dimension 1; columns: dimension 2",
        "several devices in one tile: each holds the whole tile",
        "not divided: dimension 0 (0:3)",
        "without elements: devices 4-7",
    ]
    assert list(table(Sharding.unreduced(2), (), combined="combined (MAX)").legend()) == [
        "numbers: devices",
        "2 parts, each as large as the array, have yet to be combined (MAX)",
    ]
    assert list(table(Sharding.maximal(1, 3), (2,)).legend())[-1] == "without elements: devices 0, 2"


@given(st.lists(st.integers(0, 30), unique=True).map(sorted))
def test_numbers_in_a_row_are_written_as_first_and_last(numbers):
    found = []
    for word in filter(None, numbers_in_words(numbers).split(", ")):
        first, _, last = word.partition("-")
        found += range(int(first), int(last or first) + 1)
    assert found == numbers


@given(st.integers(1, 50), st.integers(2, 20))
def test_of_many_the_first_and_the_last_are_shown(count, most):
    found = shown(count, most)
    assert len(found) == min(count, most)
    assert (found[0], found[-1]) in ((0, count - 1), (0, None))
    assert (None in found) is (count > most)
