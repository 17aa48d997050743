from __future__ import annotations

import numpy as np
import pytest

from ringlet.errors import ShardingError
from ringlet.sharding import Mesh, ShardedArray, Sharding, explain, mode, shard

ROWS, COLUMNS = Sharding.tiled((4, 1)), Sharding.tiled((1, 4))


def numbers(rows=8):
    return np.arange(rows * 4.0).reshape(rows, 4)


def test_joining_along_a_dimension_that_is_not_cut_sends_nothing():
    x = shard(numbers(), ROWS)
    with mode("copy"), explain() as report:
        made = np.hstack([x, x])
    assert report.nbytes == 0
    assert made.sharding == x.sharding


def test_joining_along_a_cut_dimension_sends_what_is_not_there_yet():
    x = shard(numbers(), ROWS)
    with explain() as report:
        made = np.concatenate([x, x])
    assert made.sharding == x.sharding
    assert report.nbytes == 6 * 2 * 4 * 8  # two of the eight tiles of two rows are where they belong


@pytest.mark.parametrize("axis", [0, 1, None])
def test_one_array_alone_is_joined_with_nothing(axis):
    made = np.concatenate([shard(numbers(), ROWS)], axis)
    np.testing.assert_array_equal(np.asarray(made), np.concatenate([numbers()], axis))


def test_the_result_lies_as_the_operand_that_costs_least():
    large, small = shard(numbers(80), ROWS), shard(numbers(2), COLUMNS)
    assert np.concatenate([small, large]).sharding == large.sharding


def test_plain_arrays_may_be_among_them():
    made = np.concatenate([np.ones((2, 4)), shard(numbers(), ROWS)])
    assert isinstance(made, ShardedArray)
    assert made.shape == (10, 4)


def test_partial_values_are_combined_first():
    total = shard(numbers(), ROWS).sum(0)
    assert np.asarray(np.concatenate([total, total])).tolist() == [*numbers().sum(0)] * 2


@pytest.mark.parametrize("out", [shard(np.zeros((16, 4)), COLUMNS), np.zeros((16, 4))])
def test_the_result_goes_where_it_is_asked_to_go(out):
    x = shard(numbers(), ROWS)
    assert np.concatenate([x, x], out=out) is out
    np.testing.assert_array_equal(np.asarray(out), np.vstack([numbers()] * 2))


def test_arrays_of_different_groups_are_refused():
    with pytest.raises(ShardingError, match="different device groups"):
        np.concatenate([shard(numbers(), ROWS), shard(numbers(), Sharding.tiled((2, 1)))])


@pytest.mark.parametrize(
    "join",
    [
        lambda x: np.concatenate([x, x[0]]),
        lambda x: np.concatenate([x, x[:, :2]]),
        lambda x: np.concatenate([x, x], axis=2),
        lambda x: np.concatenate([x], dtype="int8"),
        lambda x: np.stack([x, x[:2]]),
        lambda x: np.stack([x, x], axis=4),
    ],
)
def test_errors_are_numpys(join):
    with pytest.raises(Exception) as expected:  # noqa: PT011
        join(numbers())
    with pytest.raises(type(expected.value)) as found:
        join(shard(numbers(), ROWS))
    assert str(found.value) == str(expected.value)


@pytest.mark.parametrize("arrays", [[[1, 2], [3, 4]], [1, 2, 3], 5])
def test_blocks_are_joined_as_deep_as_they_are_nested(arrays):
    x = shard(np.ones((4, 2)), ROWS)

    def filled(nested, leaf):
        return [filled(each, leaf) for each in nested] if isinstance(nested, list) else leaf * nested

    np.testing.assert_array_equal(np.asarray(np.block(filled(arrays, x))), np.block(filled(arrays, np.ones((4, 2)))))


def test_arrays_that_are_cut_along_different_axes_are_cut_along_both():
    mesh = Mesh({"x": 2, "y": 4})
    values = np.arange(64.0).reshape(8, 8)
    with mode("copy"), explain() as report:
        made = np.stack([shard(values, mesh.sharding(None, "y")), shard(-values, mesh.sharding("x"))])
    assert np.array_equal(made, [values, -values])
    assert made.sharding == mesh.sharding(None, "x", "y").for_ndim(3)
    assert report.nbytes == 0


def test_concatenate_casts_to_the_dtype_of_out_as_casting_allows():
    x = shard(np.array([1.5, 2.5, 3.5]), Sharding.tiled((2,)))
    out = shard(np.zeros(6, int), Sharding.tiled((2,)))
    assert np.concatenate([x, x], out=out, casting="unsafe").tolist() == [1, 2, 3, 1, 2, 3]  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="'no'"):
        np.concatenate([x, x], out=shard(np.zeros(6, np.float32), Sharding.tiled((2,))), casting="no")  # type: ignore[arg-type]
