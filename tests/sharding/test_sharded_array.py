"""Sharded arrays: where their values are, who shares memory with whom, and what writing changes."""

from __future__ import annotations

import gc
import tracemalloc
import weakref

import numpy as np
import pytest

from ringlet.collectives import Op
from ringlet.errors import PartitionError, ShardingError
from ringlet.sharding import Mesh, ShardedArray, Sharding, mode, shard
from ringlet.sharding.layout.device_group import DeviceGroup
from ringlet.sharding.layout.layout import WHOLE, Cut, Layout
from ringlet.sharding.resharding.device_buffers import empty
from ringlet.testing import run_on_ranks
from tests.sharding.sweep import MESHES, placements

VALUES = np.arange(24, dtype=np.float32).reshape(4, 6)
ROWS, COLUMNS, COPIES = Sharding.tiled((2, 1)), Sharding.tiled((1, 2)), Sharding.replicated(2)


@pytest.fixture(params=["shared", "copy"])
def sharded(request):
    """An array in each mode, that what is made of it is in, too."""
    with mode(request.param):
        yield ShardedArray(VALUES.copy(), ROWS)


def partial(values, op=Op.SUM):
    """An array whose values are those of two parts combined."""
    layout = Layout(2, (WHOLE,) * values[0].ndim, Cut(2, (0, 1)))
    return ShardedArray._build(values, layout, DeviceGroup.of(2), op)


def test_it_looks_like_an_array(sharded):
    x = sharded
    assert (x.shape, x.dtype, x.ndim, x.size, len(x), x.nbytes, x.itemsize) == ((4, 6), np.float32, 2, 24, 4, 96, 4)
    assert x.sharding == ROWS
    with pytest.raises(AttributeError):
        x.shape = (6, 4)
    with pytest.raises(AttributeError, match="nonsense"):
        x.nonsense  # noqa: B018  # the attribute is the test


def test_it_is_no_ndarray_nor_anything_that_passes_for_the_memory_of_one(sharded):
    assert not isinstance(sharded, np.ndarray)
    assert not hasattr(sharded, "__array_interface__")
    with pytest.raises(TypeError):
        memoryview(sharded)


def test_a_mesh_says_where_tiles_are_as_well():
    x = ShardedArray(VALUES, Mesh({"x": 2}).sharding("x", None))
    assert x.sharding == ROWS


@pytest.mark.parametrize(
    ("whole", "sharding", "error", "message"),
    [
        ([1, 2], Sharding.tiled((2,)), TypeError, r"an ndarray and a Sharding, got \[1, 2\] of type list"),
        (VALUES, (2, 3), TypeError, r"got \(2, 3\) of type tuple"),
        (VALUES, Sharding.tiled((2,)), PartitionError, "for arrays of 1 dimensions"),
        (VALUES, Sharding.parse("{manual}"), ShardingError, "does not define"),
    ],
)
def test_what_it_is_made_of_has_to_fit(whole, sharding, error, message):
    with pytest.raises(error, match=message):
        ShardedArray(whole, sharding)


# Memory that devices share


def test_a_list_of_tiles_costs_nothing_of_the_size_of_the_array():
    large = np.empty(1 << 30, np.uint8)  # never touched, so never there
    ShardedArray(VALUES, ROWS).shards  # noqa: B018  # loads modules
    tracemalloc.start()
    try:
        tiles = ShardedArray(large.reshape(8, -1), Sharding.tiled((8, 1))).shards
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert len(tiles) == 8
    assert all(np.shares_memory(tile, large) for tile in tiles)


def test_the_array_that_was_split_stays_one_with_it():
    array = VALUES.copy()
    x = ShardedArray(array, ROWS)
    x += 1
    x[0] = 50
    np.multiply(x, 2, out=x)
    x.shards[1][...] = 7
    expected = np.full((4, 6), 7.0)
    expected[0], expected[1] = 100, (VALUES[1] + 1) * 2
    np.testing.assert_array_equal(array, expected)
    array[0, 0] = 3
    assert float(x[0, 0]) == 3


def test_in_copy_mode_devices_have_their_box_alone():
    array = VALUES.copy()
    with mode("copy"):
        x = ShardedArray(array, COPIES)
    x.shards  # noqa: B018
    assert not np.shares_memory(x._buffer(0), x._buffer(1))
    assert not np.shares_memory(x._buffer(0), array)


def test_memory_that_is_read_only_stays_so():
    array = VALUES.copy()
    array.flags.writeable = False
    x = ShardedArray(array, ROWS)
    with pytest.raises(ValueError, match="read-only"):
        x += 1
    assert not x.shards[0].flags.writeable


# What was made of an array has values of its own


def test_a_tile_of_a_resharded_array_is_writable_once_the_array_has_memory_of_its_own():
    x = ShardedArray(VALUES.copy(), ROWS)
    y = x.reshard(COLUMNS)
    with pytest.raises(ValueError, match="read-only"):
        y.shards[0][...] = 9
    y += 1
    y.shards[0][...] = 9
    np.testing.assert_array_equal(x, VALUES)
    assert float(y[0, 0]) == 9


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.__iadd__(1),
        lambda x: np.add(x, 1, out=x),
        lambda x: np.add.at(x, slice(None), 1),
        lambda x: x.__setitem__(..., 9),
        lambda x: x.__setitem__(0, 9),
        lambda x: x.fill(9),
        lambda x: np.divmod(x, 2, out=(x, None)),
        lambda x: np.sum(np.ones((2, 4, 6), np.float32), axis=0, out=x),
    ],
)
def test_writing_does_not_change_what_was_made_before(sharded, write):
    made = [sharded[1:], sharded.T, sharded.reshape(6, 4), sharded.reshard(COLUMNS), sharded[1:].T[:2]]
    expected = [VALUES[1:], VALUES.T, VALUES.reshape(6, 4), VALUES, VALUES[1:].T[:2]]
    write(sharded)
    assert not np.array_equal(sharded.numpy(), VALUES)
    for found, values in zip(made, expected, strict=True):
        np.testing.assert_array_equal(found.numpy(), values)


@pytest.mark.parametrize("make", [lambda x: x[1:], lambda x: x.T, lambda x: x.reshape(6, 4), lambda x: x[0][1]])
@pytest.mark.parametrize(
    "write", [lambda x: x.__setitem__(..., 1), lambda x: np.negative(x, out=x), lambda x: np.add.at(x, ..., 1)]
)
def test_what_looks_like_a_view_is_not_written_to(sharded, make, write):
    made = make(sharded)
    with pytest.raises(ValueError, match=r"destination is read-only: slices, .* or to array.copy\(\)"):
        write(made)
    copy = made.copy()
    copy += 1
    np.testing.assert_array_equal(copy.numpy(), made.numpy() + 1)
    np.testing.assert_array_equal(sharded.numpy(), VALUES)


def test_an_array_that_was_laid_out_anew_is_written_to_apart(sharded):
    made = sharded.reshard(COLUMNS)
    made += 1
    np.testing.assert_array_equal(sharded.numpy(), VALUES)
    np.testing.assert_array_equal(made.numpy(), VALUES + 1)
    made += 1  # now its own
    np.testing.assert_array_equal(made.numpy(), VALUES + 2)


def test_results_are_written_to(sharded):
    for made in (sharded + 1, np.sqrt(sharded), sharded.sum(axis=0), sharded @ sharded.T, sharded.copy()):
        expected = made.numpy() + 1
        np.add(made, 1, out=made)
        np.testing.assert_array_equal(made.numpy(), expected)


def test_nothing_is_copied_for_what_is_gone():
    x = ShardedArray(VALUES.copy(), ROWS)
    gone = weakref.ref(x[1:])
    assert gone() is None
    assert x._readers == {}
    memory = x._whole
    x += 1
    assert x._whole is memory


def test_what_goes_while_an_array_is_written_to_does_no_harm():
    x = ShardedArray(np.arange(4), Sharding.tiled((2,)))
    held = {}
    x._readers[0] = held.clear  # asked as the first one, it lets go of the second, as another thread may
    held["second"] = x[1:]
    third = x[2:]
    x[...] = 9
    assert (not held, np.asarray(third).tolist()) == (True, [2, 3])


def test_arrays_die_when_nobody_has_them(sharded):
    gc.disable()
    try:
        made = sharded.T[1:] + 1
        gone = weakref.ref(made)
        made += 1
        del made
        assert gone() is None
    finally:
        gc.enable()


# Values that are still to be combined


def test_parts_are_combined_where_somebody_looks():
    x = partial([np.ones((2, 2)), np.full((2, 2), 2.0)])
    assert "unreduced" in str(x.sharding)
    assert str(x) == str(np.full((2, 2), 3.0))
    assert [shard.tolist() for shard in x.shards] == [[[3, 3], [3, 3]]] * 2
    assert (x * x).numpy().tolist() == [[9, 9], [9, 9]]


def test_writing_to_parts_combines_them_first_and_leaves_what_was_made_of_them():
    x = partial([np.ones(2), np.array([5.0, 7.0])], Op.MAX)
    y = x.reshard(Sharding.tiled((2,)))
    x += 1
    assert x.numpy().tolist() == [6, 8]
    assert y.numpy().tolist() == [5, 7]
    assert not x._layout.is_partial


def test_sums_of_sums_are_combined_once():
    x, y = partial([np.ones(2), np.full(2, 2.0)]), partial([np.full(2, 3.0), np.full(2, 4.0)])
    both = -(x + y)
    assert both._layout.is_partial
    assert both.numpy().tolist() == [-10, -10]


# Corners


@pytest.mark.parametrize("shape", [(0, 6), (4, 0), (0, 0), (1, 1), (3, 2)])
def test_tiles_may_be_short_or_empty(shape):
    x = ShardedArray(np.ones(shape), Sharding.tiled((2, 4)))
    assert sum(tile.size for tile in x.shards) == x.size
    assert (x + x).numpy().tolist() == np.full(shape, 2.0).tolist()


def test_objects_are_elements_too():
    x = ShardedArray(np.array([1, "a", None, 2.5], object), Sharding.tiled((2,)))
    assert (x == "a").tolist() == [False, True, False, False]
    assert (x[:1] + x[3:]).tolist() == [3.5]


def test_one_device_has_it_all():
    x = ShardedArray(VALUES.copy(), Sharding.replicated(1))
    assert (x @ x.T).shape == (4, 4)
    assert np.shares_memory(x.shards[0], x._whole)


def test_a_process_without_devices_cannot_make_arrays_on_them():
    with pytest.raises(ShardingError, match="this process does not own any of the 2 devices"):
        ShardedArray._build([None, None], Layout.replicated(2, 1), DeviceGroup.of(2))


def test_memory_without_values_is_filled_tile_by_tile():
    x = empty((4, 6), np.dtype(int), Layout(2, (Cut(2, (1, 0)), WHOLE)), DeviceGroup.of(2))
    for device in range(2):
        x._tile(device)[...] = device
    assert x[:, 0].tolist() == [1, 1, 0, 0]
    assert shard(np.asarray(x), COPIES).shards[0].shape == (4, 6)


SMALL = np.arange(35).reshape(7, 5)


@pytest.mark.parametrize("memory", ["shared", "copy"])
@pytest.mark.parametrize("mesh", MESHES)
def test_a_shard_is_the_box_of_its_device(mesh, memory):
    for layout in placements(mesh, 2):
        if layout.only is not None:
            continue
        with mode(memory):
            x = shard(SMALL, Sharding.replicated(layout.num_devices))
            from ringlet.sharding.resharding.reshard import redistribute

            shards = redistribute(x, layout)._derive(lambda buffer: buffer, layout, is_view=False).shards
        for tile, box in zip(shards, layout.boxes(SMALL.shape), strict=True):
            np.testing.assert_array_equal(tile, SMALL[box])


@pytest.mark.parametrize("memory", ["shared", "copy"])
def test_the_device_that_has_it_all_has_the_only_shard(memory):
    with mode(memory):
        (tile,) = shard(SMALL, Sharding.maximal(1, 3)).shards
    np.testing.assert_array_equal(tile, SMALL)


@pytest.mark.parametrize("memory", ["shared", "copy"])
def test_shards_are_written_to_where_no_other_device_has_the_same(memory):
    with mode(memory):
        x = shard(SMALL.copy(), Sharding.tiled((2, 1)))
        both = shard(SMALL.copy(), Sharding.tiled((2, 1, 2), last_tile_dims=["replicated"]))
        everywhere = shard(SMALL.copy(), Sharding.replicated(2))
        x.shards[1][...] = 0
        assert x[4:].tolist() == [[0] * 5] * 3
        for tile in [*both.shards, *everywhere.shards, *x.T.shards]:
            with pytest.raises(ValueError, match="read-only"):
                tile[...] = 1


def test_a_process_has_the_shards_of_its_devices():
    from ringlet.sharding import Mesh

    def shards(member):
        mesh = Mesh({"x": 4}, member=member, owner=(0, 1, 0, 1))
        return [tile.tolist() for tile in shard(np.arange(4), mesh.sharding("x")).shards]

    assert run_on_ranks(2, shards) == [[[0], [2]], [[1], [3]]]
