"""Methods and operators of sharded arrays, which are those of arrays."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.sharding import ShardedArray, Sharding, mode, shard, strict

VALUES = np.arange(24.0).reshape(4, 6) - 7
MATRIX = Sharding.tiled((2, 3))


@pytest.mark.parametrize("memory", ["shared", "copy"])
@pytest.mark.parametrize(
    "compute",
    [
        lambda x: x.sum(axis=0, keepdims=True),
        lambda x: x.prod(1),
        lambda x: x.max() - x.min(axis=1),
        lambda x: (x > 3).any(axis=0) | (x < 0).all(0),
        lambda x: x.mean(0),
        lambda x: x.std(axis=1),
        lambda x: x.var(),
        lambda x: x.argmax(axis=1) + x.argmin(1),
        lambda x: x.cumsum(axis=0),
        lambda x: x.dot(np.ones(6)),
        lambda x: x.clip(0, 5),
        lambda x: x.round(1),
        lambda x: x.reshape(6, 4),
        lambda x: x.reshape((2, -1)),
        lambda x: x.transpose(),
        lambda x: x.transpose(1, 0),
        lambda x: x.transpose((0, 1)),
        lambda x: x.T @ x.mT.T,
        lambda x: x.ravel(),
        lambda x: x.flatten(),
        lambda x: x[:, None].squeeze(1),
        lambda x: x.swapaxes(0, 1),
        lambda x: x.take([1, 2], axis=1),
        lambda x: x.astype(np.int32),
        lambda x: x.conj().real,
        lambda x: x.imag,
        lambda x: x.copy(),
    ],
)
def test_a_method_gives_what_it_gives_for_an_array(compute, memory):
    with mode(memory):
        x = shard(VALUES.copy(), MATRIX)
        found, expected = compute(x), np.asarray(compute(VALUES))
    assert type(found) is ShardedArray
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)


def test_complex_numbers_have_parts():
    values = VALUES + 2j * VALUES
    x = shard(values, MATRIX)
    np.testing.assert_array_equal(x.real.numpy(), values.real)
    np.testing.assert_array_equal(x.imag.numpy(), values.imag)


def test_rows_are_chosen_by_a_condition():
    x = shard(VALUES.copy(), MATRIX)
    with strict():
        np.testing.assert_array_equal(x.compress([True, False], axis=0).numpy(), VALUES[:1])


def test_changes_in_place():
    x = shard(VALUES.copy(), MATRIX)
    x.fill(3)
    assert x.tolist() == np.full((4, 6), 3).tolist()
    x = shard(VALUES[::-1].copy(), Sharding.tiled((1, 2)))
    x.sort(axis=0)
    np.testing.assert_array_equal(x.numpy(), VALUES)


@pytest.mark.parametrize("arguments", [("sort", None), ("partition", 0, None)])
def test_an_order_in_place_requires_an_axis_also_of_a_vector(arguments):
    method, *others = arguments
    with pytest.raises(TypeError, match="'NoneType' object cannot be interpreted as an integer"):
        getattr(shard(np.arange(4), Sharding.tiled((2,))), method)(*others)


@pytest.mark.parametrize("memory", ["shared", "copy"])
def test_a_slice_is_changed_in_place(memory):
    with mode(memory):
        x, expected = shard(VALUES.copy(), MATRIX), VALUES.copy()
        for array in (x, expected):
            array[1:3] += 1
            array[:, ::2] *= array[:, ::2]
            array[-1] -= 3
        np.testing.assert_array_equal(x.numpy(), expected)
        row = x[0]
        row += 1  # a value, as a number is: the name stands for another one from now on
        np.testing.assert_array_equal(row.numpy(), expected[0] + 1)
        np.testing.assert_array_equal(x.numpy(), expected)


def test_operators_in_place_keep_the_dtype():
    x = shard(np.arange(8, dtype=np.int32), Sharding.tiled((2,)))
    y = x
    x += 1
    x -= 2
    x *= 3
    x //= 2
    x **= 2
    x %= 7
    x <<= 2
    x >>= 1
    x &= 6
    x |= 1
    x ^= 2
    array = np.arange(8, dtype=np.int32)
    array = (((array - 1) * 3 // 2) ** 2 % 7 << 2 >> 1 & 6 | 1) ^ 2
    assert y is x
    assert x.dtype == np.int32
    assert x.tolist() == array.tolist()
    with pytest.raises(TypeError, match="Cannot cast"):
        x /= 2


def test_rows_are_iterated_over_and_elements_looked_for():
    x = shard(VALUES, MATRIX)
    np.testing.assert_array_equal([row.numpy() for row in x], VALUES)
    assert 16 in x
    assert 17 not in x
    with pytest.raises(TypeError, match="0-d"):
        iter(x.sum())


def test_it_is_no_key_as_arrays_are_none():
    with pytest.raises(TypeError, match="unhashable"):
        hash(shard(VALUES, MATRIX))


def test_its_names_are_listed():
    assert {"shards", "sharding", "reshape", "T", "reshard", "numpy"} <= set(dir(shard(VALUES, MATRIX)))


def test_vectors_are_no_matrices():
    with pytest.raises(ValueError, match="2 dimensions or more"):
        shard(np.zeros(3), Sharding.replicated(2)).mT  # noqa: B018


@pytest.mark.parametrize("dtype", "?bldFD")
@pytest.mark.parametrize("exponent", [2, 2.0, 0.5, -1, 3, 1 + 0j, np.float64(2)])
@np.errstate(all="ignore")
def test_powers_have_the_bits_and_the_dtype_of_arrays(dtype, exponent):
    array = np.linspace(0.1, 9, 24).reshape(4, 6).astype(dtype)
    if exponent == -1 and dtype in "?bl":
        return  # NumPy refuses
    expected, found = array**exponent, np.asarray(shard(array, MATRIX) ** exponent)
    assert found.dtype == expected.dtype
    assert found.tobytes() == expected.tobytes()


def test_powers_change_arrays_in_place_and_leave_what_they_were_taken_from():
    array = VALUES.copy()
    x = shard(array, MATRIX)
    row = x[1]
    row **= 2
    x **= 2
    x **= 3
    np.testing.assert_array_equal(array, VALUES**6)
    np.testing.assert_array_equal(np.asarray(row), VALUES[1] ** 2)


@pytest.mark.parametrize("memory", ["shared", "copy"])
def test_what_cannot_be_compared_is_not_equal(memory):
    records = np.zeros(4, [("a", "i4"), ("b", "f8", (2,))])
    records["a"] = [1, 2, 1, 1]
    with mode(memory):
        x, y = shard(VALUES, MATRIX), shard(records, Sharding.tiled((2,)))
        assert not (x == "text").any()
        assert (x != "text").all()
        assert "text" not in x
        assert np.asarray(y == records[0]).tolist() == [True, False, True, True]
        assert np.asarray(y != y[::-1]).tolist() == [False, True, True, False]
        assert np.array_equal(y, records)
        with pytest.raises(ValueError, match="could not be broadcast"):
            _ = x == np.zeros(5)


@pytest.mark.filterwarnings("ignore::ringlet.errors.GatherWarning")
def test_methods_that_gather_write_to_the_array_all_the_same():
    x = shard(np.array([5, 3, 8, 1]), Sharding.tiled((2,)))
    assert np.asarray(x.argpartition(1))[:2].tolist() == [3, 1]
    x.put([0], [0])
    x.partition(1)
    assert np.asarray(x)[:2].tolist() == [0, 1]
