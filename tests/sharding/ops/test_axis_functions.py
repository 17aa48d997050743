from __future__ import annotations

import numpy as np
import pytest

from ringlet.errors import ShardingError
from ringlet.sharding import ShardedArray, Sharding, explain, mode, shard
from ringlet.sharding.ops.axis_functions import rearranged

ROWS = Sharding.tiled((4, 1))


def numbers():
    return np.arange(40).reshape(8, 5)


def test_a_transposed_array_is_in_transposed_tiles_of_the_same_memory():
    whole = numbers()
    turned = shard(whole, ROWS).T
    assert str(turned.sharding) == "{devices=[1,4]<=[4]}"
    assert np.shares_memory(turned._tile(1), whole)


@pytest.mark.parametrize("shape", [(1, 5), (8, 1), (1, 1), (0, 5)])
@pytest.mark.parametrize("turn", [np.flip, np.flipud, np.fliplr, np.rot90, lambda x: np.rot90(x, 2)])
def test_dimensions_of_one_element_or_none_are_turned_around_too(turn, shape):
    values = np.arange(shape[0] * shape[1]).reshape(shape)
    found = np.asarray(turn(shard(values, Sharding.tiled((2, 1)))))
    np.testing.assert_array_equal(found, turn(values))
    assert found.shape == turn(values).shape


@pytest.mark.parametrize(
    "turn", [np.transpose, np.squeeze, np.atleast_3d, lambda x: np.swapaxes(x, 0, 1), lambda x: np.expand_dims(x, 1)]
)
def test_turning_dimensions_sends_nothing(turn):
    with mode("copy"), explain() as report:
        turn(shard(numbers(), ROWS))
    assert report.nbytes == 0
    assert len(report.operations) == 1


def test_flipping_a_cut_dimension_exchanges_tiles():
    with explain() as report:
        flipped = np.flip(shard(numbers(), ROWS), axis=0)
    assert flipped.shards[0].tolist() == numbers()[:5:-1].tolist()
    assert [it.pairs for it in report.operations[0].collectives] == [((3, 0), (2, 1), (1, 2), (0, 3))]


def test_flipping_another_one_sends_nothing():
    with explain() as report:
        np.fliplr(shard(numbers(), ROWS))
    assert report.nbytes == 0


def test_partial_values_may_be_turned():
    total = shard(np.arange(24.0).reshape(4, 2, 3), Sharding.tiled((4, 1, 1))).sum(0)
    assert np.flip(total.T)._layout.is_partial
    np.testing.assert_array_equal(np.asarray(np.flip(total.T)), np.flip(np.arange(24.0).reshape(4, 2, 3).sum(0).T))


def test_a_dimension_that_is_dropped_is_on_all_devices_first():
    x = shard(np.arange(3).reshape(1, 3), Sharding.tiled((2, 1)))
    assert str(np.squeeze(x).sharding) == "{replicated}"


def test_dimensions_that_are_repeated_are_on_all_devices():
    wide = np.broadcast_to(shard(np.arange(5), Sharding.tiled((2,))), (3, 5))
    assert str(wide.sharding) == "{devices=[1,2]<=[2]}"
    with pytest.raises(ShardingError, match="read-only"):
        wide[0] = 1


def test_any_function_that_only_turns_dimensions_will_do():
    made = rearranged(lambda x: x[::-1].transpose(1, 0), shard(numbers(), ROWS))
    np.testing.assert_array_equal(np.asarray(made), numbers()[::-1].T)


def test_arrays_that_are_broadcast_together_may_be_plain():
    wide, plain = np.broadcast_arrays(shard(np.arange(2), Sharding.tiled((2,))), np.ones((3, 1)))
    assert isinstance(wide, ShardedArray)
    assert wide.shape == plain.shape == (3, 2)


@pytest.mark.parametrize("options", [{}, {"sparse": True}, {"indexing": "ij"}, {"copy": False}])
def test_meshgrid_takes_numpys_options(options):
    arrays = np.arange(3), np.arange(5.0), np.arange(2)
    found = np.meshgrid(shard(arrays[0], Sharding.tiled((2,))), *arrays[1:], **options)
    for one, other in zip(found, np.meshgrid(*arrays, **options), strict=True):
        np.testing.assert_array_equal(np.asarray(one), other)
