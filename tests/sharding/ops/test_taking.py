from __future__ import annotations

import numpy as np
import pytest

from ringlet.sharding import Mesh, Sharding, explain, mode, shard, strict

ROWS = Sharding.tiled((4, 1))
MESH = Mesh({"x": 2, "y": 2})


def table():
    return np.arange(24).reshape(8, 3)


def taken(memory, indices, sharding=ROWS, axis=0):
    with mode(memory), explain() as report:
        made = np.take(shard(table(), sharding), indices, axis=axis)
    np.testing.assert_array_equal(np.asarray(made), np.take(table(), np.asarray(indices), axis=axis))
    return made, report


@pytest.mark.parametrize("memory", ["shared", "copy"])
def test_rows_come_from_the_devices_that_have_them(memory):
    made, report = taken(memory, [5, 0, 5])
    assert str(made.sharding) == "{replicated}"
    assert report.nbytes == 3 * 3 * 3 * 8  # each of three rows to three others


@pytest.mark.parametrize("memory", ["shared", "copy"])
def test_no_rows_come_from_nobody(memory):
    made, report = taken(memory, np.zeros((0, 2), int))
    assert made.shape == (0, 2, 3)
    assert report.nbytes == 0


@pytest.mark.parametrize("memory", ["shared", "copy"])
def test_other_dimensions_stay_in_their_tiles(memory):
    made, _ = taken(memory, [[1, 7], [4, 4]], MESH.sharding("x", "y"))
    assert str(made.sharding) == "{devices=[1,1,2,2]<=[2,2]T(1,0) last_tile_dim_replicate}"


def test_along_a_dimension_that_is_not_cut_nothing_is_sent():
    made, report = taken("copy", [2, 0], axis=1)
    assert made.sharding == ROWS
    assert report.nbytes == 0


def test_the_array_is_gathered_where_more_is_wanted_than_there_is():
    _, report = taken("copy", np.arange(20) % 8)
    assert [it.kind for it in report.operations[0].collectives] == ["all-gather"]
    assert report.nbytes == 3 * 24 * 8


def test_indices_in_tiles_give_tiles_where_each_device_has_the_table():
    indices = shard(np.arange(6), Sharding.tiled((2,)))
    made = np.take(shard(table(), Sharding.replicated(2)), indices, axis=0)
    assert str(made.sharding) == "{devices=[2,1]<=[2]}"


@pytest.mark.parametrize("out", [shard(np.zeros((2, 3), int), Sharding.tiled((1, 4))), np.zeros((2, 3), int)])
def test_rows_go_where_they_are_asked_to_go(out):
    assert np.take(shard(table(), ROWS), [1, 2], axis=0, out=out) is out
    np.testing.assert_array_equal(np.asarray(out), table()[1:3])


@pytest.mark.parametrize(
    "take",
    [
        lambda x: np.take(x, [8], axis=0),
        lambda x: np.take(x, [-9, 0], axis=0),
        lambda x: np.take(x, [0], axis=2),
        lambda x: np.take(x, np.array([0.5]), axis=0),
        lambda x: np.take(x, [0], axis=0, mode="other"),
        lambda x: np.take_along_axis(x, np.array([0, 1]), 0),
        lambda x: np.take_along_axis(x, np.array([[9, 0, 1]]), 0),
        lambda x: np.take_along_axis(x, np.array([[0.5]]), 0),
        lambda x: np.take_along_axis(x, np.zeros((2, 2), int), 0),
        lambda x: np.take_along_axis(x, np.zeros((2, 0), int), 0),
        lambda x: np.take_along_axis(x, np.zeros((4, 1), int), 1),
        lambda x: np.take_along_axis(x, np.zeros((9, 1), int), -1),
        lambda x: np.take_along_axis(x, np.zeros((1, 1), int), 2),
        lambda x: np.take_along_axis(x, np.zeros((1, 1), int), -3),
        lambda x: np.take_along_axis(x, np.zeros((1, 1), int), None),
    ],
)
def test_errors_are_numpys(take):
    with pytest.raises(Exception) as expected:  # noqa: PT011
        take(table())
    with pytest.raises(type(expected.value)) as found:
        take(shard(table(), ROWS))
    assert str(found.value) == str(expected.value)


def test_a_number_is_taken_from_as_if_it_were_a_vector_of_one():
    x = shard(np.array(3), Sharding.replicated(2))
    assert np.asarray(np.take(x, [0, -1])).tolist() == [3, 3]
    assert np.asarray(np.take(x, [0], axis=0)).tolist() == [3]
    with pytest.raises(IndexError, match="axis 1 is out of bounds"):
        np.take(x, [0], axis=1)


def test_indices_out_of_bounds_are_refused_where_tiles_have_no_elements_too():
    x = shard(np.zeros((0, 3)), Sharding.tiled((2, 1)))
    assert x[:, [2, -3]].shape == (0, 2)
    with pytest.raises(IndexError, match="index 3 is out of bounds"):
        x[:, [3]]


@pytest.mark.parametrize("memory", ["shared", "copy"])
def test_one_row_is_taken_by_its_number_along_a_dimension_that_is_cut(memory):
    rows = np.arange(12).reshape(6, 2)
    with mode(memory):
        x = shard(rows.copy(), Sharding.tiled((3, 1)))
        taken = np.take(x, 4, axis=0)
        assert np.asarray(taken).tolist() == rows[4].tolist()
        taken[0] = -1  # an array of its own
        assert np.asarray(x).tolist() == rows.tolist()


def test_nothing_is_taken_of_a_dimension_without_elements_where_another_one_has_none_either():
    x = shard(np.zeros((0, 0, 3)), Sharding.tiled((1, 2, 1)))
    assert np.take(x, [5], axis=0, mode="clip").shape == (1, 0, 3)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_indices_of_few_bits_reach_as_many_rows_as_there_are(dtype):
    rows, places = np.arange(300), np.array([100, 7, 99], dtype)
    x, y = shard(rows, Sharding.tiled((3,))), shard(places, Sharding.tiled((3,)))
    with strict():
        np.testing.assert_array_equal(x[y].numpy(), rows[places])
        np.testing.assert_array_equal(
            x.reshape(150, 2)[y, places % 2].numpy(), rows.reshape(150, 2)[places, places % 2]
        )


def test_divided_indices_are_sent_to_the_devices_that_have_the_rows():
    rows, places = np.arange(64.0).reshape(16, 4), np.random.default_rng(0).integers(-16, 16, 24)
    x, y = shard(rows, Sharding.tiled((4, 1))), shard(places, Sharding.tiled((4,)))
    with strict(), explain() as report:
        found = x[y]
    assert found._layout.cuts[0].count == 4
    np.testing.assert_array_equal(found.numpy(), rows[places])
    exchange = next(each for each in report.collectives if each.kind == "all-to-all")
    moved = sum(int(place) % 16 // 4 != number // 6 for number, place in enumerate(places))
    assert exchange.nbytes == moved * (8 + 4 * 8)


@pytest.mark.parametrize("dtype", [np.float32, object])
def test_the_empty_index_of_a_number_is_that_number(dtype):
    x = shard(np.arange(8, dtype=dtype), Sharding.tiled((4,)))[3, ...]
    assert np.asarray(x[()]) == 3
    y = shard(np.array(3, dtype), Sharding.replicated(2))
    assert np.asarray(y[()]) == 3


def test_an_array_may_be_an_element_of_an_array_of_objects():
    expected = np.array([0, 1, 2, 3], dtype=object)
    x = shard(expected.copy(), Sharding.tiled((2,)))
    for array in (x, expected):
        array[1] = np.array([1.0])
    assert type(np.asarray(x)[1]) is type(expected[1])


def test_put_along_axis_refuses_indices_of_two_dimensions_without_axis():
    x = shard(np.zeros((2, 3)), Sharding.tiled((2, 1)))
    with pytest.raises(ValueError, match="must have a single dimension"):
        np.put_along_axis(x, np.array([[0], [1]]), 1.0, axis=None)
