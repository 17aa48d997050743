"""Results without dimensions, which stand for NumPy's numbers."""

from __future__ import annotations

import math
import operator

import numpy as np
import pytest

from ringlet.errors import ShardingError
from ringlet.sharding import Sharding, mode, shard

VALUES = np.arange(6.0)


@pytest.fixture(params=["shared", "copy"])
def x(request):
    with mode(request.param):
        yield shard(VALUES.copy(), Sharding.tiled((2,)))


@pytest.mark.parametrize(
    "compute",
    [
        lambda x: x.sum(),
        lambda x: x.max() + 1,
        np.mean,
        lambda x: x[3],
        lambda x: np.einsum("i,i->", x, x),
        lambda x: x @ x,
        np.add.reduce,
        lambda x: x.argmax(),
        lambda x: (x > 1).any(),
    ],
)
def test_a_number_is_a_key_and_does_not_change_under_another_name(x, compute):
    number, expected = compute(x), compute(VALUES)
    assert hash(number) == hash(expected)
    assert {expected: "found"}[number] == "found"
    other = number
    number = operator.iadd(number, 1)
    assert (float(other), float(number)) == (float(expected), float(operator.iadd(expected, 1)))
    with pytest.raises(ShardingError, match=r"other 0-d results are values, .*array\.copy\(\)"):
        other[...] = 3


def test_numbers_are_rounded_and_printed_as_numpys(x):
    number = (x.astype(np.float32) / 7).sum()
    expected = (VALUES.astype(np.float32) / 7).sum()
    assert repr(round(number, 2)) == repr(round(expected, 2))
    assert (round(number), math.floor(number), f"{number:.3f}") == (2, 2, f"{expected:.3f}")
    assert range(9)[x.astype(int)[2]] == 2


def test_numbers_take_the_dtype_of_what_is_added_to_them():
    x, expected = shard(np.arange(6), Sharding.tiled((2,))), np.arange(6)
    for array in (x, expected):
        array[3] += 0.75
        array[4] **= 2
    np.testing.assert_array_equal(x, expected)
    total = x.sum()
    total += 0.5
    assert total.dtype == float
    total **= 2
    assert float(total) == (expected.sum() + 0.5) ** 2


def test_an_array_without_dimensions_stays_an_array(x):
    array = shard(np.array(2.0), Sharding.replicated(2))
    other = array
    array += 1
    assert other is array
    assert float(other) == 3
    for made in (x.sum().copy(), np.zeros_like(x.sum()), np.copy(x[0]), np.add(1, 2, out=array)):
        made[...] = 5
        assert float(made) == 5
        with pytest.raises(TypeError, match="unhashable type: 'ShardedArray'"):
            hash(made)
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)


def test_a_complex_number_loses_its_imaginary_part_with_a_warning_as_that_of_numpy_does():
    x = np.array([1 + 2j, 3])
    total = shard(x, Sharding.tiled((2,))).sum()
    for convert in (float, int):
        with pytest.warns(np.exceptions.ComplexWarning):
            assert convert(total) == 4
    assert complex(total) == 4 + 2j
