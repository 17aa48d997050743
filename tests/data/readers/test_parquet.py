from __future__ import annotations

import numpy as np
import pytest

from ringlet.data import Dataset
from ringlet.data.distribution.distribute import distribute_dataset
from ringlet.errors import DataLossError, InvalidArgumentError, NotFoundError
from tests.data.readers.files import assert_restores, outcome, put

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def write(path, start, stop, row_group_size=100):
    numbers = np.arange(start, stop)
    pq.write_table(pa.table({"x": numbers, "name": [f"row {i}" for i in numbers]}), path, row_group_size)
    return str(path)


@pytest.fixture
def names(tmp_path):
    return [write(tmp_path / "a", 0, 1000), write(tmp_path / "b", 1000, 1000), write(tmp_path / "c", 1000, 1010)]


def test_rows_are_dictionaries_in_the_order_of_the_files(names):
    rows = list(Dataset.from_parquet(names))
    assert rows[3] == {"x": 3, "name": "row 3"}
    assert [int(row["x"]) for row in rows] == list(range(1010))


@pytest.mark.parametrize("reads", [None, 2])
def test_batches_have_the_rows_in_columns(names, reads):
    rows = [int(row["x"]) for row in Dataset.from_parquet(names, "x", num_parallel_reads=reads)]
    batches = list(Dataset.from_parquet(names, ["x"], num_parallel_reads=reads).batch(300))
    assert [len(batch["x"]) for batch in batches] == [300, 300, 300, 110]
    assert np.concatenate([batch["x"] for batch in batches]).tolist() == rows
    assert batches[0].keys() == {"x"}


@pytest.mark.parametrize("reads", [None, 2])
def test_a_state_is_restored_exactly(names, reads):
    assert_restores(lambda: Dataset.from_parquet(names, num_parallel_reads=reads), [0, 1, 250, 999, 1000, 1009, 1010])
    assert_restores(lambda: Dataset.from_parquet(names, num_parallel_reads=reads).batch(7), [0, 1, 100])


def test_files_that_are_no_parquet_or_damaged_are_data_loss_and_the_next_file_follows(tmp_path, names):
    data = bytearray((tmp_path / "a").read_bytes())
    data[100:400] = bytes(300)
    damaged, other = put(tmp_path / "damaged", bytes(data)), put(tmp_path / "other", b"PAR1 no PAR1")
    assert outcome(Dataset.from_parquet([damaged, other, names[2]], "x"))[-12:-10] == ["DataLossError", "DataLossError"]
    with pytest.raises(DataLossError) as caught:
        list(Dataset.from_parquet(other))
    assert caught.value.file == other


def test_a_column_or_a_file_that_is_not_there_is_named(names):
    with pytest.raises(InvalidArgumentError, match=r"has no column 'z'\. The columns are 'x', 'name'"):
        list(Dataset.from_parquet(names, ["z"]))
    with pytest.raises(NotFoundError, match="nowhere; No such file or directory"):
        list(Dataset.from_parquet("nowhere"))


def test_replicas_get_slices_of_the_columns(names):
    step = next(iter(distribute_dataset(Dataset.from_parquet(names[0], "x").batch(10), 2)))
    assert [part.tolist() for part in step["x"].values] == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
