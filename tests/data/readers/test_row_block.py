from __future__ import annotations

from operator import length_hint

import numpy as np
import pytest

from ringlet.data.readers.row_block import RowBlock, join_rows
from ringlet.errors import InvalidArgumentError


def lists(*rows):
    column = np.empty(len(rows), object)
    for number, row in enumerate(rows):
        column[number] = np.array(row)
    return column


def test_rows_and_slices_may_be_taken_in_turns():
    rows = iter(RowBlock({"x": np.arange(6), "y": np.arange(6.0)}, 6))
    assert next(rows) == {"x": 0, "y": 0.0}
    assert rows.take(2)["x"].tolist() == [1, 2]
    assert length_hint(rows) == 3
    assert [row["x"] for row in rows] == [3, 4, 5]
    assert length_hint(rows) == 0


def test_one_piece_is_not_copied_and_all_are_read_only():
    column = np.arange(3)
    assert join_rows([{"x": column}])["x"] is column
    joined = join_rows([{"x": np.arange(2)}, {"x": np.arange(0.0)}, {"x": np.arange(1)}])["x"]
    assert joined.tolist() == [0, 1, 0]
    assert not joined.flags.writeable


def test_lists_of_one_length_become_a_matrix_and_others_are_refused():
    assert join_rows([{"x": lists([1, 2])}, {"x": lists([3, 4])}])["x"].tolist() == [[1, 2], [3, 4]]
    with pytest.raises(InvalidArgumentError, match="the lists of column 'x': they have 1 to 2 values"):
        join_rows([{"x": lists([1, 2], [3])}])


def test_pieces_that_differ_are_refused():
    with pytest.raises(InvalidArgumentError, match=r"rows with different columns: \['x'\] and \['y'\]"):
        join_rows([{"x": np.arange(1)}, {"y": np.arange(1)}])
    with pytest.raises(InvalidArgumentError, match="type or shape of column 'x' differs between files"):
        join_rows([{"x": np.arange(1)}, {"x": np.arange(1.0)}])
