"""Arrays that know their tiles: they compute as the whole does."""

from __future__ import annotations

import copy
import pickle
import tracemalloc
import weakref
from typing import NamedTuple

import numpy as np
import pytest

from ringlet.errors import PartitionError
from ringlet.sharding import ShardedArray, Sharding

WHOLE = np.arange(24, dtype=np.float32).reshape(4, 6)


class Pair(NamedTuple):
    """A tuple of another class."""

    one: object
    other: object


@pytest.fixture
def sharded() -> ShardedArray:
    return ShardedArray(WHOLE.copy(), Sharding.tiled((2, 3)))


def test_it_looks_like_the_whole(sharded):
    assert (sharded.shape, sharded.dtype, sharded.ndim, sharded.size, len(sharded)) == ((4, 6), np.float32, 2, 24, 4)
    assert sharded.nbytes == 96
    assert str(sharded) == str(WHOLE)
    assert repr(sharded).endswith("dtype=float32), sharding={devices=[2,3]0,1,2,3,4,5})")


@pytest.mark.parametrize(
    "compute",
    [
        lambda x: x + 1,
        lambda x: 1 - x,
        lambda x: x @ np.ones(6, np.float32),
        lambda x: np.ones(4, np.float32) @ x,
        lambda x: x * x,
        lambda x: -x,
        lambda x: x > 3,
        lambda x: x == 3,
        lambda x: x != 3,
        np.exp,
        lambda x: np.add.reduce(x, axis=0),
        lambda x: np.add(1, x, where=np.ones((4, 6), bool), out=np.zeros((4, 6), np.float32)),
        lambda x: np.add(1, 1, where=x > 3, out=np.zeros((4, 6), np.float32)),
        lambda x: np.concatenate(Pair(x, x)),
        np.from_dlpack,
        lambda x: np.sum(x, axis=1),
        lambda x: np.concatenate([x, np.ones((1, 6), np.float32), x]),
        lambda x: np.einsum("ij,kj->ik", x, x),
        lambda x: np.where(x > 3, x, 0),
        lambda x: x.reshape(6, 4),
        lambda x: x.mean(axis=0),
        lambda x: x.T,
        lambda x: x.astype(np.int64),
        lambda x: x[1:, ::2],
        lambda x: x[x > 3],
        lambda x: np.array(list(x)),
        np.asarray,
        lambda x: np.asarray(x, np.float64),
        lambda x: np.stack([x]),
    ],
)
def test_it_computes_what_the_whole_computes(sharded, compute):
    found, expected = compute(sharded), compute(WHOLE)
    assert type(found) is type(expected) is np.ndarray
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def test_in_place_operators_give_a_new_array(sharded):
    x = sharded
    x += 1
    assert type(x) is np.ndarray
    np.testing.assert_array_equal(x, WHOLE + 1)
    np.testing.assert_array_equal(sharded, WHOLE)


def test_single_numbers_convert():
    one = ShardedArray(np.array(3), Sharding.replicated(2))
    assert (int(one), float(one), bool(one), [0, 1, 2, 3][one]) == (3, 3.0, True, 3)
    assert f"{ShardedArray(np.array(1.5), Sharding.replicated(2)):.2f}" == "1.50"


def test_tiles_share_the_memory_of_the_whole(sharded):
    sharded.shards[5][...] = 0
    assert sharded[2:, 4:].tolist() == [[0, 0], [0, 0]]
    assert np.shares_memory(np.asarray(sharded), sharded.shards[0])
    assert not np.shares_memory(np.array(sharded), sharded.shards[0])
    with pytest.raises(ValueError, match="without a copy"):
        sharded.__array__(np.float64, copy=False)


def test_tiles_of_one_device_and_of_all():
    assert [shard is WHOLE for shard in ShardedArray(WHOLE, Sharding.maximal(1, 3)).shards] == [True]
    assert [shard is WHOLE for shard in ShardedArray(WHOLE, Sharding.replicated(3)).shards] == [True] * 3


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.__setitem__(0, 1),
        lambda x: np.add(1, 1, out=x),
        lambda x: np.add.at(x, 0, 1),
        lambda x: np.sum(np.ones((2, 4, 6), np.float32), axis=0, out=x),
        lambda x: np.modf(np.ones((4, 6), np.float32), out=(None, x)),
    ],
)
def test_it_is_not_written_to(sharded, write):
    with pytest.raises(TypeError, match="a ShardedArray is not written to"):
        write(sharded)


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.fill(0),
        lambda x: x.sort(),
        lambda x: np.copyto(x, 0),
        lambda x: np.put(x, [0], [9]),
        lambda x: x[0].__setitem__(0, 9),
        lambda x: x.T.__setitem__((0, 0), 9),
        lambda x: x.flat.__setitem__(0, 9),
        lambda x: np.asarray(x).__setitem__(0, 9),
    ],
)
def test_what_it_computes_with_is_read_only(sharded, write):
    with pytest.raises(ValueError, match="read-only"):
        write(sharded)
    np.testing.assert_array_equal(sharded, WHOLE)


def test_a_mask_that_is_sharded_chooses_elements(sharded):
    mask = ShardedArray(WHOLE > 3, Sharding.tiled((2, 3)))
    found = np.add(sharded, 1, where=mask, out=np.zeros_like(WHOLE))
    np.testing.assert_array_equal(found, np.where(WHOLE > 3, WHOLE + 1, 0))


def test_dlpack_shares_the_memory(sharded):
    torch = pytest.importorskip("torch")
    torch.from_dlpack(sharded)[0, 0] = 7
    assert sharded.shards[0][0, 0] == 7


def test_tiles_outlive_the_array_and_are_read_only_where_it_is():
    array = np.arange(8.0)
    array.flags.writeable = False
    sharded = ShardedArray(array, Sharding.tiled((2,)))
    gone, tiles = weakref.ref(sharded), sharded.shards
    del array, sharded
    assert gone() is None
    assert tiles[1].tolist() == [4, 5, 6, 7]
    assert [tile.flags.writeable for tile in tiles] == [False, False]


@pytest.mark.parametrize("shape", [(0, 6), (4, 0), (0, 0)])
def test_an_array_without_elements_has_tiles(shape):
    tiles = ShardedArray(np.zeros(shape), Sharding.tiled((2, 3))).shards
    assert [tile.shape for tile in tiles] == [(shape[0] // 2, shape[1] // 3)] * 6


def test_tiles_of_fortran_order_are_views():
    array = np.asfortranarray(WHOLE)
    tiles = ShardedArray(array, Sharding.tiled((2, 3))).shards
    assert all(np.shares_memory(tile, array) for tile in tiles)
    np.testing.assert_array_equal(tiles[4], WHOLE[2:, 2:4])


@pytest.mark.parametrize(
    ("whole", "sharding", "error", "message"),
    [
        ([1, 2], Sharding.tiled((2,)), TypeError, r"an ndarray and a Sharding, got \[1, 2\] of type list"),
        (WHOLE, (2, 3), TypeError, r"got \(2, 3\) of type tuple"),
        (WHOLE, Sharding.tiled((3, 3)), PartitionError, "4 is not a multiple of 3"),
        (WHOLE, Sharding.tiled((2,)), PartitionError, "for tensors of 1 dimensions"),
    ],
)
def test_what_it_is_made_of_has_to_fit(whole, sharding, error, message):
    with pytest.raises(error, match=message):
        ShardedArray(whole, sharding)


def test_its_names_are_listed(sharded):
    assert {"shards", "sharding", "reshape", "T"} <= set(dir(sharded))


def test_it_is_no_key_as_arrays_are_none(sharded):
    with pytest.raises(TypeError, match="unhashable"):
        hash(sharded)


def test_names_that_arrays_do_not_have_are_errors(sharded):
    with pytest.raises(AttributeError, match="nonsense"):
        sharded.nonsense  # noqa: B018  # the attribute is the test


def test_copies_have_the_same_tiles(sharded):
    for twin in (copy.deepcopy(sharded), pickle.loads(pickle.dumps(sharded))):
        assert twin.sharding == sharded.sharding
        np.testing.assert_array_equal(twin, WHOLE)


def test_a_list_of_tiles_costs_nothing_of_the_size_of_the_array():
    large = np.empty(1 << 30, np.uint8)  # never touched, so never there
    sharded = ShardedArray(large.reshape(8, -1), Sharding.tiled((8, 1)))
    tracemalloc.start()
    try:
        tiles = sharded.shards
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert len(tiles) == 8
    assert all(np.shares_memory(tile, large) for tile in tiles)
