"""How a request for a variable becomes requests for its shards."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.strategy.parameter_server.variable_partitioning import shard_requests
from ringlet.values.variables.partitioner import FixedShardsPartitioner
from ringlet.values.variables.variable_spec import VariableRequest


def gives(partitions):
    return lambda shape, dtype: partitions


def shards(value, partitions, **options):
    return shard_requests(VariableRequest(value, **options), gives(partitions))


@pytest.mark.parametrize(
    "partitions",
    [None, [], (), [0, 1], [-1, 1], [2, 2], [1, 2], 5, 2.0, [2.0, 1], "ab", "2", {2: 1}, [None], [[2], 1], np.ones(2)],
    ids=repr,
)
def test_what_is_no_number_of_shards_along_the_first_axis_is_refused(partitions):
    with pytest.raises(ValueError, match="variable_partitioner must return a list/tuple whose elements are 1 besides"):
        shards(np.ones((4, 2)), partitions)


@pytest.mark.parametrize(
    ("partitions", "sizes"),
    [([3, 1], [2, 1, 1]), ((2,), [2, 2]), ([9, 1], [1, 1, 1, 1]), ([2, 1, 1], [2, 2])],
)
def test_the_first_shards_have_a_row_more_and_none_is_empty(partitions, sizes):
    found = shards(np.arange(8.0).reshape(4, 2), partitions)
    assert [len(shard.first_value()) for shard in found] == sizes
    np.testing.assert_array_equal(np.concatenate([shard.first_value() for shard in found]).ravel(), np.arange(8))


@pytest.mark.parametrize(("value", "partitions"), [(1.5, [2]), (np.ones((4, 2)), [1, 1]), (np.ones((0, 2)), [2, 1])])
def test_what_is_not_cut_has_no_shards(value, partitions):
    assert shards(value, partitions) == []


def test_a_row_that_is_to_be_several_shards_is_one():
    (shard,) = shards([[1.0, 2.0]], [3, 1], name="v")
    assert (shard.name, shard.first_value().tolist()) == ("v/part_0", [[1.0, 2.0]])


def test_all_that_is_asked_of_the_variable_is_asked_of_its_shards():
    (first, second) = shards([1, 2, 3], [2], name="w", trainable=False, dtype="float32")
    assert (first.name, second.name) == ("w/part_0", "w/part_1")
    assert (first.trainable, first.dtype, first.shape, second.shape) == (False, "float32", (2,), (1,))
    assert [shard.name for shard in shards([1, 2], [2])] == [None, None]


def test_a_partitioner_is_told_the_shape_and_the_dtype():
    told = []

    def partitioner(shape, dtype):
        told.append((shape, dtype))
        return [1, 1]

    shard_requests(VariableRequest([[1], [2]], dtype="int8"), partitioner)
    assert told == [((2, 1), np.dtype("int8"))]


def test_an_initial_value_that_can_make_parts_makes_each_by_itself():
    asked = []

    def beginning(partition_shape=None, partition_offset=None):
        asked.append((partition_shape, partition_offset))
        return np.full(partition_shape or (3, 2), 7.0)

    found = shard_requests(VariableRequest(beginning, shape=(3, 2), dtype="float64"), FixedShardsPartitioner(2))
    assert asked == [], "nothing is made before it is needed"
    assert [shard.first_value().shape for shard in found] == [(2, 2), (1, 2)]
    assert asked == [((2, 2), (0, 0)), ((1, 2), (2, 0))]


@pytest.mark.parametrize("kind", ["position", "keyword", "object"])
def test_an_initial_value_that_takes_a_shard_info_is_told_which_rows_to_make(kind):
    def by_position(shard_info):
        return np.full(shard_info.shape, float(shard_info.offset[0]))

    class Initializer:
        def __call__(self, shard_info=None):
            return by_position(shard_info)

    beginning = {"position": by_position, "keyword": lambda *, shard_info: by_position(shard_info)}.get(
        kind, Initializer()
    )
    found = shard_requests(VariableRequest(beginning, shape=(3, 2), dtype="float64"), FixedShardsPartitioner(2))
    assert [shard.first_value().tolist() for shard in found] == [[[0, 0], [0, 0]], [[2, 2]]]


@pytest.mark.parametrize(
    "options", [{}, {"shape": (3, 2)}, {"dtype": "float64"}, {"shape": (None, 2), "dtype": "float64"}]
)
def test_an_initial_value_of_unknown_shape_or_dtype_is_made_as_a_whole(options):
    whole = np.arange(6.0).reshape(3, 2)
    found = shard_requests(
        VariableRequest(lambda **part: whole if not part else None, **options), FixedShardsPartitioner(2)
    )
    np.testing.assert_array_equal(np.concatenate([shard.first_value() for shard in found]), whole)


def test_an_initial_value_that_makes_no_parts_is_called_once():
    calls = []

    def beginning():
        calls.append(0)
        return [[1.0], [2.0], [3.0]]

    found = shard_requests(VariableRequest(beginning, shape=(3, 1), dtype="float32"), FixedShardsPartitioner(3))
    assert [shard.first_value().tolist() for shard in found] == [[[1.0]], [[2.0]], [[3.0]]]
    assert len(calls) == 1


def test_what_is_wrong_with_a_part_is_told_where_there_is_no_whole():
    def beginning(partition_shape, partition_offset):
        raise ValueError(f"no rows from {partition_offset[0]} on")

    first, _ = shard_requests(VariableRequest(beginning, shape=(3, 2), dtype="float64"), FixedShardsPartitioner(2))
    with pytest.raises(ValueError, match="no rows from 0 on"):
        first.first_value()


def test_a_value_that_does_not_fit_is_refused_as_without_shards():
    with pytest.raises(ValueError, match="not compatible with the explicitly supplied `shape`"):
        shards(np.ones((3, 2)), [2, 1], shape=(4, 2))
    with pytest.raises(ValueError, match="initial_value"):
        shards(None, [2])
