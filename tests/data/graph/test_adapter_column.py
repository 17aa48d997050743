"""Rows of arrays of other libraries."""

from __future__ import annotations

import numpy as np

from ringlet.data.graph.adapter_column import KindColumn, stacked_in_kind
from ringlet.data.tensor_spec import TensorSpec
from tests.collectives.kinds import Frozen, Written

ROWS = np.arange(12.0).reshape(6, 2)


def test_rows_that_follow_each_other_are_views():
    column = KindColumn(Written(ROWS))
    rows = column.rows(slice(1, 4))
    assert type(rows) is Written
    assert rows.array.tolist() == ROWS[1:4].tolist()
    assert np.shares_memory(rows.array, ROWS)


def test_rows_in_any_order_are_gathered_into_fresh_memory():
    for kind, is_writeable in ((Written, True), (Frozen, False)):
        rows = KindColumn(kind(ROWS)).rows(np.array([5, 0]))
        assert rows.array.tolist() == [[10, 11], [0, 1]]
        assert rows.array.flags.writeable == is_writeable
        assert not np.shares_memory(rows.array, ROWS)


def test_one_row_of_a_vector_has_no_dimension():
    column = KindColumn(Written(ROWS[:, 0]))
    assert (column.row(2).array.shape, float(column.row(2).array)) == ((), 4.0)
    assert (len(column), column.spec, column.row_bytes) == (6, TensorSpec((), float), 8)


def test_arrays_are_stacked_along_a_new_first_dimension():
    stacked = stacked_in_kind([Frozen(ROWS[0]), Frozen(ROWS[1])])
    assert type(stacked) is Frozen
    assert stacked.array.tolist() == ROWS[:2].tolist()
    assert not stacked.array.flags.writeable
