from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.data import Dataset
from ringlet.data.readers.npy import FilesColumn
from ringlet.errors import DataLossError, InvalidArgumentError, NotFoundError
from tests.data.readers.files import assert_restores, put


def save(path, array):
    np.save(path, array)
    return str(path)


def test_rows_are_read_only_views_of_the_file(tmp_path):
    array = np.arange(12.0).reshape(6, 2)
    name = save(tmp_path / "x.npy", array)
    (batch,) = Dataset.from_npy(name).batch(6)
    np.testing.assert_array_equal(batch, array)
    assert type(batch) is np.ndarray
    assert not batch.flags.writeable
    assert not batch.flags.owndata


def test_a_list_is_one_array_in_parts_within_any_structure(tmp_path):
    parts = [save(tmp_path / "x0.npy", np.arange(3)), save(tmp_path / "x1.npy", np.arange(3, 5))]
    dataset = Dataset.from_npy({"x": parts, "y": (save(tmp_path / "y.npy", np.arange(10).reshape(5, 2)),)})
    assert dataset.cardinality() == 5
    assert [int(element["x"]) for element in dataset] == [0, 1, 2, 3, 4]
    assert [batch["x"].tolist() for batch in dataset.batch(2)] == [[0, 1], [2, 3], [4]]
    assert_restores(lambda: dataset.shuffle(5, seed=1).batch(2), range(4))


def test_arrays_in_the_order_of_columns_have_the_same_rows(tmp_path):
    array = np.arange(12).reshape(4, 3)
    name = save(tmp_path / "f.npy", np.asfortranarray(array))
    assert [row.tolist() for row in Dataset.from_npy(name)] == array.tolist()


@given(
    lengths=st.lists(st.integers(0, 5), min_size=1, max_size=4),
    start=st.integers(0, 20),
    size=st.integers(0, 20),
    rows=st.lists(st.integers(0, 19)),
)
def test_a_column_of_several_files_is_as_their_concatenation(lengths, start, size, rows):
    ends = np.cumsum([0, *lengths])
    arrays = [np.arange(a, b) for a, b in itertools.pairwise(ends)]
    column, whole = FilesColumn(arrays), np.concatenate(arrays)
    assert len(column) == len(whole)
    cut = slice(min(start, len(whole)), min(start + size, len(whole)))
    assert column.rows(cut).tolist() == whole[cut].tolist()
    numbers = np.array([row for row in rows if row < len(whole)], np.int64)
    assert column.rows(numbers).tolist() == whole[numbers].tolist()
    assert [int(column.row(row)) for row in range(len(whole))] == whole.tolist()


def test_what_cannot_be_mapped_is_refused_with_what_to_do(tmp_path):
    np.savez(tmp_path / "z.npz", x=np.arange(3))
    with pytest.raises(InvalidArgumentError, match=r"Dataset.from_tensor_slices\(dict\(np.load\("):
        Dataset.from_npy(tmp_path / "z.npz")
    with pytest.raises(InvalidArgumentError, match="holds Python objects, which are not loaded"):
        Dataset.from_npy(save(tmp_path / "o.npy", np.array([{}], object)))
    with pytest.raises(InvalidArgumentError, match="is a scalar"):
        Dataset.from_npy(save(tmp_path / "s.npy", np.float32(1)))
    with pytest.raises(InvalidArgumentError, match=r"is not an \.npy file"):
        Dataset.from_npy(put(tmp_path / "t.npy", b"hello"))
    with pytest.raises(NotFoundError, match="No such file or directory"):
        Dataset.from_npy(tmp_path / "no.npy")


@pytest.mark.parametrize("kept", [7, 20, 100, 135])
def test_a_file_that_is_cut_short_is_data_loss(tmp_path, kept):
    name = tmp_path / "x.npy"
    save(name, np.arange(10.0))
    put(name, name.read_bytes()[:kept])
    with pytest.raises(DataLossError, match="damaged or truncated") as caught:
        Dataset.from_npy(name)
    assert caught.value.file == str(name)


def test_arrays_that_do_not_belong_together_are_refused(tmp_path):
    x, y = save(tmp_path / "x.npy", np.arange(3)), save(tmp_path / "y.npy", np.arange(4.0))
    with pytest.raises(InvalidArgumentError, match=r"equal numbers of rows, got \(filenames\[0\]: 3"):
        Dataset.from_npy((x, y))
    with pytest.raises(InvalidArgumentError, match="must be parts of one array, but they differ: int64 rows"):
        Dataset.from_npy([x, y])
    with pytest.raises(InvalidArgumentError, match="a list of files must not be empty"):
        Dataset.from_npy([])
    with pytest.raises(InvalidArgumentError, match="requires at least one file"):
        Dataset.from_npy({})
