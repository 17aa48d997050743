"""The memory of a variable that several processes share."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from ringlet.errors import InvalidArgumentError
from ringlet.values.indexed_slices import SCATTERS, IndexedSlices
from ringlet.values.variables.storage import Storage, replace
from ringlet.values.variables.table_storage import TableForm
from tests.values.tables import new_storage

NUMBERS = ["float16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64", "complex64", "complex128"]
PLAIN = [*NUMBERS, "bool", "<U3", "S5", "datetime64[s]", "timedelta64[D]"]


def stored(value):
    array = np.asarray(value)
    storage = new_storage(TableForm(array.shape, array.dtype))
    storage.write(replace, array)
    return storage


@pytest.mark.parametrize("dtype", [*map(np.dtype, PLAIN), np.dtype(ml_dtypes.bfloat16)], ids=str)
@pytest.mark.parametrize("shape", [(), (3,), (3, 2), (0, 2), (2, 0), (1, 3, 1)], ids=str)
def test_values_of_every_dtype_and_shape_come_back(dtype, shape):
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(np.int64 if dtype.kind in "mM" else dtype)
    array = array.astype(dtype)
    storage = stored(array)
    found = storage.read(0)
    assert (found.dtype, found.shape, storage.shape(0)) == (dtype, shape, shape)
    np.testing.assert_array_equal(found, array)
    if shape:
        np.testing.assert_array_equal(storage.read_rows(0, shape[0]), array)
        np.testing.assert_array_equal(storage.gather(np.arange(shape[0])[::-1]), array[::-1])
        out = np.empty(shape, dtype)
        storage.copy_rows(0, shape[0], out)
        np.testing.assert_array_equal(out, array)


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("name", sorted(SCATTERS))
def test_scatters_do_what_they_do_to_private_memory(dtype, name):
    if np.dtype(dtype).kind == "c" and name in ("scatter_min", "scatter_max"):
        pytest.skip("complex numbers have no order")
    array = np.arange(1, 7).reshape(3, 2).astype(dtype)
    private, table = Storage(array, 1), stored(array)
    slices = IndexedSlices(np.array([[2, 3], [2, 5], [7, 2]], dtype), np.array([2, 2, 0], np.int32))
    private.write_one(0, SCATTERS[name], slices)
    table.write(SCATTERS[name], slices)
    np.testing.assert_allclose(table.read(0), private.read(0), rtol=1e-3)


def test_rows_are_broadcast_as_in_private_memory():
    table = stored(np.zeros((3, 2)))
    table.write(SCATTERS["scatter_add"], IndexedSlices(1.5, [0, 2, 2]))
    np.testing.assert_array_equal(table.read(0), [[1.5, 1.5], [0, 0], [3, 3]])


@pytest.mark.parametrize(
    ("slices", "text"),
    [
        (IndexedSlices(np.ones((1, 2)), [3]), r"indices\[0\] = 3 is not in \[0, 3\)"),
        (IndexedSlices(np.ones((1, 3)), [0]), r"need values of shape \(1, 2\), got \(1, 3\)"),
    ],
)
def test_rows_that_do_not_fit_are_refused_and_nothing_is_written(slices, text):
    table = stored(np.zeros((3, 2)))
    with pytest.raises(InvalidArgumentError, match=text):
        table.write(SCATTERS["scatter_update"], slices)
    assert not table.read(0).any()


def test_a_division_by_zero_is_refused_and_nothing_is_written():
    table = stored([[6, 6], [6, 6]])
    with pytest.raises(InvalidArgumentError, match="updates must not contain 0"):
        table.write(SCATTERS["scatter_div"], IndexedSlices(np.array([[2, 3], [2, 0]]), [0, 1]))
    assert table.read(0).tolist() == [[6, 6], [6, 6]]


def test_text_is_replaced_by_rows_and_never_added():
    table = stored(["abc", "de", "f"])
    table.write(SCATTERS["scatter_update"], IndexedSlices(np.array(["xyz"]), [1]))
    table.write(SCATTERS["scatter_update"], IndexedSlices(np.array([["g"], ["hi"]], "U3"), [[0], [2]]))
    assert table.read(0).tolist() == ["g", "xyz", "hi"]
    with pytest.raises(InvalidArgumentError, match="scatter_max takes numbers, and the variable holds <U3"):
        table.write(SCATTERS["scatter_max"], IndexedSlices(np.array(["xyz"]), [1]))


def test_elements_without_bytes_come_back():
    assert stored(np.zeros(3, "V0")).read(0).shape == (3,)


def test_reads_never_change():
    table = stored([1.0, 2.0])
    before = table.read(0)
    table.write(replace, np.array([3.0, 4.0]))
    assert before.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        before[0] = 5.0
