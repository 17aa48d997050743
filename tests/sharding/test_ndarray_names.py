"""Every public name of ndarray: a sharded array has it, or says what does instead."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from ringlet.errors import ShardingError
from ringlet.sharding import ShardedArray, Sharding, mode, shard

ROWS = Sharding.tiled((2, 1))
VALUES = np.arange(12.0).reshape(3, 4)
# What NumPy asks only its own arrays and their subclasses for, and how they are pickled.
OF_NDARRAYS = {
    "__array_finalize__",
    "__array_interface__",
    "__array_struct__",
    "__array_wrap__",
    "__class_getitem__",
    "__setstate__",
}


def test_each_name_of_ndarray_is_there_or_says_what_does_instead():
    x = shard(VALUES.copy(), ROWS)
    private = {name for name in dir(np.ndarray) if name.startswith("_") and not name.startswith("__")}
    for name in sorted(set(dir(np.ndarray)) - OF_NDARRAYS - private):
        if hasattr(VALUES, name) and not hasattr(ShardedArray, name):  # older versions list names without an attribute
            with pytest.raises(AttributeError, match=rf"no attribute '{name}': its elements are stored in tiles\. \w+"):
                getattr(x, name)


def test_a_name_that_nothing_has_is_told_as_ever():
    with pytest.raises(AttributeError, match=r"'ShardedArray' object has no attribute 'colour'$"):
        _ = shard(VALUES, ROWS).colour
    assert not hasattr(shard(VALUES, ROWS), "__array_interface__")


@pytest.mark.parametrize("memory", ["shared", "copy"])
@pytest.mark.parametrize("part", ["real", "imag"])
@pytest.mark.parametrize("value", [3, np.arange(4.0), 2.5 * np.ones((3, 4))])
def test_parts_of_complex_numbers_are_set(memory, part, value):
    with mode(memory):
        for sharding in (ROWS, Sharding.tiled((1, 3)), Sharding.replicated(2)):
            x, expected = shard(VALUES + 1j, sharding), VALUES + 1j
            before = x[1]
            for array in (x, expected):
                setattr(array, part, value)
            np.testing.assert_array_equal(x, expected)
            np.testing.assert_array_equal(before, VALUES[1] + 1j)
            setattr(x, part, shard(VALUES, ROWS) if sharding == ROWS else VALUES)
            np.testing.assert_array_equal(getattr(x, part), VALUES)


def test_parts_of_real_numbers():
    x = shard(VALUES.copy(), ROWS)
    x.real = 3
    np.testing.assert_array_equal(x, np.full((3, 4), 3.0))
    with pytest.raises(TypeError, match="array does not have imaginary part to set: its dtype is float64"):
        x.imag = 1
    with pytest.raises(ShardingError, match="read-only"):
        x[1:].real = 1


@pytest.mark.parametrize("value", [1j, [1j, 2, 3, 4], "a", None, 10**400, np.ones(3)])
@pytest.mark.parametrize(("part", "array"), [("real", VALUES), ("real", VALUES + 1j), ("imag", VALUES + 1j)])
def test_parts_take_and_refuse_what_those_of_plain_arrays_do(part, array, value):
    def outcome(x):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                setattr(x, part, value)
                error = None
            except (TypeError, ValueError, OverflowError) as raised:
                error = type(raised)
        return np.asarray(x), error, [type(each.message) for each in caught]

    (found, *others), (expected, *wanted) = outcome(shard(array.copy(), ROWS)), outcome(array.copy())
    np.testing.assert_array_equal(found, expected)
    assert others == wanted


@pytest.mark.parametrize("value", [[], 5, VALUES.T, "a", [1j], np.arange(99)])
def test_all_elements_are_set_as_those_of_plain_arrays_are(value):
    found, expected = shard(VALUES.copy(), ROWS), VALUES.copy()
    errors = []
    for array in (expected, found):
        try:
            array.flat = value
        except (TypeError, ValueError) as error:
            errors.append((type(error), str(error)))
    assert len({*errors}) <= 1
    assert len(errors) in (0, 2)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.clip(3),
        lambda x: x.clip(3, 5),
        lambda x: x.clip(min=3),
        lambda x: x.clip(max=5),
        lambda x: x.clip(None, 5),
        lambda x: x.clip(VALUES[0], 5, np.zeros((3, 4))),
    ],
)
def test_either_bound_of_clip_may_be_left_out(call):
    np.testing.assert_array_equal(call(shard(VALUES, ROWS)), call(VALUES))


def test_elements_in_one_dimension():
    x = shard(VALUES.copy(), ROWS)
    assert x.flat[5] == 5
    assert [float(value) for value in x.flat] == VALUES.ravel().tolist()
    x.flat = [1, 2, 3, 4, 5]
    expected = VALUES.copy()
    expected.flat = [1, 2, 3, 4, 5]
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("dtype", [np.int64, "V8", "S8", None])
def test_a_view_has_the_same_bytes(dtype):
    x = shard(VALUES.copy(), ROWS)
    found, expected = (array.view() if dtype is None else array.view(dtype) for array in (x, VALUES))
    assert found.dtype == expected.dtype
    assert found.sharding == x.sharding
    assert found.tobytes() == expected.tobytes()
    x[...] = 0
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", [np.int8, np.complex128])
def test_a_view_of_elements_of_another_size_needs_the_last_dimension(dtype):
    np.testing.assert_array_equal(shard(VALUES, ROWS).view(dtype), VALUES.view(dtype))
    with pytest.raises(ValueError, match=r"last dimension, which is divided: .*Reshard"):
        shard(VALUES, Sharding.tiled((1, 2))).view(dtype)
    with pytest.raises(TypeError, match="no view of type matrix: pass a dtype"):
        shard(VALUES, ROWS).view(np.matrix)


def test_bytes_are_swapped():
    x = shard(VALUES.copy(), ROWS)
    np.testing.assert_array_equal(x.byteswap(), VALUES.byteswap())
    np.testing.assert_array_equal(x, VALUES)
    assert x.byteswap(inplace=True) is x
    np.testing.assert_array_equal(x, VALUES.byteswap())


def test_elements_are_not_deleted():
    x = shard(VALUES, ROWS)
    with pytest.raises(ValueError, match=r"cannot delete array elements: write array = np.delete\(array, 0\)"):
        del x[0]


def test_the_array_api_finds_the_device_and_the_namespace():
    x = shard(VALUES, ROWS)
    assert x.device == "cpu"
    assert x.to_device("cpu") is x
    with pytest.raises(ValueError, match="device"):
        x.to_device("tpu")
    assert x.__array_namespace__().sum is np.sum


def test_elements_are_written_to_a_file(tmp_path):
    shard(VALUES, ROWS).tofile(tmp_path / "values")
    np.testing.assert_array_equal(np.fromfile(tmp_path / "values"), VALUES.ravel())


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.1.0", reason="from_dlpack copies from NumPy 2.1 on")
def test_a_copy_goes_to_dlpack_from_any_layout():
    x = shard(VALUES, Sharding.tiled((1, 2)))
    copied = np.from_dlpack(x, copy=True)
    np.testing.assert_array_equal(copied, VALUES)
    assert not np.shares_memory(copied, x)
    assert np.shares_memory(np.from_dlpack(x, copy=False), VALUES)
    with mode("copy"), pytest.raises(BufferError, match="not in one block of memory"):
        np.from_dlpack(shard(VALUES, Sharding.tiled((1, 2))), copy=False)
