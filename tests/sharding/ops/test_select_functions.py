from __future__ import annotations

import numpy as np
import pytest

from ringlet.sharding import Sharding, explain, mode, shard, strict

ROWS, COLUMNS = Sharding.tiled((4, 1)), Sharding.tiled((1, 4))


def numbers():
    return np.arange(20.0).reshape(5, 4)


def test_a_condition_of_another_sharding_goes_where_it_is_needed():
    x, condition = shard(numbers(), ROWS), shard(numbers() > 7, COLUMNS)
    with explain() as report:
        made = np.where(condition, x, -1)
    assert made.sharding == x.sharding
    assert 0 < report.nbytes <= 20  # truth values move, not numbers
    np.testing.assert_array_equal(np.asarray(made), np.where(numbers() > 7, numbers(), -1))


def test_places_of_what_is_true_are_found_on_each_device():
    with strict():
        assert [places.size for places in np.where(shard(numbers(), ROWS) > 7)] == [12, 12]


@pytest.mark.parametrize("limits", [(3, None), (None, 3), (3, 9), (None, None)])
def test_values_are_clipped_from_either_side(limits):
    if limits == (None, None) and np.lib.NumpyVersion(np.__version__) < "2.1.0":
        return  # NumPy refuses
    np.testing.assert_array_equal(np.asarray(np.clip(shard(numbers(), ROWS), *limits)), np.clip(numbers(), *limits))


def test_values_are_clipped_in_place():
    x = shard(numbers(), ROWS)
    assert np.clip(x, 3, np.full(4, 9), out=x) is x
    np.testing.assert_array_equal(np.asarray(x), numbers().clip(3, 9))


@pytest.mark.parametrize("memory", ["shared", "copy"])
def test_devices_write_where_a_mask_is_true(memory):
    with mode(memory):
        x = shard(numbers(), ROWS)
        np.copyto(x, shard(-numbers(), COLUMNS), where=shard(np.arange(4) > 1, Sharding.tiled((4,))))
        expected = numbers()
        np.copyto(expected, -numbers(), where=np.arange(4) > 1)
        np.testing.assert_array_equal(np.asarray(x), expected)


def test_a_choice_of_two_triangles_makes_the_whole():
    x = shard(np.ones((6, 6)), Sharding.tiled((2, 2)))
    np.testing.assert_array_equal(np.asarray(np.tril(x) + np.triu(x, 1)), np.ones((6, 6)))
    assert np.triu(x, 3).shards[2].tolist() == [[0.0] * 3] * 3


@pytest.mark.parametrize(
    "choose",
    [
        lambda x: np.where(x, x, np.ones(3)),
        lambda x: np.copyto(x, np.ones(3)),
        lambda x: np.copyto(x, 1j),
        lambda x: np.copyto(x, 1, where=np.ones(4)),
        lambda x: np.copyto(x, np.ones((2, 5, 4)), where=np.ones(4, bool)),
        lambda x: np.select([x > 1], [x, x]),
        lambda x: np.choose([[9]], [x, x]),
    ],
)
def test_errors_are_numpys(choose):
    with pytest.raises(Exception) as expected:  # noqa: PT011
        choose(numbers())
    with pytest.raises(type(expected.value)) as found:
        choose(shard(numbers(), ROWS))
    assert str(found.value) == str(expected.value)


def test_the_other_triangle_of_records_and_dates_is_what_numpy_calls_zero():
    for whole in (np.full((3, 3), "2020", "M8[D]"), np.ones((3, 3), [("a", "i4"), ("b", "U2")]), np.ones((3, 3), "V4")):
        np.testing.assert_array_equal(np.asarray(np.tril(shard(whole, Sharding.tiled((2, 1))))), np.tril(whole))


def test_numbers_that_do_not_fit_wrap_around_where_numpy_lets_them():
    whole = np.arange(4, dtype=np.uint8)
    x = shard(whole, Sharding.tiled((2,)))
    try:
        wrapped = np.where(whole > 1, whole, -1)
    except OverflowError as refused:  # since NumPy 2.5
        with pytest.raises(OverflowError, match=str(refused)):
            np.where(x > 1, x, -1)
    else:
        np.testing.assert_array_equal(np.asarray(np.where(x > 1, x, -1)), wrapped)


@pytest.mark.parametrize(
    "clip",
    [
        lambda x: np.clip(x, 1, 2, min=1),
        lambda x: np.clip(x, 1, 2, max=3),
        lambda x: np.clip(x, 1, max=1),
        lambda x: np.clip(x, a_max=1),
        lambda x: np.clip(x, 1, a_min=2, a_max=3),
    ],
)
def test_limits_are_refused_where_numpy_refuses_them(clip):
    with pytest.raises((TypeError, ValueError)) as expected:
        clip(np.arange(4.0))
    with pytest.raises(expected.type) as found:
        clip(shard(np.arange(4.0), Sharding.tiled((2,))))
    assert str(found.value) == str(expected.value)
