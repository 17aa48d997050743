from __future__ import annotations

import numpy as np
import pytest

from ringlet.data import Dataset
from ringlet.data.readers.table_reader import column_names
from ringlet.errors import InvalidArgumentError, NotFoundError

pa = pytest.importorskip("pyarrow")


def write(path, **columns):
    from pyarrow import parquet

    parquet.write_table(pa.table(columns), path)
    return str(path)


def test_specs_come_from_the_first_file_with_rows(tmp_path):
    empty = write(tmp_path / "a", x=pa.array([], "int64"), y=pa.array([], pa.list_(pa.float32())))
    full = write(tmp_path / "b", x=[1], y=pa.array([[1, 2]], pa.list_(pa.float32())))
    dataset = Dataset.from_parquet([empty, full])
    assert {name: (spec.shape, spec.dtype) for name, spec in dataset.element_spec.items()} == {
        "x": ((), np.int64),
        "y": ((None,), np.float32),
    }
    assert Dataset.from_parquet(empty).element_spec["x"].dtype == np.int64
    assert Dataset.from_parquet(empty, "x").map(lambda x: x["x"] + 0.5).element_spec.dtype == np.float64


def test_no_files_have_no_columns(tmp_path):
    with pytest.raises(InvalidArgumentError, match="the columns of the rows are unknown"):
        _ = Dataset.from_parquet([]).element_spec
    with pytest.raises(NotFoundError):
        _ = Dataset.from_parquet(tmp_path / "no").element_spec


def test_columns_are_names():
    with pytest.raises(TypeError, match=r"columns must be a list of names, got \[1\]"):
        column_names([1])
    with pytest.raises(InvalidArgumentError, match=r"columns=\[\] selects nothing"):
        column_names([])
