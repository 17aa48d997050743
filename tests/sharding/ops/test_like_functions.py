from __future__ import annotations

import numpy as np
import pytest

from ringlet.errors import GatherWarning
from ringlet.sharding import Sharding, explain, mode, shard

HALVES = Sharding.tiled((2, 1))


@pytest.mark.parametrize("memory", ["shared", "copy"])
@pytest.mark.parametrize("like", [np.zeros_like, np.ones_like, np.empty_like, lambda x: np.full_like(x, 2)])
def test_arrays_like_another_are_in_its_tiles_and_memory_of_their_own(like, memory):
    with mode(memory):
        x = shard(np.arange(6.0).reshape(3, 2), HALVES)
        made = like(x)
        made[...] = 4
        assert made.sharding == x.sharding
        assert float(x.sum()) == 15


def test_arrays_of_other_dimensions_are_whole_on_each_device():
    made = np.zeros_like(shard(np.ones((2, 2)), HALVES), shape=5, dtype=np.int8)
    assert (str(made.sharding), made.shape, made.dtype) == ("{replicated}", (5,), np.int8)


def test_arrays_like_a_partial_one_are_not_partial():
    assert not np.ones_like(shard(np.ones((2, 2)), HALVES).sum(0))._layout.is_partial


def test_the_same_dtype_needs_no_copy_unless_one_is_asked_for():
    x = shard(np.ones((2, 2)), HALVES)
    assert x.astype(float, copy=False) is x
    assert x.astype(float) is not x


def test_a_partial_array_is_combined_before_its_dtype_changes():
    total = shard(np.full((2, 2), 0.5), HALVES).sum(0)
    assert np.asarray(total.astype(int)).tolist() == [1, 1]


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        (np.array([1, 22, 333, None], object), str),
        (np.array([1, 22, 333, b"4444"], object), "S"),
        (np.array(["2020", "2021-02", "2022-03-04", "2023"]), "M8"),
    ],
)
def test_a_dtype_that_depends_on_values_is_found_in_those_of_all_tiles(values, dtype):
    x = shard(values, Sharding.tiled((4,)))
    with pytest.warns(GatherWarning, match="astype gathers"):
        found = x.astype(dtype)
    assert (found.dtype, found.tolist()) == (values.astype(dtype).dtype, values.astype(dtype).tolist())


def test_a_copy_is_written_to_without_a_change_of_the_array():
    x = shard(np.ones((2, 2)), HALVES)
    copied = np.copy(x)
    copied[0] = 5
    assert float(x.sum()) == 4


def test_one_value_for_each_column_is_sent_nowhere():
    with explain() as report:
        made = np.full_like(shard(np.ones((4, 2)), HALVES), [1, 2])
    assert np.asarray(made).tolist() == [[1, 2]] * 4
    assert report.nbytes == 0


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.astype("int8", casting="safe"),
        lambda x: np.full_like(x, "a", dtype=np.uint8),
        lambda x: np.empty_like(x, order="B"),
        lambda x: np.zeros_like(x, order="B"),
        lambda x: np.ones_like(x, order="B"),
        lambda x: np.full_like(x, 1, order="B"),
        lambda x: x.astype("no dtype"),
    ],
)
def test_errors_are_numpys(change):
    with pytest.raises(Exception) as expected:  # noqa: PT011
        change(np.ones((2, 2)))
    with pytest.raises(type(expected.value)) as found:
        change(shard(np.ones((2, 2)), HALVES))
    assert str(found.value) == str(expected.value)
