from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ringlet.errors import GatherWarning, ShardingError
from ringlet.sharding import Sharding, explain, mode, shard, strict
from tests.sharding.sweep import assemble, placements, poisoned, tiled

ROWS, COLUMNS = Sharding.tiled((4, 1)), Sharding.tiled((1, 4))


def numbers():
    return np.arange(40).reshape(8, 5)


def sent(compute):
    with explain() as report:
        compute()
    return report.nbytes


def test_slices_stay_in_as_many_tiles_and_rows_move_between_neighbours():
    x = shard(numbers(), ROWS)
    with explain() as report:
        taken = x[2:6]
    assert taken.sharding == x.sharding
    (operation,) = report.operations
    assert [it.pairs for it in operation.collectives] == [((1, 0), (2, 3))]
    assert report.nbytes == 2 * 5 * 8


@pytest.mark.parametrize("key", [slice(None, None, 2), (slice(None), slice(1, 3)), (slice(None), None), ...])
def test_what_stays_on_its_device_is_not_sent(key):
    x = shard(numbers(), ROWS)
    assert sent(lambda: x[key]) == 0


def test_one_row_goes_to_all_that_had_the_others():
    x = shard(numbers(), ROWS)
    with explain() as report:
        row = x[3]
    assert str(row.sharding) == "{replicated}"
    assert [it.kind for it in report.operations[0].collectives] == ["broadcast"]
    assert report.nbytes == 3 * 5 * 8


def test_slices_are_values_that_later_changes_do_not_reach():
    x = shard(numbers(), ROWS)
    before = x[2:4]
    x[...] = 0
    assert before.sum() == numbers()[2:4].sum()


def test_slices_are_not_written_to():
    with pytest.raises(ShardingError, match="read-only"):
        shard(numbers(), ROWS)[2:4][0] = 1


def test_the_array_that_was_split_is_written_to_as_well():
    whole = numbers()
    x = shard(whole, ROWS)
    x[1:7:3, 2] = -1
    assert whole[:, 2].tolist() == [2, -1, 12, 17, -1, 27, 32, 37]


@pytest.mark.parametrize("memory", ["shared", "copy"])
def test_what_is_written_is_brought_from_where_it_is(memory):
    with mode(memory):
        x, values = shard(numbers(), ROWS), shard(-numbers(), COLUMNS)
        x[1:] = values[:-1]
        np.testing.assert_array_equal(assemble(x), np.vstack([numbers()[:1], -numbers()[:-1]]))


@pytest.mark.parametrize("memory", ["shared", "copy"])
def test_all_devices_with_a_tile_write_it(memory):
    with mode(memory):
        x = shard(numbers(), Sharding.replicated(3))
        x[2:4, ::2] = 7
        expected = numbers()
        expected[2:4, ::2] = 7
        np.testing.assert_array_equal(assemble(x), expected)


def test_a_mask_of_another_sharding_goes_where_it_is_needed():
    x, mask = shard(numbers(), ROWS), shard(numbers() % 3 == 0, COLUMNS)
    x[mask] = -1
    assert np.asarray(x).tolist() == np.where(numbers() % 3 == 0, -1, numbers()).tolist()


def test_a_mask_writes_what_numpy_makes_of_another_dtype():
    x, whole = shard(numbers(), ROWS), numbers()
    for array in (x, whole):
        array[array > 20] = np.float64(7.9)
    np.testing.assert_array_equal(np.asarray(x), whole)
    assert x.dtype == whole.dtype


def test_a_mask_chooses_as_many_elements_as_it_has():
    x = shard(numbers(), ROWS)
    with strict():
        assert x[x > 30].tolist() == list(range(31, 40))


def test_one_array_of_integers_takes_tile_by_tile():
    x = shard(numbers(), ROWS)
    assert sent(lambda: x[:, [3, 1]]) == 0
    assert x[1:, [3, 1]].shards[3].tolist() == [[38, 36]]


@pytest.mark.parametrize(
    ("key", "value"),
    # index, value
    [(8, 0), ((0, 0, 0), 0), (2.5, 0), ("a", 0), (slice(2), np.ones(3)), (0, "x"), (slice("a"), 0), ((..., ...), 0)],
)
def test_errors_are_numpys(key, value):
    with pytest.raises(Exception) as expected:  # noqa: PT011
        numbers()[key] = value
    with pytest.raises(type(expected.value)) as found:
        shard(numbers(), ROWS)[key] = value
    assert str(found.value) == str(expected.value)


@pytest.mark.filterwarnings("ignore::ringlet.sharding.GatherWarning")
@pytest.mark.parametrize("key", [((0, 1), [0, 1]), (np.array([5, 1]), (2, 3)), ((0, 1), slice(1, 3)), ((True,) * 8,)])
def test_a_tuple_in_an_index_is_an_array_as_in_numpy(key):
    np.testing.assert_array_equal(shard(numbers(), ROWS)[key], numbers()[key])


@pytest.mark.filterwarnings("ignore::ringlet.sharding.GatherWarning")
@pytest.mark.parametrize(
    "key",
    [([0, 1], []), ([0, 1], [0, 1, 2]), ((0, 1), (0, 1, 2)), ([1, -2], 1.5), ([1], None, 2.5), ([1], "a"), ([1], 1j)],
)
def test_indices_with_arrays_raise_numpys_error(key):
    with pytest.raises(IndexError) as expected:
        numbers()[key]
    with pytest.raises(IndexError) as found:
        shard(numbers(), ROWS)[key]
    assert str(found.value) == str(expected.value)


@pytest.mark.parametrize("key", [(1, [3, 2], slice(0)), (slice(2, 2), [3, 2], 1), ([[1], [0]], [3, 2], slice(0))])
def test_indices_that_take_no_elements_give_the_shape_of_numpy(key):
    whole = np.arange(48.0).reshape(6, 4, 2)
    assert shard(whole, Sharding.tiled((2, 1, 1)))[key].shape == whole[key].shape


def test_numbers_that_do_not_fit_are_refused_and_nothing_is_written():
    x = shard(np.zeros(4, np.uint8), Sharding.tiled((2,)))
    with pytest.raises(OverflowError):
        x[1] = 300


def test_objects_are_elements():
    x = shard(np.array([None, 1], object), Sharding.tiled((2,)))
    x[0] = [1, 2]
    assert x.shards[0][0] == [1, 2]
    assert (x[0], x[1:][0], x.reshape(2, 1)[1, 0], *x) == ([1, 2], 1, 1, [1, 2], 1)
    assert x[0, ...].shape == ()
    assert x[x[1] :].tolist() == [1]


def test_fields_of_structured_arrays_are_views_and_are_written_to():
    x = shard(np.zeros(4, [("a", int), ("b", float, (2,))]), Sharding.tiled((2,)))
    x[1:3] = (5, 2.5)
    assert x["a"].shards[0].tolist() == [0, 5]
    assert x["b"].shape == (4, 2)
    with pytest.warns(GatherWarning, match="assignment"):
        x["a"] = 3
    assert np.asarray(x["a"]).tolist() == [3] * 4


def test_a_partial_array_is_sliced_part_by_part():
    x = shard(np.arange(12.0).reshape(4, 3), ROWS)
    total = x.sum(0)
    assert total[1:]._layout.is_partial
    assert np.asarray(total[1:]).tolist() == [22.0, 26.0]


def test_a_partial_array_is_combined_before_it_is_written_to():
    total = shard(np.ones((4, 3)), ROWS).sum(0)
    total[1] = 9
    assert np.asarray(total).tolist() == [4.0, 9.0, 4.0]


def test_iterating_gives_the_rows():
    assert [int(row.sum()) for row in shard(np.arange(6).reshape(3, 2), Sharding.tiled((2, 1)))] == [1, 5, 9]


shapes = hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=7)
keys = shapes.flatmap(lambda shape: st.tuples(st.just(shape), hnp.basic_indices(shape, allow_newaxis=True)))


@given(keys, st.sampled_from(["2", "4", "2x2"]), st.integers(0, 99), st.sampled_from(["shared", "copy"]))
def test_any_basic_index_takes_and_writes_what_numpy_does(key, mesh, number, memory):
    shape, index = key
    whole = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    layouts = placements(mesh, len(shape))
    with mode(memory), poisoned():
        x = tiled(whole, layouts[number % len(layouts)])
        taken = x[index]
        np.testing.assert_array_equal(assemble(taken), whole[index])
        x[index] = taken * -3 + 1
        whole[index] = whole[index] * -3 + 1
        np.testing.assert_array_equal(assemble(x), whole)


def test_values_on_other_devices_are_refused():
    with pytest.raises(ShardingError, match="different device groups: 4 devices, and 2 devices"):
        shard(numbers(), ROWS)[:] = shard(numbers(), Sharding.tiled((2, 1)))


@pytest.mark.parametrize("value", [1j, float("nan"), 1e300])
def test_numbers_that_do_not_fit_are_refused_where_a_mask_chooses_too(value):
    whole = np.zeros(4, np.int8)
    with pytest.raises((TypeError, ValueError, OverflowError)) as expected:
        whole[whole == 0] = value
    x = shard(np.zeros(4, np.int8), Sharding.tiled((2,)))
    with pytest.raises(type(expected.value)):
        x[x == 0] = value
    with pytest.raises(OverflowError):
        x[1:] = np.uint8(200)
    assert np.asarray(x).tolist() == [0, 0, 0, 0]


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.4.0", reason="earlier versions warn")
def test_indices_are_checked_where_no_element_is_taken():
    x = shard(numbers(), ROWS)
    with pytest.raises(IndexError, match="index 9 is out of bounds for axis 1"):
        x[:0, np.array([9])]


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.4.0", reason="earlier versions warn")
@pytest.mark.parametrize("memory", ["shared", "copy"])
@pytest.mark.parametrize("value", [[3], np.ones(1), shard(np.ones(1), Sharding.replicated(4))])
def test_one_element_is_not_assigned_a_sequence(value, memory):
    with mode(memory):
        x, objects = shard(numbers() * 1.0, ROWS), shard(np.array([None] * 4), Sharding.tiled((4,)))
        with pytest.raises(ValueError, match="setting an array element with a sequence"):
            x[3, 2] = value
        x[3, 2, ...] = np.ones(1)
        objects[0] = value
        assert (float(x[3, 2]), np.shape(objects[0])) == (1, (1,))


@pytest.mark.parametrize("memory", ["shared", "copy"])
@pytest.mark.parametrize("key", [[0, 7], (slice(2), [[1], [2]]), np.arange(8) % 5 == 0])
def test_values_at_arrays_may_have_more_dimensions_of_size_1(key, memory):
    expected = numbers()
    value = expected[key][None, None] * 2
    expected[key] = value
    with mode(memory):
        x = shard(numbers(), ROWS)
        x[key] = value
    np.testing.assert_array_equal(assemble(x), expected)


def test_the_last_of_several_values_is_put_in_a_number():
    x = shard(np.array(3.0), Sharding.replicated(2))
    np.put(x, [0, 0], [1, 2, 3])
    assert float(x) == 2


def test_an_assignment_by_a_mask_is_reported_as_one():
    x = shard(np.arange(16.0).reshape(4, 4), Sharding.tiled((2, 2)))
    mask, rows = x > 5, shard(np.arange(4) > 1, Sharding.tiled((4,)))
    with explain() as report:
        x[mask] = 0
        x[rows] = 1
    assert [(operation.name, len(operation.collectives)) for operation in report.operations] == [("assign", 1)]


@pytest.mark.parametrize("key", [[True, False, True, False], (np.array([True, False, True, False]),)])
def test_values_at_a_mask_of_all_dimensions_have_one_dimension_at_most(key):
    x = shard(np.zeros(4), Sharding.tiled((2,)))
    for array in (np.zeros(4), x):
        with pytest.raises((TypeError, ValueError)):
            array[key] = np.ones((1, 2))
