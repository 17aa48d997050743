"""Variables that are read by the row."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ringlet
from ringlet.errors import InvalidArgumentError
from ringlet.values import embedding_lookup
from tests.values.tables import on_table, sharded

VALUE = np.arange(14.0).reshape(7, 2)
TABLE = on_table(VALUE)
SHARDED = sharded(VALUE, [3, 2, 2])

numbers = st.none() | st.integers(-9, 9)
indices = st.one_of(
    st.integers(-7, 6),
    st.builds(slice, numbers, numbers, st.none() | st.integers(-3, 3).filter(bool)),
    st.lists(st.integers(-7, 6), min_size=1),
    st.sampled_from([None, ..., VALUE[:, 0] > 3]),
)
keys = indices | st.tuples(indices.filter(lambda key: not isinstance(key, list)), st.sampled_from([0, -1, slice(1)]))


@given(key=keys)
def test_a_table_is_indexed_as_an_array_is(key):
    try:
        expected = VALUE[key]
    except IndexError:
        return
    np.testing.assert_array_equal(TABLE[key], expected)


@pytest.mark.parametrize(
    "key",
    [True, (None, 1), (..., 0), (slice(4, 2), 0), (slice(4, 2), None), [0, -1], np.array([[6], [2]]), VALUE > 3],
    ids=repr,
)
def test_a_sharded_one_is_indexed_as_an_array_is_where_tensorflow_looks_into_each_shard(key):
    np.testing.assert_array_equal(SHARDED[key], VALUE[key])


@pytest.mark.parametrize(("key", "row"), [(7, 7), (-8, -1), ((9, 0), 9), ([0, 7], 7)])
def test_a_row_that_is_not_there_is_named(key, row):
    with pytest.raises(IndexError, match=f"slice index {row} of dimension 0 out of bounds: there are 7 rows"):
        SHARDED[key]
    index = row - 7 if row < 0 else row
    with pytest.raises(IndexError, match=f"^index {index} is out of bounds for axis 0 with size 7$"):
        TABLE[key]


def test_a_variable_without_dimensions_has_no_rows():
    scalar = on_table(1.5)
    assert scalar[()] == 1.5
    with pytest.raises(TypeError, match=r"^a 0-d variable has no len\(\)$"):
        len(scalar)
    with pytest.raises(IndexError):
        scalar[0]


@pytest.mark.parametrize("table", [TABLE, SHARDED, ringlet.Variable(VALUE), VALUE, VALUE.tolist()])
@pytest.mark.parametrize("ids", [[6, 0, 6], [[2], [5]], [], 3])
def test_a_look_up_gives_a_row_for_each_id_in_any_kind_of_table(table, ids):
    found = embedding_lookup(table, ids)
    np.testing.assert_array_equal(found, VALUE[np.asarray(ids, np.int64)])


@pytest.mark.parametrize("table", [TABLE, SHARDED, VALUE])
@pytest.mark.parametrize("ids", [[0, 7], [[-1]]])
def test_a_look_up_names_the_first_id_that_has_no_row(table, ids):
    with pytest.raises(InvalidArgumentError, match=r"indices\[.*\] = (7|-1) is not in \[0, 7\)"):
        embedding_lookup(table, ids)


@pytest.mark.parametrize("table", [TABLE, SHARDED])
def test_ids_are_whole_numbers(table):
    with pytest.raises(TypeError, match="indices must be integers"):
        embedding_lookup(table, [1.0])


@pytest.mark.parametrize("table", [TABLE, SHARDED, ringlet.Variable(VALUE)])
def test_variables_of_all_kinds_read_some_rows(table):
    np.testing.assert_array_equal(table.sparse_read([6, 0, 6]), VALUE[[6, 0, 6]])
    with pytest.raises(InvalidArgumentError, match=r"indices\[1\] = 7 is not in"):
        table.sparse_read([0, 7])


def test_rows_that_are_too_long_are_cut_and_others_are_not():
    table = on_table(np.float32([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]]))
    np.testing.assert_array_equal(embedding_lookup(table, [0, 2], max_norm=np.inf), embedding_lookup(table, [0, 2]))
    found = embedding_lookup(table, [0, 1, 2], max_norm=1.0)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, [[0.6, 0.8], [0.3, 0.4], [0, 0]], rtol=1e-6)


def test_rows_of_whole_numbers_are_not_cut():
    with pytest.raises(InvalidArgumentError, match="the table holds int64"):
        embedding_lookup(on_table(np.array([[3, 4]])), [0], max_norm=1.0)


def test_a_longest_length_is_more_than_zero():
    with pytest.raises(InvalidArgumentError, match="max_norm"):
        embedding_lookup(TABLE, [0], max_norm=0)


@pytest.mark.parametrize("table", [TABLE, SHARDED])
def test_a_copy_may_be_written_to_and_what_was_read_may_not(table):
    copied = table.numpy()
    copied[...] = 0
    assert np.array_equal(table, VALUE)
    for read in (table.read_value(), table[1:3], table[[1, 2]], table.sparse_read([1])):
        with pytest.raises(ValueError, match="read-only"):
            read[0] = 0
