from __future__ import annotations

import datetime
import sys

import numpy as np
import pytest

from ringlet.data import Dataset
from ringlet.data.readers.arrow_columns import column_array
from ringlet.errors import InvalidArgumentError

pa = pytest.importorskip("pyarrow")


@pytest.mark.parametrize(
    ("values", "kind", "dtype", "found"),
    [
        # values, type of Arrow, dtype, entries
        ([1, 2], "int8", np.int8, [1, 2]),
        ([1, 2], "uint64", np.uint64, [1, 2]),
        ([1.5], "float16", np.float16, [1.5]),
        ([True, False], "bool", bool, [True, False]),
        (["a", ""], "string", object, ["a", ""]),
        ([b"a\0"], "binary", object, [b"a\0"]),
        ([datetime.date(1970, 1, 3)], "date32", "datetime64[D]", [datetime.date(1970, 1, 3)]),
        ([5], "duration[s]", "timedelta64[s]", [datetime.timedelta(seconds=5)]),
    ],
)
def test_columns_become_arrays_of_their_types(values, kind, dtype, found):
    array = column_array(pa.array(values, kind), "x", None, "file")
    assert array.dtype == dtype
    assert array.tolist() == found
    assert not array.flags.writeable


def test_dictionaries_are_decoded():
    assert column_array(pa.array(["a", "b", "a"]).dictionary_encode(), "x", None, "file").tolist() == ["a", "b", "a"]


def test_lists_of_one_length_are_a_matrix_and_others_vectors():
    fixed = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(6.0)), 2)
    assert column_array(fixed.slice(1), "x", None, "file").tolist() == [[2, 3], [4, 5]]
    ragged = column_array(pa.array([[1], [2, 3], []]).slice(1), "x", None, "file")
    assert [row.tolist() for row in ragged] == [[2, 3], []]


@pytest.mark.parametrize("fill", [7, {"x": 7}])
def test_missing_values_are_refused_or_filled(fill):
    column = pa.array([1, None, None])
    assert column_array(column, "x", fill, "file").tolist() == [1, 7, 7]
    for nothing in (None, {"y": 7}):
        with pytest.raises(
            InvalidArgumentError,
            match=r"column 'x' of file has no value in row 1 of the block of rows that was read \(missing in the "
            r"block: 2\)",
        ):
            column_array(column, "x", nothing, "file")


def test_a_filling_of_another_type_is_refused():
    with pytest.raises(InvalidArgumentError, match="fill_null='q' does not match column 'x' of type int64"):
        column_array(pa.array([None], "int64"), "x", "q", "file")


def test_types_without_arrays_are_refused_with_what_to_do():
    with pytest.raises(InvalidArgumentError, match=r"has the type struct.* Omit the column with columns="):
        column_array(pa.array([{"a": 1}]), "x", None, "file")


def test_a_column_of_nothing_is_an_array_of_nothing():
    assert column_array(pa.nulls(0), "x", None, "file").tolist() == []


@pytest.mark.parametrize("reader", [Dataset.from_csv, Dataset.from_parquet])
def test_without_pyarrow_the_error_says_what_to_install(monkeypatch, reader):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"requires pyarrow. Install it with: pip install 'ringlet\[data\]'"):
        reader("file")
